import Dispatch
import Foundation
import RaftCore
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import UbiquitousKeyValueStore

extension ClusterSuites {
    @Suite("Preferences of two users on three devices, with cuts and killed nodes")
    struct PreferenceSyncTests {
        private static let steps = Soak.count(150, soak: 20_000)

        @Test("devices converge, every change is notified, nobody sees another user's, and limits hold")
        func converge() async throws {
            let cluster = try await ProcessCluster.prepared()
            let (api, tester) = try Self.tokens(cluster)
            let other = try await Self.session(of: "other", in: cluster)
            let devices = [
                try await Device("A1", of: "A", api, tester, cluster),
                try await Device("A2", of: "A", api, tester, cluster),
                try await Device("B1", of: "B", api, other, cluster),
            ]
            var generator = SplitMix64(seed: 11)
            let counts = try await Self.stir(devices, cluster, &generator)
            for device in devices { device.relay.cut(false) }
            for id in cluster.ids {
                if cluster.processes[id] == nil { try cluster.start(id) }
                try await cluster.awaitReady(id)
            }
            // The first brings each device's edits to the server, the second the others' to each device.
            for _ in 0..<2 { for device in devices { try await device.settle() } }
            for device in devices { device.check() }
            #expect(devices[0].store.contents == devices[1].store.contents)
            for (device, token) in [(devices[0], tester), (devices[2], other)] {
                let server = try await Self.values(cluster, api, token)
                #expect(device.store.contents == server, "\(device.name) and the server")
            }
            print(
                "\(Self.steps) steps: \(counts.edits) edits, \(counts.cuts) cuts, \(counts.kills) kills, "
                    + "\(devices.map { "\($0.name) \($0.seen.withLock { $0.notified })" }.joined(separator: ", ")) keys notified"
            )
            for device in devices { device.end() }
        }

        private struct Counts { var (edits, cuts, kills) = (0, 0, 0) }

        /// Edits at random, cuts devices off and kills nodes. After each step a device syncs, or finds that it cannot.
        private static func stir(
            _ devices: [Device], _ cluster: ProcessCluster, _ generator: inout SplitMix64
        ) async throws -> Counts {
            var counts = Counts()
            var (down, stepsLeft) = (0, 0)
            for _ in 0..<steps {
                for _ in 0..<Int.random(in: 1...3, using: &generator) {
                    let device = devices[Int.random(in: 0..<3, using: &generator)]
                    device.edit(counts.edits, Int.random(in: 0..<100, using: &generator))
                    counts.edits += 1
                }
                if Int.random(in: 0..<25, using: &generator) == 0 {
                    counts.cuts += 1
                    devices[Int.random(in: 0..<3, using: &generator)].relay.cut(Bool.random(using: &generator))
                }
                stepsLeft -= 1
                if down == 0, Int.random(in: 0..<60, using: &generator) == 0 {
                    (down, stepsLeft) = (Int.random(in: 1...3, using: &generator), 30)
                    counts.kills += 1
                    cluster.kill(down)
                } else if down != 0, stepsLeft < 0 {
                    try cluster.start(down)
                    try await cluster.awaitReady(down)
                    down = 0
                }
                try? await devices[Int.random(in: 0..<3, using: &generator)].store.synchronizeNow()
            }
            return counts
        }

        private static func tokens(_ cluster: ProcessCluster) throws -> (api: String, session: String) {
            let variables = cluster.environment
            return (
                try #require(variables["ZONEKEEPER_API_TOKEN"]), try #require(variables["ZONEKEEPER_WEB_AUTH_TOKEN"])
            )
        }

        private static func session(of user: String, in cluster: ProcessCluster) async throws -> String {
            _ = try await cluster.client.admin("POST", "users", #"{"name": "\#(user)"}"#)
            let session = try await cluster.client.admin(
                "POST", "tokens", #"{"kind": "session", "container": "\#(cluster.container)", "user": "\#(user)"}"#)
            return try #require(session["secret"]?.string)
        }

        /// What the server has of a user.
        private static func values(
            _ cluster: ProcessCluster, _ api: String, _ token: String
        ) async throws -> [String: String] {
            var configuration = ZonekeeperConfiguration(
                urls: cluster.clientPorts.map { "https://127.0.0.1:\($0)" },
                certificateAuthorityPath: cluster.folder + "/data/certs/client-ca.pem", container: cluster.container)
            (configuration.apiToken, configuration.webAuthToken) = (api, token)
            let list = try await ServiceSession.of(configuration).keyValues("list", body: Array("{}".utf8))
            var values: [String: String] = [:]
            for member in list["values"]?.array ?? [] {
                let value = try PropertyValue(json: try #require(member["value"]), path: "value")
                guard case .string(let text) = value else { throw TestFailure("\(member)") }
                values[try #require(member["key"]?.string)] = text
            }
            return values
        }
    }
}

/// A device: a store with its own copy on disk and its own network, and what an app on it knows of the values.
private final class Device: Sendable {
    struct Seen {
        /// From the device's own edits and from notifications alone.
        var values: [String: String] = [:]
        var notified = 0
        var reasons: Set<Int> = []
    }

    let name: String
    let user: String
    let relay: Relay
    let store: NSUbiquitousKeyValueStore
    let seen = Mutex(Seen())
    private let folder: String
    /// Notifications are posted and edits are made here, so that an app's view of both is in order.
    private let queue = DispatchQueue(label: "device")
    private let observer = Mutex<Observer?>(nil)

    init(_ name: String, of user: String, _ api: String, _ session: String, _ cluster: ProcessCluster) async throws {
        self.name = name
        self.user = user
        folder = cluster.folder + "/device-" + name
        relay = try await Relay(to: cluster.clientPorts)
        var configuration = ZonekeeperConfiguration(
            urls: ["https://127.0.0.1:\(relay.port)"],
            certificateAuthorityPath: cluster.folder + "/data/certs/client-ca.pem", container: cluster.container)
        (configuration.apiToken, configuration.webAuthToken) = (api, session)
        store = NSUbiquitousKeyValueStore(
            engine: try ConfiguredPreferences.engine(of: configuration, folder: folder), queue: queue)
        let observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
        ) { [weak self] in self?.heard($0) }
        let held = Observer(token: observer)
        self.observer.withLock { $0 = held }
    }

    private func heard(_ notification: Notification) {
        let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
        let reason = (notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber)?.intValue ?? -1
        seen.withLock { seen in
            seen.reasons.insert(reason)
            seen.notified += keys.count
            for key in keys { seen.values[key] = store.string(forKey: key) }
        }
    }

    /// Sets or removes one of a few keys; some edits break a rule and change nothing.
    func edit(_ number: Int, _ choice: Int) {
        queue.sync {
            let key = "key\(choice % 20)"
            switch choice {
            case 0: store.set("too long a key", forKey: String(repeating: "ä", count: 33))
            case 1..<15:
                store.removeObject(forKey: key)
                seen.withLock { $0.values[key] = nil }
            default:
                let value = "\(user) \(name) \(number)"
                store.set(value, forKey: key)
                seen.withLock { $0.values[key] = value }
            }
        }
    }

    /// Waits until the server has everything and this device has everything of the server.
    func settle() async throws {
        let problem = try await awaitState("\(name) comes to rest") { () -> NSUbiquitousKeyValueStore.SyncError? in
            do {
                try await store.synchronizeNow()
                return nil
            } catch let error as NSUbiquitousKeyValueStore.SyncError { return error }
        } until: {
            $0?.code != .unavailable
        }
        if let problem { throw problem }
    }

    func check() {
        queue.sync {}
        let seen = seen.withLock { $0 }
        #expect(seen.values == store.contents, "\(name): what it was told of, and what it has")
        let allowed = [NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange]
        #expect(seen.reasons.isSubset(of: allowed), "\(name): \(seen.reasons)")
        #expect(store.contents.values.allSatisfy { $0.hasPrefix(user) }, "\(name): another user's values")
        #expect(
            store.contents.keys.allSatisfy { $0.utf8.count <= 64 }
                && !store.refusals.contains(where: \.isQuotaViolation))
    }

    func end() {
        if let observer = observer.withLock({ $0.take() }) { NotificationCenter.default.removeObserver(observer.token) }
        store.close()
        relay.close()
    }
}

extension NSUbiquitousKeyValueStore {
    fileprivate var contents: [String: String] { dictionaryRepresentation.compactMapValues { $0 as? String } }
}

/// A notification centre's word for an observer.
// @unchecked: it is only ever handed back to the centre, which takes it from any thread.
private struct Observer: @unchecked Sendable { let token: any NSObjectProtocol }
