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
        return String(decoding: writer.bytes, as: UTF8.self).replacing([
            "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u{2028}": "\\u2028", "\u{2029}": "\\u2029",
        ])
    }
}

/// Text that may stand in HTML as it is: literals are, everything else is escaped on its way in.
///
/// `"<p>\(name)</p>" as HTML` escapes `name`; there is no other way for text to get into a page.
struct HTML: Sendable, ExpressibleByStringInterpolation {
    private(set) var text: String

    init(stringLiteral value: String) { text = value }

    init(stringInterpolation: Interpolation) { text = stringInterpolation.text }

    /// Several pieces, one after the other.
    init(_ pieces: [HTML]) { text = pieces.map(\.text).joined() }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate(set) var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        mutating func appendInterpolation(_ html: HTML) { text += html.text }

        mutating func appendInterpolation(_ html: HTML?) { text += html?.text ?? "" }

        /// Text of any origin, for content and for attributes in double quotes.
        mutating func appendInterpolation(_ value: String) { text += value.escapedForHTML }
    }
}

extension String {
    /// The text as it may stand in HTML: as content, and in attributes in quotes.
    package var escapedForHTML: String {
        replacing(["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"])
    }

    fileprivate func replacing(_ others: [Unicode.Scalar: String]) -> String {
        unicodeScalars.reduce(into: "") { text, scalar in
            if let other = others[scalar] { text += other } else { text.unicodeScalars.append(scalar) }
        }
    }
}

/// The look of the sign-in pages: readable in a popup of 640 x 525, on a phone, in the dark, and without any of it.
enum PageStyle {
    static let sheet: HTML = """

        :root { color-scheme: light dark; --ink: #1b1d22; --soft: #5b616e; --line: #c3c8d1; --paper: #fff; --back: #f1f3f6;
          --act: #1259c3; --act-ink: #fff; --bad: #a11b1b; --bad-back: #fdecec; }
        @media (prefers-color-scheme: dark) {
          :root { --ink: #eceef2; --soft: #a5acb9; --line: #4a505c; --paper: #1f2228; --back: #15171b;
            --act: #7ab0ff; --act-ink: #0d1522; --bad: #ffb4b4; --bad-back: #3d1c1e; } }
        * { box-sizing: border-box; }
        body { margin: 0; min-height: 100vh; display: flex; padding: 1rem; background: var(--back); color: var(--ink);
          font: 1rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
        main { width: 100%; max-width: 26rem; margin: auto; padding: 1.25rem 1.5rem; background: var(--paper);
          border: 1px solid var(--line); border-radius: .6rem; }
        h1 { font-size: 1.35rem; line-height: 1.2; margin: 0 0 .15rem; }
        p { margin: .35rem 0; overflow-wrap: anywhere; }
        .soft { color: var(--soft); font-size: .9rem; }
        .bad { margin: .75rem 0 0; padding: .5rem .7rem; border-radius: .4rem; color: var(--bad);
          background: var(--bad-back); }
        form { margin: .75rem 0 0; }
        label { display: block; font-size: .9rem; margin: .55rem 0 .15rem; }
        label.tick { display: flex; gap: .5rem; align-items: center; margin: .7rem 0; }
        label.tick input { width: 1.05rem; height: 1.05rem; margin: 0; }
        input[type=text], input[type=password] { width: 100%; font: inherit; color: inherit; background: var(--back);
          padding: .45rem .6rem; border: 1px solid var(--line); border-radius: .4rem; }
        button { width: 100%; font: inherit; padding: .5rem .7rem; margin: .25rem 0 0; border-radius: .4rem; cursor: pointer;
          border: 1px solid var(--line); color: inherit; background: transparent; }
        button.main { font-weight: 600; color: var(--act-ink); background: var(--act); border-color: var(--act); }
        input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid var(--act); outline-offset: 2px; }
        a { color: var(--act); }
        .or { display: flex; align-items: center; gap: .6rem; margin: .7rem 0 .3rem; color: var(--soft); font-size: .85rem; }
        .or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
        .providers { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0 .5rem; }
        .foot { display: flex; justify-content: space-between; align-items: center; gap: 1rem; margin: .8rem 0 0;
          font-size: .9rem; }
        .foot form { margin: 0; }
        .foot button { width: auto; border: 0; padding: .2rem 0; margin: 0; color: var(--act); text-decoration: underline; }

        """
}
