import Dispatch
import Foundation
import RecordModel
import Synchronization

@testable import UbiquitousKeyValueStore

/// A process with a store, its folder and what its app was told.
final class Device: Sendable {
    struct Told: Hashable {
        var reason: Int
        var keys: [String]
    }

    let store: NSUbiquitousKeyValueStore
    let clock: ManualClock
    private let queue = DispatchQueue(label: "app")
    private let told = Mutex((list: [Told](), waiters: [CheckedContinuation<Void, Never>]()))
    // The token is only kept, to be taken back.
    nonisolated(unsafe) private var observer: (any NSObjectProtocol)?
    let logged = Lines()

    final class Lines: Sendable {
        private let list = Mutex([String]())
        func append(_ line: String) { list.withLock { $0.append(line) } }
        var all: [String] { list.withLock { $0 } }
    }

    convenience init(
        folder: String, session: (any PreferenceService)?, limits: PreferenceLimits = PreferenceLimits(),
        clock: ManualClock = ManualClock(),
        fault: @escaping @Sendable (PreferenceFile.Step) -> PreferenceFile.Fault? = { _ in nil }
    ) {
        self.init(
            place: PreferencePlace(folder: folder), session: session, limits: limits, clock: clock, fault: fault)
    }

    init(
        place: PreferencePlace, session: (any PreferenceService)?, limits: PreferenceLimits = PreferenceLimits(),
        clock: ManualClock = ManualClock(),
        fault: @escaping @Sendable (PreferenceFile.Step) -> PreferenceFile.Fault? = { _ in nil }
    ) {
        self.clock = clock
        var dependencies = PreferenceEngine.Dependencies(makeBatchID: { UUID().uuidString })
        dependencies.clock = clock
        dependencies.log = { [logged] line in logged.append(line) }
        dependencies.limits = limits
        dependencies.fault = fault
        let engine = PreferenceEngine(
            place: place, service: session, dependencies: dependencies)
        store = NSUbiquitousKeyValueStore(engine: engine, queue: queue)
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
        ) { [weak self] notification in self?.hear(notification) }
    }

    deinit {
        if let observer { NotificationCenter.default.removeObserver(observer) }
        store.close()
    }

    private func hear(_ notification: Notification) {
        let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int ?? -1
        let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? ["?"]
        let waiters = told.withLock { told in
            told.list.append(Told(reason: reason, keys: keys))
            defer { told.waiters = [] }
            return told.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// What the app was told since the last look.
    func news() -> [Told] {
        queue.sync {}
        return told.withLock { told in
            defer { told.list = [] }
            return told.list
        }
    }

    /// Waits until the app is told something.
    func nextNews() async -> [Told] {
        await withCheckedContinuation { continuation in
            let isThere = told.withLock { told in
                if told.list.isEmpty { told.waiters.append(continuation) }
                return !told.list.isEmpty
            }
            if isThere { continuation.resume() }
        }
        return news()
    }

    /// Uploads and fetches, and lets what follows happen.
    func sync() async throws {
        try await store.synchronizeNow()
        await store.engine.idle()
    }

    /// Time passes, and what is due is done.
    func pass(milliseconds: Int64) async {
        clock.advance(by: milliseconds)
        await store.engine.idle()
    }
}

/// A folder for one test, which goes with it.
final class Scratch: Sendable {
    let path = NSTemporaryDirectory() + "zonekeeper-preferences-\(UUID().uuidString)"
    func folder(_ name: String) -> String { "\(path)/\(name)" }
    deinit {
        chmod(path, 0o700)
        try? FileManager.default.removeItem(atPath: path)
    }
}
