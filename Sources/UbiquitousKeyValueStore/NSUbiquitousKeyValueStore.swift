public import Dispatch
public import Foundation
import RecordModel
import Synchronization

/// A user's preferences, the same on all the user's devices: at most 1,024 keys of at most 64 bytes each, 1 MB in all.
///
/// Values are property lists. They are read and set in memory and kept in a file; a background task uploads what was set and
/// brings what other devices set, of which `didChangeExternallyNotification` tells. Without a network, a server or a session
/// everything works on this device and is reconciled later. From any thread.
///
/// There is one store: `default` and whatever `init` gives are the same object.
// Unchecked because its base class promises nothing; it adds one constant, which is Sendable.
public final class NSUbiquitousKeyValueStore: NSObject, OneInstance, @unchecked Sendable {
    /// The store of the current configuration.
    public class var `default`: NSUbiquitousKeyValueStore { shared }

    private static let shared: NSUbiquitousKeyValueStore = {
        let store = NSUbiquitousKeyValueStore(engine: .configured())
        // What was set in the program's last moment.
        atexit { NSUbiquitousKeyValueStore.shared.engine.saveLast() }
        return store
    }()

    let engine: PreferenceEngine

    /// The store that `default` is.
    public override convenience init() { self.init(being: { .shared }) }

    /// A store of its own, for tests: it does not look at the configuration.
    package init(engine: PreferenceEngine, queue: DispatchQueue = .main) {
        self.engine = engine
        notificationQueueBox = NotificationQueue(queue)
        super.init()
        engine.onChange { [weak self] notification in self?.post(notification) }
        engine.start()
    }

    private let notificationQueueBox: NotificationQueue

    /// Where notifications are posted; usually the main queue. A program whose main queue is never served names another.
    public var notificationQueue: DispatchQueue {
        get { notificationQueueBox.queue }
        set { notificationQueueBox.queue = newValue }
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

    /// Sets a property list, or removes the key (nil). What is none, and what breaks a limit, is refused: see `refusals`.
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
        engine.edit(PreferenceEdit(PreferenceKey(key), value, isExplicit: isExplicit))
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

/// A queue that may be replaced.
private final class NotificationQueue: Sendable {
    private let held: Mutex<DispatchQueue>
    init(_ queue: DispatchQueue) { held = Mutex(queue) }
    var queue: DispatchQueue {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}

/// Lets an initialiser of a class return an object that is there already.
protocol OneInstance {}

extension OneInstance {
    init(being instance: () -> Self) { self = instance() }
}
