import RecordModel

/// A whole page: its markup, what it may load and where it may send, and the headers that hold browsers to that.
///
/// Pages load nothing from anywhere: style and script are in them, under a nonce that no one else knows.
struct Page: Sendable {
    var title: String
    var body: HTML
    /// A script, without its tags; it must not contain text of others except through `Page.literal`.
    var script: String?
    /// Places that its forms may send to, and be redirected to, besides this server.
    var formTargets: [String] = []
    /// Where the browser goes on to by itself.
    var next: String?

    init(title: String, body: HTML) {
        self.title = title
        self.body = body
    }

    /// The answer. Pages are never stored, framed, or named to other sites.
    func reply(status: Int = 200, cookie: BrowserCookie? = nil) -> Reply {
        let nonce = Self.randomHex()
        var reply = Reply(
            status: status, body: Array(markup(nonce: nonce).text.utf8), contentType: "text/html; charset=UTF-8")
        reply.headers = Self.commonHeaders
        reply.headers.append(("content-security-policy", policy(nonce: nonce)))
        if let cookie { reply.headers.append(cookie.header) }
        return reply
    }

    /// 32 digits that nobody can guess.
    static func randomHex() -> String { Hex.encode((0..<16).map { _ in .random(in: 0 ... .max) }) }

    /// Headers of every answer that a browser shows or follows.
    static let commonHeaders: [(name: String, value: String)] = [
        ("cache-control", "no-store"), ("referrer-policy", "same-origin"), ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ]

    private func policy(nonce: String) -> String {
        var rules = [
            "default-src 'none'", "style-src 'nonce-\(nonce)'", "base-uri 'none'", "frame-ancestors 'none'",
            "form-action " + (["'self'"] + formTargets).joined(separator: " "),
        ]
        if script != nil { rules.append("script-src 'nonce-\(nonce)'") }
        return rules.joined(separator: "; ")
    }

    private func markup(nonce: String) -> HTML {
        let refresh: HTML? = next.map { "<meta http-equiv=\"refresh\" content=\"0; url=\($0)\">" }
        // The script's text is our own, and holds others' text as JSON literals only, where `<` is escaped.
        let scriptTag: HTML? = script.map {
            HTML(["<script nonce=\"\(nonce)\">", HTML(stringLiteral: $0), "</script>"])
        }
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="robots" content="noindex">
            \(refresh)
            <title>\(title)</title>
            <style nonce="\(nonce)">\(PageStyle.sheet)</style>
            </head>
            <body>
            <main>
            \(body)
            </main>
            \(scriptTag)
            </body>
            </html>

            """
    }

    /// A JSON value as a literal in a script: nothing in it can end the script.
    static func literal(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        write(&writer)
        var text = ""
        for scalar in String(decoding: writer.bytes, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "<": text += "\\u003c"
            case ">": text += "\\u003e"
            case "&": text += "\\u0026"
            case "\u{2028}": text += "\\u2028"
            case "\u{2029}": text += "\\u2029"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
