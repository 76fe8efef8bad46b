import Admission
import RecordModel
import Service

/// The name a browser has while somebody signs in: a random value in a cookie, which the form repeats.
///
/// A page elsewhere can make a browser post a form, but neither read nor set this cookie; so nobody can be signed in to
/// somebody else's account without noticing.
struct BrowserCookie: Hashable, Sendable {
    /// The prefix has browsers accept it from this host over TLS only.
    static let name = "__Host-zonekeeper-sign-in"

    /// 32 hexadecimal digits.
    let value: String

    /// A new one.
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
