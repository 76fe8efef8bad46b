import HTTPTypes
import Hummingbird
import RecordModel
import Service

// `GET /console...`: the console's files. `/console/files/<path>` is a file; each other path below `/console` is an
// address within the console, which its one page shows.
extension WebResponder {
    func console(_ call: WebCall) throws(RequestFailure) -> Reply {
        guard call.request.method == .get || call.request.method == .head else {
            throw .badRequest(
                "the console is called with GET, not with \(call.request.method.rawValue)",
                details: .methods(["GET", "HEAD"]))
        }
        let isFile = call.url.segments.dropFirst().first == "files"
        let path = isFile ? Array(call.url.segments.dropFirst(2)) : ["index.html"]
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
        ("cache-control", "no-cache"),
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
