import RecordModel
import Synchronization

/// What Apple's store does not tell.
extension NSUbiquitousKeyValueStore {
    /// How a key stands between this device and the server.
    public enum KeyStatus: Hashable, Sendable {
        /// It has no value.
        case absent
        /// The server has the value.
        case synced
        /// The value, or its removal, is on its way, or goes as soon as the server can be reached.
        case pending
        /// It was set before the server's values were read for the first time, and loses to any that the server has.
        case provisional
        /// The last write was refused; the key is what it was before.
        case refused(Refusal)
    }

    /// A write that did not happen.
    public struct Refusal: Hashable, Sendable, CustomStringConvertible {
        public var key: String
        /// Whether the store is too full; other writes break a rule whatever else there is.
        public var isQuotaViolation: Bool
        /// What was wrong, and what to do.
        public var reason: String

        public var description: String { reason }

        init(_ refusal: PreferenceRefusal) {
            key = refusal.key.text
            isQuotaViolation = refusal.rule.isQuota
            reason = refusal.reason
        }
    }

    /// How the store stands.
    public struct Status: Hashable, Sendable {
        /// Whether a server and a session are configured.
        public var isConfigured: Bool
        /// The user's record name, as soon as it is known.
        public var userRecordName: String?
        /// Whether the server's values were ever read to their end.
        public var isInitialSyncCompleted: Bool
        /// Whether the server has all that was set here.
        public var isSynchronized: Bool
        /// Keys that have a value.
        public var keyCount: Int
        /// Bytes of all values; at most 1,048,576.
        public var byteCount: Int
        /// Why the last request to the server failed; nil if it did not.
        public var serviceProblem: String?
        /// Why the copy on disk could not be read or written; nil if it could. Values live in memory only then.
        public var storageProblem: String?
    }

    /// How a key stands.
    public func status(forKey key: String) -> KeyStatus {
        switch engine.state.withLock({ $0.core.status(of: PreferenceKey(key)) }) {
        case .absent: .absent
        case .synced: .synced
        case .pending, .uploading: .pending
        case .provisional: .provisional
        case .refused(let refusal): .refused(Refusal(refusal))
        }
    }

    /// How the store stands.
    public var status: Status {
        engine.state.withLock { state in
            let usage = state.core.copy.usage
            return Status(
                isConfigured: state.service != nil, userRecordName: state.core.account,
                isInitialSyncCompleted: state.core.copy.isInitialSyncDone,
                isSynchronized: state.core.isSettled && state.unsaved.isEmpty, keyCount: usage.keys,
                byteCount: usage.bytes, serviceProblem: state.serviceProblem, storageProblem: state.storageProblem)
        }
    }

    /// The writes that were refused, latest last, at most one a key and 64 in all; a later write of the key takes it away.
    public var refusals: [Refusal] { engine.state.withLock { $0.core.refusals.map { Refusal($0) } } }

    /// Returns when the server's values were read to their end, in this run or an earlier one. Set defaults after that.
    /// - Throws: `SyncError.notSignedIn` where there is nobody to wait for; `CancellationError`.
    public func waitForInitialSync() async throws {
        do { try await engine.waitForInitialSync() } catch { throw Self.public(error) }
    }

    /// Sends what was set and fetches what others set, now; when it returns, both are done.
    /// - Throws: `SyncError` that says why not, or which writes were refused. What could not be sent is sent later, by itself.
    public func synchronizeNow() async throws {
        do { try await engine.synchronizeNow() } catch { throw Self.public(error) }
    }

    /// As `set`, but also wins over a value that this device has not seen: a setting just chosen by hand on a new device, say.
    public func setExplicitly(_ object: Any?, forKey key: String) { set(object, forKey: key, isExplicit: true) }

    /// Saves, and ends the background work. The store can be read afterwards; what is set is kept nowhere.
    public func close() { engine.close() }

    /// Why preferences could not be synchronised.
    public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What kind of failure it is.
        public struct Code: Hashable, Sendable {
            private var name: String
            /// Nobody is signed in, no server is configured, or the session was refused.
            public static let notSignedIn = Code(name: "notSignedIn")
            /// The server cannot be reached, or says to come back later.
            public static let unavailable = Code(name: "unavailable")
            /// Writes were refused: see `refusals`.
            public static let refused = Code(name: "refused")
            /// The store was closed.
            public static let closed = Code(name: "closed")
        }

        public var code: Code
        /// What was wrong, and what to do.
        public var description: String
        public var refusals: [Refusal] = []
    }

    private static func `public`(_ error: any Error) -> any Error {
        guard let problem = error as? PreferenceEngineProblem else { return error }
        return switch problem {
        case .closed: SyncError(code: .closed, description: "the store was closed")
        case .notSignedIn(let reason): SyncError(code: .notSignedIn, description: reason)
        case .unavailable(let reason): SyncError(code: .unavailable, description: reason)
        case .refused(let refusals):
            SyncError(
                code: .refused, description: refusals.map(\.reason).joined(separator: "; "),
                refusals: refusals.map { Refusal($0) })
        }
    }
}
