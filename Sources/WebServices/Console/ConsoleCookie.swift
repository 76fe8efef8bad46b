import Directory
import RecordModel
import Service
import Wire

/// The cookie of a session in the console: its secret, and when the browser used it, sealed for this cluster.
///
/// Browsers share cookies among the ports of a host. Nodes of one cluster there share the sign-in; another cluster
/// looks for another name, and could not open this one.
struct ConsoleCookie: Hashable, Sendable {
    private static let purpose = "console-session"

    var secret: String
    /// Milliseconds since 1970.
    var lastUsed: Int64

    /// How long a cookie goes on before the browser gets one with the present time.
    static let renewedAfterMilliseconds: Int64 = 60_000

    /// The prefix has browsers accept it from this host over TLS only.
    static func name(_ secret: ClusterSecret) -> String {
        "__Host-zk-console-" + Hex.encode(Array(secret.code(of: [], purpose: "console-cookie").prefix(4)))
    }

    init(_ session: ConsoleSession) {
        secret = session.secret
        lastUsed = session.lastUsed
    }

    /// The one of a cookie's value; nil where this cluster did not make it.
    init?(_ text: String, _ secret: ClusterSecret) {
        guard text.utf8.count < 1_024, let sealed = Base64URL.decode(text[...]),
            let payload = secret.open(sealed, purpose: Self.purpose),
            let cookie = try? ConsoleCookie(decoding: payload)
        else { return nil }
        self = cookie
    }

    /// As the answer's `Set-Cookie` header.
    func header(_ secret: ClusterSecret) -> (name: String, value: String) {
        let value = Base64URL.encode(secret.seal(encoded(), purpose: Self.purpose))
        return Self.header(secret, value: value, seconds: ConsoleSession.lifetimeMilliseconds / 1_000)
    }

    /// Has the browser forget it.
    static func removal(_ secret: ClusterSecret) -> (name: String, value: String) {
        header(secret, value: "", seconds: 0)
    }

    private static func header(
        _ secret: ClusterSecret, value: String, seconds: Int64
    ) -> (name: String, value: String) {
        (
            "set-cookie",
            "\(name(secret))=\(value); Path=/; Max-Age=\(seconds); Secure; HttpOnly; SameSite=Strict"
        )
    }

    /// What a request that changes something must say beside its cookie: pages of other places cannot know it.
    static func csrfToken(of session: ConsoleSession, _ secret: ClusterSecret) -> String {
        Hex.encode(secret.code(of: Array(session.secret.utf8), purpose: "console-csrf"))
    }
}

extension ConsoleCookie: WireMessage {
    static var blank: Self { ConsoleCookie(secret: "", lastUsed: 0) }

    private init(secret: String, lastUsed: Int64) {
        self.secret = secret
        self.lastUsed = lastUsed
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &secret)
        try wire.required(2, &lastUsed)
    }
}
