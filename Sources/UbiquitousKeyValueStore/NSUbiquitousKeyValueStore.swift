// Apple's names begin with the class's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Dispatch
public import Foundation
import RecordModel
import Synchronization

// Unchecked because its base class promises nothing; it adds one constant, which is Sendable.
/// A user's preferences, the same on all the user's devices: at most 1,024 keys of at most 64 bytes each, 1 MB in all.
///
/// Values are property lists. They are read and set in memory and kept in a file; a background task uploads what was
/// set and brings what other devices set, of which `didChangeExternallyNotification` tells. Without a network, a server
/// or a session everything works on this device and is reconciled later. From any thread.
///
/// There is one store: `default` and whatever `init` gives are the same object.
public final class NSUbiquitousKeyValueStore: NSObject, OneInstance, @unchecked Sendable {
    /// The store of the current configuration.
    public class var `default`: NSUbiquitousKeyValueStore { shared }

    private static let shared: NSUbiquitousKeyValueStore = {
        let store = NSUbiquitousKeyValueStore(engine: ConfiguredPreferences.engine())
        // What was set in the program's last moment.
        atexit { NSUbiquitousKeyValueStore.shared.engine.saveLast() }
        return store
    }()

    let engine: PreferenceEngine

    /// The store that `default` is.
    public override convenience init() { self.init(being: { .shared }) }

    /// A store of its own, for tests: it does not look at the configuration.
    init(engine: PreferenceEngine, queue: DispatchQueue = .main) {
        self.engine = engine
        chosenQueue = Mutex(queue)
        super.init()
        engine.onChange { [weak self] notification in self?.post(notification) }
        engine.start()
    }

    private let chosenQueue: Mutex<DispatchQueue>

    /// Where notifications are posted; usually the main queue. A program whose main queue is never served names
    /// another.
    public var notificationQueue: DispatchQueue {
        get { chosenQueue.withLock { $0 } }
        set { chosenQueue.withLock { $0 = newValue } }
    }

    private func post(_ notification: PreferenceNotification) {
        notificationQueue.async {
            NotificationCenter.default.post(
                name: Self.didChangeExternallyNotification, object: self,
                userInfo: [
                    NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: notification.reason.rawValue),
                    NSUbiquitousKeyValueStoreChangedKeysKey: notification.keys,
                ])
        }
    }

    // Any property list.

    /// The key's value: a string, number, Boolean, date, data, or an array or dictionary of such; nil for none.
    public func object(forKey aKey: String) -> Any? { engine.value(PreferenceKey(aKey))?.plist }

    /// Sets a property list, or removes the key (nil). What is no property list, or breaks a limit, is refused: see
    /// `refusals`.
    public func set(_ anObject: Any?, forKey aKey: String) { set(anObject, forKey: aKey, isExplicit: false) }

    /// Removes a key on all devices.
    public func removeObject(forKey aKey: String) { edit(nil, aKey) }

    /// All keys with their values.
    public var dictionaryRepresentation: [String: Any] {
        Dictionary(engine.values.map { ($0.key.text, $0.value.plist) }, uniquingKeysWith: { _, last in last })
    }

    /// Writes to disk what is in memory, takes over what other processes wrote there, and asks for the server's news.
    ///
    /// It forces no upload; one follows shortly by itself. See `synchronizeNow()` for that.
    /// - Returns: whether memory and disk agree.
    @discardableResult
    public func synchronize() -> Bool { engine.reconcile() }

    func edit(_ value: PropertyValue?, _ key: String, isExplicit: Bool = false) {
        engine.edit(PreferenceEdit(key: PreferenceKey(key), value: value, isExplicit: isExplicit))
    }

    func set(_ object: Any?, forKey key: String, isExplicit: Bool) {
        guard let object else { return edit(nil, key, isExplicit: isExplicit) }
        do throws(NotAPropertyList) {
            edit(try PropertyValue(plist: object), key, isExplicit: isExplicit)
        } catch {
            engine.refuse(
                PreferenceRefusal(key: PreferenceKey(key), rule: error.rule, reason: "'\(key.prefix(80))': \(error)"))
        }
    }
}

/// Lets an initialiser of a class return an object that is there already.
protocol OneInstance {}

extension OneInstance {
    init(being instance: () -> Self) { self = instance() }
}

extension NSUbiquitousKeyValueStore {
    /// The key's value if it is a string.
    public func string(forKey aKey: String) -> String? {
        if case .string(let text) = value(aKey) { text } else { nil }
    }

    /// The key's value if it is an array.
    public func array(forKey aKey: String) -> [Any]? {
        if case .array(let members) = value(aKey) { members.map(\.plist) } else { nil }
    }

    /// The key's value if it is a dictionary.
    public func dictionary(forKey aKey: String) -> [String: Any]? {
        if case .dictionary = value(aKey) { value(aKey)?.plist as? [String: Any] } else { nil }
    }

    /// The key's value if it is data.
    public func data(forKey aKey: String) -> Data? {
        if case .data(let bytes) = value(aKey) { Data(bytes) } else { nil }
    }

    /// The key's number, a fraction cut off; 0 if it has none.
    public func longLong(forKey aKey: String) -> Int64 {
        switch value(aKey) {
        case .int64(let number): number
        case .double(let number): Int64(exactly: number.rounded(.towardZero)) ?? 0
        case .bool(let flag): flag ? 1 : 0
        default: 0
        }
    }

    /// The key's number; 0 if it has none.
    public func double(forKey aKey: String) -> Double {
        switch value(aKey) {
        case .int64(let number): Double(number)
        case .double(let number): number
        case .bool(let flag): flag ? 1 : 0
        default: 0
        }
    }

    /// Whether the key is true, or a number other than 0; false if it is neither.
    public func bool(forKey aKey: String) -> Bool {
        switch value(aKey) {
        case .bool(let flag): flag
        case .int64(let number): number != 0
        case .double(let number): number != 0
        default: false
        }
    }

    /// Sets a string, or removes the key (nil).
    public func set(_ aString: String?, forKey aKey: String) { edit(aString.map { .string($0) }, aKey) }

    /// Sets data, or removes the key (nil).
    public func set(_ aData: Data?, forKey aKey: String) { edit(aData.map { .data(Array($0)) }, aKey) }

    /// Sets an array of property lists, or removes the key (nil).
    public func set(_ anArray: [Any]?, forKey aKey: String) { set(anArray as Any?, forKey: aKey, isExplicit: false) }

    /// Sets a dictionary of property lists, or removes the key (nil).
    public func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
        set(aDictionary as Any?, forKey: aKey, isExplicit: false)
    }

    /// Sets a whole number.
    public func set(_ value: Int64, forKey aKey: String) { edit(.int64(value), aKey) }

    /// Sets a number.
    public func set(_ value: Double, forKey aKey: String) { edit(.double(value), aKey) }

    /// Sets a Boolean.
    public func set(_ value: Bool, forKey aKey: String) { edit(.bool(value), aKey) }

    private func value(_ key: String) -> PropertyValue? { engine.value(PreferenceKey(key)) }
}

extension NSUbiquitousKeyValueStore {
    /// Posted when values changed that this process did not set: the store is the object and has the new values
    /// already.
    public class var didChangeExternallyNotification: NSNotification.Name {
        NSNotification.Name("NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
    }
}

/// In a notification's `userInfo`: why, as an `NSNumber`.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"

/// In a notification's `userInfo`: the keys, as `[String]`; a key that reads nil was deleted.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"

/// Another device set or removed the keys.
public var NSUbiquitousKeyValueStoreServerChange: Int { PreferenceNotification.Reason.serverChange.rawValue }

/// The server's values came for the first time; values set before were replaced where it has others.
public var NSUbiquitousKeyValueStoreInitialSyncChange: Int { PreferenceNotification.Reason.initialSync.rawValue }

/// The keys' last writes were refused, and they are what they were before: the store is full.
public var NSUbiquitousKeyValueStoreQuotaViolationChange: Int { PreferenceNotification.Reason.quotaViolation.rawValue }

/// Another user signed in, or the user signed out: the store has other values now.
public var NSUbiquitousKeyValueStoreAccountChange: Int { PreferenceNotification.Reason.accountChange.rawValue }

/// What Apple's store does not report.
extension NSUbiquitousKeyValueStore {
    /// The state of a key between this device and the server.
    public enum KeyStatus: Hashable, Sendable {
        /// It has no value.
        case absent
        /// The server has the value.
        case synced
        /// The value, or its removal, is on its way, or goes as soon as the server can be reached.
        case pending
        /// It was set before the server's values were read for the first time, and yields to any value that the server
        /// has.
        case provisional
        /// The last write was refused; the key is what it was before.
        case refused(Refusal)
    }

    /// A write that was refused.
    public struct Refusal: Hashable, Sendable, CustomStringConvertible {
        /// The key that was written.
        public var key: String
        /// Whether the store is too full; other writes break a rule whatever else there is.
        public var isQuotaViolation: Bool
        /// What was wrong, and what to do.
        public var reason: String

        /// What was wrong and what to do about it.
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
        engine.state.withLock { $0.core.status(of: PreferenceKey(key)) }
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

    /// The writes that were refused, latest last, at most one a key and 64 in all. A later write of the key removes its
    /// refusal.
    public var refusals: [Refusal] { engine.state.withLock { $0.core.refusals.map { Refusal($0) } } }

    /// Returns once all of the server's values were read, in this run or an earlier one. Set defaults after that. It
    /// waits as long as the server cannot be reached or does not take the session.
    /// - Throws: `SyncError.notSignedIn` if the configuration names no user, now or while it waits;
    ///   `SyncError.closed`; `CancellationError`.
    public func waitForInitialSync() async throws { try await engine.wait(for: .initialSync) }

    /// Sends what was set here and fetches what was set elsewhere. When it returns, both are done.
    /// - Throws: `SyncError` that says why not, or which writes were refused. What could not be sent is sent later, by
    ///   itself.
    public func synchronizeNow() async throws { try await engine.wait(for: .settled) }

    /// As `set`, but also wins over a value that this device has not seen: a setting just chosen by hand on a new
    /// device, say.
    public func setExplicitly(_ object: Any?, forKey key: String) { set(object, forKey: key, isExplicit: true) }

    /// Saves, and ends the background work. The store can be read afterwards; what is set is kept nowhere.
    public func close() { engine.close() }

    /// Why preferences could not be synchronised.
    public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What kind of failure it is.
        public struct Code: Hashable, Sendable {
            private var name: String
            /// No user is signed in, no server is configured, or the session was refused.
            public static let notSignedIn = Code(name: "notSignedIn")
            /// The server cannot be reached, or says to come back later.
            public static let unavailable = Code(name: "unavailable")
            /// Writes were refused: see `refusals`.
            public static let refused = Code(name: "refused")
            /// The store was closed.
            public static let closed = Code(name: "closed")
        }

        /// The kind of failure.
        public var code: Code
        /// What was wrong, and what to do.
        public var description: String
        /// The refused writes, for `refused`.
        public var refusals: [Refusal] = []
    }
}
