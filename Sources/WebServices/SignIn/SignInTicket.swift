import Admission
import Wire

/// What the link to the sign-in page carries, sealed: for which API token it was made, under which origin, and for
/// which page.
struct SignInTicket: Hashable, Sendable {
    static let purpose = "sign-in"
    /// Clients ask for a new link at most every 14 minutes, so one must be good for longer.
    static let lifetimeMilliseconds: Int64 = 20 * 60_000

    /// The API token's id.
    var tokenID: String
    /// How browsers reach this cluster, such as `https://zk.example.com:8443`: pages of other origins may not post the
    /// form.
    var origin: String
    /// The origin of the page that asked for the link, and that is told of the session; nil where no page asked.
    var asker: String?
}

extension SignInTicket: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1, tokenID)
        writer.field(2, origin)
        if let asker { writer.field(3, asker) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(tokenID: "", origin: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: tokenID = try reader.string()
            case 2: origin = try reader.string()
            case 3: asker = try reader.string()
            default: try reader.skip()
            }
        }
    }
}

/// What travels to an identity provider and back as `state`, sealed.
struct ProviderState: Hashable, Sendable {
    static let purpose = "provider"
    static let lifetimeMilliseconds: Int64 = 15 * 60_000

    var ticket: SignInTicket
    var provider: String
    /// What the identity token must repeat.
    var nonce: String
    /// The secret of PKCE (RFC 7636); only who holds it can use the code.
    var verifier: String
    var keepsSignedIn: Bool
    /// The browser that began: the callback must come from the same.
    var browser: String
}

extension ProviderState: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1, ticket.tokenID)
        writer.field(2, ticket.origin)
        writer.field(3, provider)
        writer.field(4, nonce)
        writer.field(5, verifier)
        writer.field(6, keepsSignedIn)
        writer.field(7, browser)
        if let asker = ticket.asker { writer.field(8, asker) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(
            ticket: SignInTicket(tokenID: "", origin: ""), provider: "", nonce: "", verifier: "", keepsSignedIn: false,
            browser: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: ticket.tokenID = try reader.string()
            case 2: ticket.origin = try reader.string()
            case 3: provider = try reader.string()
            case 4: nonce = try reader.string()
            case 5: verifier = try reader.string()
            case 6: keepsSignedIn = try reader.bool()
            case 7: browser = try reader.string()
            case 8: ticket.asker = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
