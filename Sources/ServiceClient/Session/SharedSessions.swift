import AsyncHTTPClient
import Foundation
import Synchronization

extension ServiceSession {
    /// The session of a configuration's account. While it is referenced, every configuration of that account gets the
    /// same one.
    ///
    /// A new session asks for everything but its token again; `WebAuthTokens` keeps that.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package static func of(_ configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        try of(checked: configuration.checked())
    }

    /// The same for a configuration with normalized URLs.
    static func of(checked configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        let identity = configuration.identity
        return try sessions.withLock { sessions throws(ServiceClientError) in
            if let known = sessions.object(of: identity) { return known }
            let session = try ServiceSession(configuration)
            sessions.set(session, for: identity)
            return session
        }
    }

    /// The session of the configuration in force, which holds it.
    /// - Throws: an error that says what of it is missing or wrong.
    package static func current() throws(ServiceClientError) -> ServiceSession {
        try ServiceAccount.inForce().session()
    }

    private static let sessions = Mutex(WeakRegistry<ZonekeeperConfiguration.Identity, ServiceSession>())
}

/// HTTP clients by the authority that they trust. All sessions of a process share their connections, which close when
/// idle.
enum HTTPClients {
    private struct Kind: Hashable {
        var authority: String?
        var silenceSeconds: Int64
    }

    private static let clients = Mutex<[Kind: HTTPClient]>([:])

    static func shared(authority: String?, silenceSeconds: Int64) throws(ServiceClientError) -> HTTPClient {
        let kind = Kind(authority: authority, silenceSeconds: silenceSeconds)
        return try clients.withLock { clients throws(ServiceClientError) in
            if let known = clients[kind] { return known }
            let client = try ServiceClient.http(authority: authority, silenceSeconds: silenceSeconds)
            clients[kind] = client
            return client
        }
    }
}

/// Objects by key, held weakly.
struct WeakRegistry<Key: Hashable, Object: AnyObject> {
    private struct Entry {
        weak var object: Object?
    }

    private var entries: [Key: Entry] = [:]
    private var sweepCount = Self.sweepCountMin
    private static var sweepCountMin: Int { 64 }

    init() {}

    /// The number of entries, including those of released objects until the next sweep.
    var count: Int { entries.count }

    /// The object of a key; nil if there is none, or it was released.
    func object(of key: Key) -> Object? { entries[key]?.object }

    /// Adds an object. Entries of released objects are swept out from time to time, so that there are at most twice as
    /// many entries as there were live objects at the last sweep.
    mutating func set(_ object: Object, for key: Key) {
        if entries.count >= sweepCount {
            entries = entries.filter { $0.value.object != nil }
            sweepCount = max(entries.count * 2, Self.sweepCountMin)
        }
        entries[key] = Entry(object: object)
    }
}

/// Warnings about problems that make no call fail. Each text is written to standard error once a process.
package enum Warnings {
    private struct State {
        var said: Set<String> = []
        var listener: (@Sendable (String) -> Void)?
    }

    private static let state = Mutex(State())
    /// Bounds the memory for distinct texts.
    private static let textsMax = 256

    /// Writes a warning: what is wrong, where, and what to do. It must not contain a secret.
    package static func say(_ text: String) {
        let listener = state.withLock { state -> (@Sendable (String) -> Void)? in
            if let listener = state.listener { return listener }
            guard state.said.count < textsMax, state.said.insert(text).inserted else { return { _ in } }
            return nil
        }
        if let listener { return listener(text) }
        FileHandle.standardError.write(Data("zonekeeper: warning: \(text)\n".utf8))
    }

    /// Sends all warnings to a listener instead, or to standard error again (nil).
    static func redirect(to listener: (@Sendable (String) -> Void)?) { state.withLock { $0.listener = listener } }
}
