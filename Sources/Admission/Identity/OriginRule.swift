package import RecordModel

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
