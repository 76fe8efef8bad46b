import ConsoleFiles
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import RecordModel
import Service

/// The console's files: those in the binary, or those of a folder while the console is worked on.
struct ConsolePages: Sendable {
    /// A file as browsers get it.
    struct File: Sendable {
        var bytes: [UInt8]
        /// The same in the form of gzip; nil where that is no shorter.
        var packed: [UInt8]?
        var contentType: String
        /// The hexadecimal digits of the bytes' SHA-256.
        var hash: String
        /// Whether it was asked for as a part of this very state of all files, and so never changes.
        var isFixed = false

        init(path: String, bytes: [UInt8]) {
            self.bytes = bytes
            packed = Self.pack(bytes)
            contentType = Self.contentType(of: path)
            hash = Hex.encode(Array(SHA256.hash(data: bytes)))
        }

        private static func pack(_ bytes: [UInt8]) -> [UInt8]? {
            let packed = [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
                count = bytes.isEmpty ? 0 : console_gzip(bytes, bytes.count, buffer.baseAddress, bytes.count)
            }
            return packed.isEmpty ? nil : packed
        }

        private static func contentType(of path: String) -> String {
            switch path.split(separator: ".").last {
            case "html": "text/html; charset=UTF-8"
            case "js": "text/javascript; charset=UTF-8"
            case "css": "text/css; charset=UTF-8"
            case "svg": "image/svg+xml"
            case "png": "image/png"
            case "json": "application/json; charset=UTF-8"
            default: "application/octet-stream"
            }
        }
    }

    private enum Source {
        /// Those of a state, which the page names in the URLs of the others: a browser keeps them, and asks for the
        /// page alone.
        case embedded([String: File], state: String)
        case folder(String)
    }

    private let source: Source

    /// Those in the binary.
    static let embedded: ConsolePages = {
        let files = (0..<console_file_count()).map { index in
            let file = console_file_at(index)
            return (
                path: String(cString: file.path), bytes: Array(UnsafeBufferPointer(start: file.bytes, count: file.size))
            )
        }
        var hash = SHA256()
        for file in files {
            hash.update(data: Array(file.path.utf8))
            hash.update(data: file.bytes)
        }
        let state = statePrefix + Hex.encode(Array(hash.finalize().prefix(8)))
        let named = files.map { file in
            let isPage = file.path == pageName
            return (file.path, File(path: file.path, bytes: isPage ? page(file.bytes, naming: state) : file.bytes))
        }
        return ConsolePages(source: .embedded(Dictionary(uniqueKeysWithValues: named), state: state))
    }()

    /// The one page.
    static let pageName = "index.html"
    private static let statePrefix = "~"

    private static func page(_ bytes: [UInt8], naming state: String) -> [UInt8] {
        let folder = "/console/files/"
        return Array(
            String(decoding: bytes, as: UTF8.self).replacingOccurrences(of: folder, with: "\(folder)\(state)/").utf8)
    }

    private init(source: Source) { self.source = source }

    /// Those of a folder, as it is when they are asked for.
    init(folder: String) { source = .folder(folder) }

    /// The file at a path below the console's folder.
    /// - Parameter path: the names of folders and of the file, after the state of all files where a page named one. A
    ///   page of another build gets what there is.
    func file(_ path: [String]) -> File? {
        let state = path.first.flatMap { $0.hasPrefix(Self.statePrefix) ? $0 : nil }
        let path = path.dropFirst(state == nil ? 0 : 1)
        let isPlain = path.allSatisfy { !$0.hasPrefix(".") && !$0.contains { $0 == "/" || $0 == "\0" } }
        guard isPlain, !path.isEmpty else { return nil }
        let name = path.joined(separator: "/")
        switch source {
        case .embedded(let files, let current):
            var file = files[name]
            file?.isFixed = state == current
            return file
        case .folder(let folder):
            return FileManager.default.contents(atPath: "\(folder)/\(name)").map { File(path: name, bytes: Array($0)) }
        }
    }
}

// `GET /console...`: the console's files. `/console/files/<path>` is a file, `/console/files/~<state>/<path>` the same;
// each other path below `/console` is an address within the console, which its one page shows.
extension WebResponder {
    func console(_ call: WebCall) throws(RequestFailure) -> Reply {
        guard call.request.method == .get || call.request.method == .head else {
            throw .badRequest(
                "the console is called with GET, not with \(call.request.method.rawValue)",
                details: .methods(["GET", "HEAD"]))
        }
        let isFile = call.url.segments.dropFirst().first == "files"
        let path = isFile ? Array(call.url.segments.dropFirst(2)) : [ConsolePages.pageName]
        guard let file = context.console.file(path) else {
            throw .notFound("the console has no file '\(path.joined(separator: "/"))'")
        }
        return Self.reply(with: file, to: call)
    }

    private static func reply(with file: ConsolePages.File, to call: WebCall) -> Reply {
        let packed = file.packed.flatMap { accepts(call.request.headers[.acceptEncoding], "gzip") ? $0 : nil }
        // Two forms of a file have two tags.
        let tag = "\"\(file.hash)\(packed == nil ? "" : "-gzip")\""
        let isKnown = (call.request.headers[.ifNoneMatch] ?? "").split(separator: ",").contains {
            $0.filter { $0 != " " } == tag || $0.filter { $0 != " " } == "W/" + tag
        }
        var reply = Reply(
            status: isKnown ? 304 : 200, body: isKnown ? [] : packed ?? file.bytes, contentType: file.contentType)
        reply.headers = headers
        reply.headers.append(("cache-control", file.isFixed ? "public, max-age=31536000, immutable" : "no-cache"))
        reply.headers.append(("etag", tag))
        reply.headers.append(("vary", "Accept-Encoding"))
        if packed != nil { reply.headers.append(("content-encoding", "gzip")) }
        return reply
    }

    /// Whether a header such as `gzip, br;q=0.5` names a form without refusing it.
    static func accepts(_ header: String?, _ name: String) -> Bool {
        (header ?? "").split(separator: ",").contains { entry in
            let parts = entry.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
            guard parts.first == name else { return false }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 }
            return weight != 0
        }
    }

    /// What holds a browser to these files: nothing runs, is loaded or is sent to that is not this server's own.
    private static let headers: [(name: String, value: String)] = [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
                + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
                + "trusted-types 'none'"
        ),
        ("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"), ("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"),
    ]
}
