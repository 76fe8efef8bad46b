import Admission
import RecordModel
import Service

/// What was posted to a sign-in page: the fields of an HTML form, or the members of a JSON object. Of more than
/// `fieldsMax` fields, the rest is not looked at.
struct SignInForm: Sendable {
    /// Many more than any form here has.
    static let fieldsMax = 32

    private var fields: [(name: String, value: String)]

    /// Reads `application/x-www-form-urlencoded`; what is not well-formed stays as it is.
    init(urlEncoded body: [UInt8]) {
        func decode(_ text: ArraySlice<UInt8>) -> String { RequestURL.decode(text, plusIsSpace: true) }
        fields = body.split(separator: UInt8(ascii: "&"), maxSplits: Self.fieldsMax).prefix(Self.fieldsMax).map {
            pair in
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (decode(sides[0]), sides.count < 2 ? "" : decode(sides[1]))
        }
    }

    /// Reads a JSON object; members that are neither text nor true or false are ignored.
    /// - Throws: `BAD_REQUEST` for what is no JSON object.
    init(json body: [UInt8]) throws(RequestFailure) {
        fields = try body.jsonMembers().prefix(Self.fieldsMax).compactMap { member in
            switch member.value {
            case .string(let text): (member.key, text)
            case .bool(let flag): (member.key, flag ? "true" : "")
            default: nil
            }
        }
    }

    /// The first field of that name; nil where it is missing or empty.
    subscript(name: String) -> String? {
        fields.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    /// A field that must be there.
    func need(_ name: String) throws(RequestFailure) -> String {
        guard let value = self[name] else { throw .badRequest("\(name): a text is expected") }
        return value
    }

    /// Whether a box was ticked.
    var keepsSignedIn: Bool { self["keepSignedIn"] != nil }
}

/// Text in URLs.
enum URLText {
    private static let unreserved = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)

    /// A value for a query or a form: everything but letters, digits and `-._~` is escaped.
    static func escape(_ text: String) -> String {
        text.utf8.map { byte in
            unreserved.contains(byte) ? String(Unicode.Scalar(byte)) : "%" + Hex.encode([byte]).uppercased()
        }.joined()
    }

    /// `a=b&c=d`.
    static func query(_ parameters: [(name: String, value: String)]) -> String {
        parameters.map { "\(escape($0.name))=\(escape($0.value))" }.joined(separator: "&")
    }

    /// A URL with more parameters; a fragment stays at the end.
    static func adding(_ parameters: [(name: String, value: String)], to url: String) -> String {
        let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let base = parts[0]
        let separator = !base.contains("?") ? "?" : base.hasSuffix("?") || base.hasSuffix("&") ? "" : "&"
        return "\(base)\(separator)\(query(parameters))" + (parts.count > 1 ? "#\(parts[1])" : "")
    }

    /// Scheme, host and port of an `http` or `https` URL, or the scheme with its colon of another, such as an app's
    /// own: what a content security policy names a place by. Nil for what is no URL.
    static func origin(of url: String) -> String? {
        guard let colon = url.firstIndex(of: ":") else { return nil }
        let scheme = url[..<colon].lowercased()
        guard let first = scheme.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first),
            scheme.utf8.allSatisfy({ unreserved.contains($0) && $0 != UInt8(ascii: "_") || $0 == UInt8(ascii: "+") })
        else { return nil }
        guard scheme == "http" || scheme == "https" else { return scheme + ":" }
        let rest = url[url.index(after: colon)...]
        guard rest.hasPrefix("//") else { return nil }
        let authority = rest.dropFirst(2).prefix { !"/?#".contains($0) }.lowercased()
        let allowed = authority.utf8.allSatisfy {
            unreserved.contains($0) || [UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]")].contains($0)
        }
        return authority.isEmpty || !allowed ? nil : "\(scheme)://\(authority)"
    }
}

/// The name a browser has while somebody signs in: a random value in a cookie, which the form repeats.
///
/// A page elsewhere can make a browser post a form, but neither read nor set this cookie; so nobody can be signed in to
/// somebody else's account without noticing.
struct BrowserCookie: Hashable, Sendable {
    /// The prefix has browsers accept it from this host over TLS only.
    static let name = "__Host-zonekeeper-sign-in"

    /// 32 hexadecimal digits.
    let value: String

    init() { value = Page.randomHex() }

    /// The one of a request's `Cookie` header, if it is there and well-formed.
    init?(header: String?) {
        guard let text = Self.value(of: Self.name, in: header), text.utf8.count == 32,
            text.utf8.allSatisfy(\.isLowercaseHexDigit)
        else { return nil }
        value = text
    }

    /// The first cookie of a name in a request's `Cookie` header.
    static func value(of name: String, in header: String?) -> String? {
        for pair in header?.split(separator: ";") ?? [] {
            let sides = pair.split(separator: "=", maxSplits: 1)
            guard sides.count == 2, sides[0].filter({ $0 != " " }) == name else { continue }
            return sides[1].filter { $0 != " " }
        }
        return nil
    }

    /// As the answer's `Set-Cookie` header; it ends with the link it is for.
    var header: (name: String, value: String) {
        ("set-cookie", "\(Self.name)=\(value); Path=/; Max-Age=1800; Secure; HttpOnly; SameSite=Lax")
    }

    func matches(_ other: String?) -> Bool { other.map { isSameSecret($0, value) } ?? false }
}

extension KnownBrowser {
    static let cookieName = "__Host-zonekeeper-known"
    /// Of an administrator; the same browser may be a user's, too.
    static let administratorCookieName = "__Host-zonekeeper-known-administrator"

    /// The one of a request's `Cookie` header, if this cluster gave it and it has not expired.
    init?(header: String?, cookie: String = cookieName, signer: SessionSigner, now: Int64) {
        guard let text = BrowserCookie.value(of: cookie, in: header) else { return nil }
        self.init(sealed: text, by: signer, now: now)
    }

    /// The answer's `Set-Cookie` header that has a browser keep it.
    static func header(_ sealed: String, cookie: String = cookieName) -> (name: String, value: String) {
        ("set-cookie", "\(cookie)=\(sealed); Path=/; Max-Age=\(lifetimeSeconds); Secure; HttpOnly; SameSite=Lax")
    }
}

/// Compares without stopping at the first difference.
func isSameSecret(_ left: String, _ right: String) -> Bool {
    guard left.utf8.count == right.utf8.count else { return false }
    return zip(left.utf8, right.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}
