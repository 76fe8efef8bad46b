import ConsoleFiles
import Foundation
import TestSupport
import Testing

@testable import WebServices

@Suite("The console's files")
struct ConsoleFilesTests {
    private typealias Page = SignInWorld.Page

    private func get(_ node: SingleNode, _ target: String, _ headers: [(String, String)] = []) async throws -> Page {
        var request = InProcessService.Request(method: "GET", target: target)
        request.headers = headers
        return Page(try await node.service.answer(request))
    }

    @Test("the page and its files come with headers that hold a browser to them, and are not sent twice")
    func files() async throws {
        let node = try await SingleNode.start(shards: 1)
        let page = try await get(node, "/console")
        #expect(page.status == 200 && page["content-type"] == "text/html; charset=UTF-8")
        #expect(page.text.hasPrefix("<!doctype html>"))
        let first = try await get(node, "/")
        #expect(first.status == 302 && first["location"] == "/console/")
        let policy = (page["content-security-policy"] ?? "").split(separator: ";").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        for rule in [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
            "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
        ] { #expect(policy.contains(rule)) }
        #expect(!policy.contains { $0.contains("unsafe") || $0.contains("*") })
        for (name, value) in [
            ("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"), ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-cache"),
        ] { #expect(page[name] == value) }
        #expect(page["access-control-allow-origin"] == nil)
        // Any address within the console is the page.
        for target in [
            "/console/", "/console/iCloud.a/development/records?type=X", "/console/files/index.html",
        ] {
            let other = try await get(node, target)
            #expect(other.status == 200 && other.text == page.text && other["etag"] == page["etag"])
        }
        let tag = try #require(page["etag"])
        for known in [tag, "W/\(tag)", "\"other\", \(tag)"] {
            let again = try await get(node, "/console", [("If-None-Match", known)])
            #expect(again.status == 304 && again.text.isEmpty && again["etag"] == tag)
        }
        #expect(try await get(node, "/console", [("If-None-Match", "\"other\"")]).status == 200)
        for missing in ["/console/files", "/console/files/none.js", "/console/files/%2e%2e/files.h"] {
            let answer = try await get(node, missing)
            #expect(answer.status == 404 && answer["access-control-allow-origin"] == nil)
        }
        let post = try await node.service.answer(InProcessService.Request(method: "POST", target: "/console"))
        #expect(post.status == 405)
        try await node.stop()
    }

    @Test("the page names the state of all files, whose parts a browser may keep; of another state it gets today's")
    func states() async throws {
        let node = try await SingleNode.start(shards: 1)
        let page = try await get(node, "/console").text
        let app = try #require(page.firstMatch(of: #/src="(\/console\/files\/~[0-9a-f]{16})\/app.js"/#))
        let kept = try await get(node, "\(app.1)/core/api.js")
        #expect(kept.status == 200 && kept["cache-control"] == "public, max-age=31536000, immutable")
        for other in ["/console/files/~0123456789abcdef/core/api.js", "/console/files/core/api.js"] {
            let answer = try await get(node, other)
            #expect(answer.status == 200 && answer.text == kept.text && answer["cache-control"] == "no-cache")
        }
        for missing in ["\(app.1)", "\(app.1)/none.js", "\(app.1)/~/core/api.js", "\(app.1)/%2e%2e/files.h"] {
            #expect(try await get(node, missing).status == 404, "\(missing)")
        }
        try await node.stop()
    }

    @Test("a client that takes gzip gets the same bytes packed, under another tag")
    func packed() async throws {
        let node = try await SingleNode.start(shards: 1)
        let plain = try await get(node, "/console", [("Accept-Encoding", "gzip;q=0, br")])
        #expect(plain["content-encoding"] == nil)
        var request = InProcessService.Request(method: "GET", target: "/console")
        request.headers = [("Accept-Encoding", "br, gzip;q=0.8")]
        let answer = try await node.service.answer(request)
        let page = Page(answer)
        #expect(page["content-encoding"] == "gzip" && page["etag"] != plain["etag"])
        #expect(page.headers.contains { $0.name.lowercased() == "vary" && $0.value == "Accept-Encoding" })
        #expect(answer.body.count < plain.text.utf8.count)
        try await TemporaryFolder.with { folder in
            try Data(answer.body).write(to: URL(filePath: folder + "/page.gz"))
            #expect(try FinishedProgram(["gzip", "-dc", folder + "/page.gz"]).output == plain.text)
        }
        try await node.stop()
    }

    @Test("all files together are sent in at most 300,000 bytes")
    func size() throws {
        let sizes = try (0..<console_file_count()).map { index in
            let path = String(cString: console_file_at(index).path)
            let file = try #require(ConsolePages.embedded.file(path.split(separator: "/").map(String.init)))
            return file.packed?.count ?? file.bytes.count
        }
        #expect(sizes.count > 40 && sizes.reduce(0, +) <= 300_000, "\(sizes.reduce(0, +)) bytes")
    }

    @Test("a folder is served as it is, and nothing outside it")
    func folder() async throws {
        try await TemporaryFolder.with { folder in
            try FileManager.default.createDirectory(atPath: folder + "/web/core", withIntermediateDirectories: true)
            func write(_ text: String, to path: String) throws {
                try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(path)"))
            }
            for path in ["secret", "web/core/a.js", "web/.hidden"] { try write("let a", to: path) }
            let pages = ConsolePages(folder: folder + "/web")
            let file = try #require(pages.file(["core", "a.js"]))
            #expect(file.bytes == Array("let a".utf8) && file.contentType == "text/javascript; charset=UTF-8")
            try write("let b", to: "web/core/a.js")
            #expect(pages.file(["core", "a.js"])?.bytes == Array("let b".utf8))
            for path in [
                ["..", "secret"], ["../secret"], [".hidden"], ["core"], [], ["core/a.js"], ["core", "..", "x"],
            ] {
                #expect(pages.file(path) == nil, "\(path)")
            }
        }
    }
}
