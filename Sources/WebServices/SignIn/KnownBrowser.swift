import Admission
import Directory
import Wire

/// A browser in which somebody signed in to an account before, by a sealed cookie that says so on every node.
///
/// Attempts from there have a limit of their own, so that others who guess at the name cannot keep its owner out. It is
/// no proof of who it is: the password is still asked for.
struct KnownBrowser: Hashable, Sendable {
    static let name = "__Host-zonekeeper-known"
    private static let purpose = "known-browser"
    private static let lifetimeSeconds: Int64 = 180 * 86_400

    var accountID: String
    /// Random, 32 hexadecimal digits: attempts are counted by it.
    var id: String

    /// A browser that is known from now on.
    init(accountID: String) {
        self.accountID = accountID
        id = AdminRequest.randomHex(bytes: 16)
    }

    /// The one of a request's `Cookie` header, if this cluster gave it and it has not expired.
    init?(header: String?, signer: SessionSigner, now: Int64) {
        guard let text = BrowserCookie.value(of: Self.name, in: header),
            let payload = signer.openTicket(text, purpose: Self.purpose, now: now),
            let known = try? KnownBrowser(decoding: payload)
        else { return nil }
        self = known
    }

    /// As the answer's `Set-Cookie` header.
    func header(signer: SessionSigner, now: Int64) -> (name: String, value: String) {
        let ticket = signer.ticket(encoded(), purpose: Self.purpose, expires: now + 1_000 * Self.lifetimeSeconds)
        return (
            "set-cookie",
            "\(Self.name)=\(ticket); Path=/; Max-Age=\(Self.lifetimeSeconds); Secure; HttpOnly; SameSite=Lax"
        )
    }
}

extension KnownBrowser: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1, accountID)
        writer.field(2, id)
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(accountID: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: accountID = try reader.string()
            case 2: id = try reader.string()
            default: try reader.skip()
            }
        }
    }
}

/// Where this node saw people sign in before, and how often they failed since, each place for itself.
///
/// Browsers are known on every node by their cookie; addresses, of programs that keep no cookies, on the node that they
/// signed in at.
final class KnownPlaces: Sendable {
    let lockouts = LocalLockouts()
    private let addresses = BoundedMemory<Int64>(countMax: 50_000)
    private static let lifetimeMilliseconds: Int64 = 30 * 86_400_000

    /// A name for the place of an attempt on an account; nil for one that is not known.
    func place(of accountID: String, browser: KnownBrowser?, address: String, now: Int64) -> String? {
        if let browser, browser.accountID == accountID { return "browser \(browser.id)" }
        let key = Self.key(accountID, address)
        guard let seen = addresses[key], now - seen < Self.lifetimeMilliseconds else { return nil }
        return key
    }

    /// That somebody signed in to the account from there.
    func didSignIn(_ accountID: String, address: String, now: Int64) {
        if address.isEmpty { return }
        addresses.change(Self.key(accountID, address), time: now) { _ in now }
    }

    private static func key(_ accountID: String, _ address: String) -> String { "address \(accountID) \(address)" }
}
