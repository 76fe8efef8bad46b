import Foundation
package import RecordModel

/// What an identity provider says of itself (OpenID Connect Discovery 1.0), held against what the administrator said of
/// it.
package struct ProviderDocument: Hashable, Sendable {
    /// The issuer's URL, letter by letter as the administrator gave it.
    package let issuer: String
    /// The URL to which the browser is sent: https, or http on this machine. It may have a query.
    package let authorizationEndpoint: String
    /// The URL at which a node exchanges a code for tokens: https, or http on this machine.
    package let tokenEndpoint: String
    /// The URL of the provider's public keys (`jwks_uri`): https, or http on this machine.
    package let keysEndpoint: String
    /// How a client may prove itself at the token endpoint; `client_secret_basic` where the document does not say.
    package let tokenAuthenticationMethods: [String]
    /// Whether the answer to the browser has a member `iss`, which then must be the issuer (RFC 9207).
    package let namesIssuerInAnswer: Bool

    /// The largest document that is worth reading, in bytes; of the document and of the keys.
    package static let documentBytesMax = 256 << 10

    /// Reads the document found at `address(ofIssuer:)`.
    ///
    /// - Parameter issuer: as the administrator gave it; the document must name the same, letter by letter.
    /// - Throws: `INTERNAL_ERROR` where the document is not one, is another issuer's, lacks an endpoint, has one
    ///   without TLS (but for a provider on this machine), or cannot do what is needed. The reason names the member; a
    ///   retry helps once the provider or its entry was mended.
    package init(parsing bytes: [UInt8], issuer: String) throws(ServiceError) {
        let json = try Self.parse(bytes, what: "discovery document", issuer: issuer)
        guard let named = json["issuer"]?.string, named == issuer else {
            throw Self.unusable(
                issuer,
                "its discovery document is that of '\(json["issuer"]?.string ?? "nobody")'; give that as issuer "
                    + "if it is meant"
            )
        }
        self.issuer = issuer
        authorizationEndpoint = try Self.endpoint("authorization_endpoint", in: json, issuer: issuer)
        tokenEndpoint = try Self.endpoint("token_endpoint", in: json, issuer: issuer)
        keysEndpoint = try Self.endpoint("jwks_uri", in: json, issuer: issuer)
        if let types = json["response_types_supported"]?.array, !types.contains(.string("code")) {
            throw Self.unusable(issuer, "it does not support the response type 'code'")
        }
        if let methods = json["code_challenge_methods_supported"]?.array, !methods.contains(.string("S256")) {
            throw Self.unusable(issuer, "it does not support the code challenge method 'S256'")
        }
        tokenAuthenticationMethods =
            json["token_endpoint_auth_methods_supported"]?.array?.compactMap(\.string) ?? ["client_secret_basic"]
        namesIssuerInAnswer = json["authorization_response_iss_parameter_supported"] == .bool(true)
    }

    /// Where the document of an issuer is.
    /// - Throws: `BAD_REQUEST` where the text cannot be an issuer: other than https (http on this machine), with a
    ///   query, a fragment or a user name. Ask it of what an administrator enters.
    package static func address(ofIssuer issuer: String) throws(ServiceError) -> String {
        guard let address = WebAddress(issuer), address.isSecure || address.isLoopback,
            !address.rest.contains(where: { $0 == "?" || $0 == "#" })
        else {
            throw ServiceError(
                .badRequest,
                "'\(issuer)' is no issuer: give its https address without query and fragment, such as "
                    + "https://accounts.example (http is for providers on this machine)")
        }
        return (issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer) + "/.well-known/openid-configuration"
    }

    /// Where the browser is sent to sign in.
    package func authorizationAddress(_ request: AuthorizationRequest) -> String {
        let parameters = [
            ("response_type", "code"), ("client_id", request.clientID), ("redirect_uri", request.redirectAddress),
            ("scope", request.scopes.joined(separator: " ")), ("state", request.state), ("nonce", request.nonce),
            ("code_challenge", request.codeChallenge), ("code_challenge_method", "S256"),
        ]
        let query = parameters.map { "\($0.0)=\(Self.escaped($0.1))" }.joined(separator: "&")
        return authorizationEndpoint + (authorizationEndpoint.contains("?") ? "&" : "?") + query
    }

    /// RFC 3986, section 2.3.
    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    /// An endpoint with TLS, or without on this machine for a provider that is there too.
    private static func endpoint(_ name: String, in json: JSONValue, issuer: String) throws(ServiceError) -> String {
        guard let text = json[name]?.string, let address = WebAddress(text), !address.rest.contains("#") else {
            throw unusable(issuer, "its discovery document has no address as '\(name)'")
        }
        let isLocal = address.isLoopback && WebAddress(issuer).map { !$0.isSecure && $0.isLoopback } ?? false
        guard address.isSecure || isLocal else {
            throw unusable(issuer, "its '\(name)' is '\(text)', which is not https")
        }
        return text
    }

    /// A JSON object that a provider served.
    static func parse(_ bytes: [UInt8], what: String, issuer: String) throws(ServiceError) -> JSONValue {
        guard bytes.count <= documentBytesMax else {
            throw unusable(issuer, "its \(what) is larger than \(documentBytesMax >> 10) KiB")
        }
        do throws(JSONError) {
            let json = try JSONParser.parse(bytes)
            if case .object = json { return json }
            throw JSONError(position: 0, expected: "an object", found: json.kind)
        } catch {
            throw unusable(issuer, "its \(what) is not JSON of an object: \(error)")
        }
    }

    static func unusable(_ issuer: String, _ reason: String) -> ServiceError {
        ServiceError(.internalError, "the identity provider '\(issuer)' cannot be used: \(reason)")
    }
}

/// What a node asks of a provider's authorization endpoint.
package struct AuthorizationRequest: Hashable, Sendable {
    /// This cluster's name at the provider.
    package var clientID: String
    /// Where the provider sends the browser afterwards.
    package var redirectAddress: String
    /// Comes back unchanged; a ticket.
    package var state: String
    /// Comes back in the identity token.
    package var nonce: String
    /// `PKCE.challenge`; the provider checks the verifier against it (S256) when the code is exchanged.
    package var codeChallenge: String
    /// Sent separated by spaces; `openid` makes the provider issue an identity token.
    package var scopes = ["openid", "email", "profile"]

    package init(clientID: String, redirectAddress: String, state: String, nonce: String, codeChallenge: String) {
        self.clientID = clientID
        self.redirectAddress = redirectAddress
        self.state = state
        self.nonce = nonce
        self.codeChallenge = codeChallenge
    }
}
