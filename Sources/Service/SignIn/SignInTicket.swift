import Admission
package import Directory
package import RecordModel
package import Wire

/// What the link to the sign-in page carries, sealed: for which API token it was made, under which origin, and for
/// which page.
package struct SignInTicket: Hashable, Sendable {
    /// For which it is sealed.
    package static let purpose = "sign-in"
    /// Clients ask for a new link at most every 14 minutes, so one must be good for longer.
    static let lifetimeMilliseconds: Int64 = 20 * 60_000

    /// The API token's id.
    var tokenID: String
    /// How browsers reach this cluster, such as `https://zk.example.com:8443`: pages of other origins may not post the
    /// form.
    var origin: String
    /// The origin of the page that asked for the link, and that is told of the session; nil where no page asked.
    var asker: String?

    /// One for an API token.
    package init(tokenID: String, origin: String, asker: String? = nil) {
        self.tokenID = tokenID
        self.origin = origin
        self.asker = asker
    }

    /// What a link to the sign-in page carries; nil on a node without an encryption key.
    /// - Parameter asker: the origin of the page that asks for it, as its browser says.
    package static func sealed(
        for token: Token, origin: String, asker: String?, in service: RecordService
    ) -> String? {
        let ticket = SignInTicket(
            tokenID: token.id, origin: origin, asker: asker.flatMap { try? OriginRule.normalized($0) })
        return service.signer?.ticket(
            ticket.encoded(), purpose: purpose, expires: service.now + lifetimeMilliseconds)
    }
}

extension SignInTicket: WireMessage {
    package static var blank: Self { SignInTicket(tokenID: "", origin: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &tokenID)
        try wire.field(2, &origin)
        try wire.field(3, &asker)
    }
}

/// What travels to an identity provider and back as `state`, sealed.
package struct ProviderState: Hashable, Sendable {
    /// For which it is sealed.
    package static let purpose = "provider"
    static let lifetimeMilliseconds: Int64 = 15 * 60_000

    /// What the sign-in began with.
    package var ticket: SignInTicket
    /// Its name.
    package var provider: String
    /// What the identity token must repeat.
    var nonce: String
    /// The secret of PKCE (RFC 7636); only who holds it can use the code.
    var verifier: String
    var keepsSignedIn: Bool
    /// The browser that began: the callback must come from the same.
    package var browser: String
}

extension ProviderState: WireMessage {
    package static var blank: Self {
        ProviderState(ticket: .blank, provider: "", nonce: "", verifier: "", keepsSignedIn: false, browser: "")
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &ticket.tokenID)
        try wire.field(2, &ticket.origin)
        try wire.field(3, &provider)
        try wire.field(4, &nonce)
        try wire.field(5, &verifier)
        try wire.field(6, &keepsSignedIn)
        try wire.field(7, &browser)
        try wire.field(8, &ticket.asker)
    }
}

/// Whom a user signs in for: an API token, by which the request came here.
package struct SignInGoal: Sendable {
    var tokenID: String
    /// The token's.
    package var container: String
    /// The token's.
    package var environment: Environment
    /// Origins that may use the token; empty where all may.
    var origins: [String]
    /// Where the browser is sent; nil: the page that opened the window is told.
    package var callbackURL: String?
    /// The origin of this server's own pages, where a link began it.
    package var pageOrigin: String?
    /// The origin of the page that asked for the link; nil where no page asked.
    var asker: String?

    /// The origins whose pages may be told of the session: the one that asked, if the token may be used there. A link
    /// that no page asked for tells the token's listed origins, and no page where there is no list.
    package var audience: [String] {
        guard let asker else { return origins }
        return OriginRule.allows(asker, origins) ? [asker] : []
    }

    /// Nil for a token that is no API token.
    init?(_ token: Token, pageOrigin: String? = nil, asker: String? = nil) {
        guard case .api(let container, let environment, let origins, let callbackURL) = token.kind else { return nil }
        tokenID = token.id
        self.container = container
        self.environment = environment
        self.origins = origins
        self.callbackURL = callbackURL
        self.pageOrigin = pageOrigin
        self.asker = asker
    }
}
