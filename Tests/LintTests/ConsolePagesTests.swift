import Foundation
import Testing

@Suite("Lint of the console's pages")
struct ConsolePagesTests {
    private static let folder = Repository.root.appending(path: "Sources/ConsoleFiles/Web")

    private static func sources() throws -> [(path: String, text: String)] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
            .filter { [".js", ".html", ".css", ".svg"].contains(where: $0.hasSuffix) }
            .map { ($0, try String(contentsOf: folder.appending(path: $0), encoding: .utf8)) }
    }

    @Test("text never becomes markup, code or a style attribute")
    func noMarkupFromText() throws {
        let sources = try Self.sources()
        #expect(sources.count > 20)
        let forbidden = [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment",
            "eval(", "new Function", "style=", "\"style\"", "javascript:", "srcdoc",
        ]
        for (path, text) in sources {
            for word in forbidden { #expect(!text.contains(word), "\(path) has \(word)") }
        }
    }

    @Test("no file names an address elsewhere, but for the namespace of SVG and examples")
    func noForeignAddress() throws {
        for (path, text) in try Self.sources() {
            for found in text.matches(of: #/(?:https?:|["'(])\/\/([A-Za-z0-9.-]+)/#) {
                let host = found.1
                #expect(host == "www.w3.org" || host.hasSuffix("example.com"), "\(path) names \(host)")
            }
        }
    }

    @Test("each import, script and style sheet is a file that is there")
    func importsExist() throws {
        var imports = 0
        for (path, text) in try Self.sources() {
            let base = Self.folder.appending(path: path).deletingLastPathComponent()
            for found in text.matches(of: #/(?:from|import|href=|src=) ?"([^"]+)"/#) {
                imports += 1
                let name = String(found.1)
                let root = "/console/files/"
                let isWhole = name.hasPrefix(root)
                let folder = isWhole ? Self.folder : base
                let file = folder.appending(path: isWhole ? String(name.dropFirst(root.count)) : name)
                #expect(FileManager.default.fileExists(atPath: file.path), "\(path) names \(name)")
            }
        }
        #expect(imports > 100)
    }

    @Test("each request is an operation of the documented API")
    func requestsAreDocumented() throws {
        let data = try Data(contentsOf: Repository.root.appending(path: "Sources/WebServices/OpenAPI/openapi.json"))
        let document = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let hasSessions = paths["/admin/1/console/sign-in"] != nil
        var requests = 0
        for (file, text) in try Self.sources() {
            for found in text.matches(of: #/"(GET|POST|PUT|PATCH|DELETE) (\/[^"]+)"/#) {
                let (method, path) = (found.1.lowercased(), String(found.2))
                // A server without console sessions does not describe them either.
                if !hasSessions, path.hasPrefix("/admin/1/console/") || path == "/admin/1/administrators" { continue }
                requests += 1
                #expect(path == "/openapi.json" || paths[path]?[method] != nil, "\(file) sends \(method) \(path)")
            }
        }
        #expect(requests > 50)
    }
}
