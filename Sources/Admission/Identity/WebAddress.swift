package import RecordModel

/// An address of the web, taken apart as far as it is needed here: scheme, host and port, and the rest untouched.
///
/// Stricter than RFC 3986: `http` or `https` only, no user names, no spaces, printable ASCII only.
package struct WebAddress: Hashable, Sendable {
    /// Whether it is `https`.
    package let isSecure: Bool
    /// In small letters; an IPv6 address in its brackets.
    package let host: String
    /// nil where it is the scheme's own.
    package let port: Int?
    /// From the first `/`, `?` or `#` on.
    package let rest: String

    /// Nil for a text that is none.
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
        let lowered = text.lowercased()
        guard let scheme = ["https://", "http://"].first(where: lowered.hasPrefix) else { return nil }
        isSecure = scheme == "https://"
        let afterScheme = text.dropFirst(scheme.count)
        let authority = afterScheme.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        rest = String(afterScheme.dropFirst(authority.count))
        guard let (host, portText) = Self.split(authority.lowercased()) else { return nil }
        self.host = host
        guard let portText else {
            port = nil
            return
        }
        guard portText.utf8.allSatisfy(\.isASCIIDigit), let number = Int(portText), (1...65_535).contains(number)
        else { return nil }
        port = number == (isSecure ? 443 : 80) ? nil : number
    }

    /// Host and port of an authority in small letters.
    private static func split(_ authority: String) -> (host: String, port: Substring?)? {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            let host = authority[...end]
            guard host.count > 2, host.dropFirst().dropLast().allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." })
            else { return nil }
            let after = authority[authority.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            return (String(host), after.isEmpty ? nil : after.dropFirst())
        }
        let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, let host = parts.first, !host.isEmpty,
            host.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "-" || $0 == "." || $0 == "_" })
        else { return nil }
        return (String(host), parts.count == 2 ? parts[1] : nil)
    }

    /// As browsers write it in the header `Origin`.
    package var origin: String {
        (isSecure ? "https://" : "http://") + host + (port.map { ":\($0)" } ?? "")
    }

    /// Whether it names this machine.
    var isLoopback: Bool {
        host == "localhost" || host == "[::1]" || Self.isLoopbackAddress(host)
    }

    /// Whether it is an address of IPv4 in 127.0.0.0/8; a name that only begins so is not.
    private static func isLoopbackAddress(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil && !$0.hasPrefix("+") }
    }
}

/// Which web pages may use an API token: those from its list of origins, or all where the list is empty.
package enum OriginRule {
    /// Whether a request with this `Origin` header may use a token with this list.
    ///
    /// A request without the header does not come from a page of another origin, and is allowed; what holds programs
    /// off is not this list. The opaque origin `null` of sandboxed pages is on no list.
    package static func allows(_ origin: String?, _ allowed: [String]) -> Bool {
        guard let origin, !allowed.isEmpty else { return true }
        guard let origin = comparable(origin) else { return false }
        return allowed.contains { comparable($0) == origin }
    }

    /// The form in which an origin is stored in a token's list: `https://app.example`, with a port where it is not the
    /// scheme's.
    /// - Throws: `BAD_REQUEST` where the text is no origin: a path, a star, a missing scheme.
    package static func normalized(_ text: String) throws(ServiceError) -> String {
        guard let origin = comparable(text) else {
            throw ServiceError(
                .badRequest,
                "'\(text)' is no origin: give scheme, host and perhaps a port, such as https://app.example or "
                    + "http://localhost:8080; leave the list empty to allow every origin")
        }
        return origin
    }

    private static func comparable(_ text: String) -> String? {
        guard let address = WebAddress(text), address.rest.isEmpty || address.rest == "/" else { return nil }
        return address.origin
    }
}
