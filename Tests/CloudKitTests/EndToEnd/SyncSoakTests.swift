import Foundation
import RaftCore
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import CloudKit

/// Two devices with a sync engine and a third client without one change the same zone of one user, while nodes are
/// killed and devices are cut off. `scripts/soak SyncSoakTests` runs it for five minutes.
@Suite("Sync engines over nodes that are killed", .timeLimit(.minutes(Soak.isOn ? 20 : 10)))
struct SyncSoakTests {
    private static let seconds = Soak.isOn ? 300 : 0
    private static let rounds = 3
    private static let savesOfRound = 40

    @Test("two engines and a third client end with the same records, and with the last of what each wrote by itself")
    func convergence() async throws {
        let cluster = try ProcessCluster()
        try await cluster.startAll()
        try await cluster.prepare()
        let relays = try await [
            Relay(to: cluster.clientPorts), Relay(to: cluster.clientPorts), Relay(to: cluster.clientPorts),
        ]
        defer { for relay in relays { relay.close() } }
        let databases = try await Self.databases(of: cluster, relays)
        let flags = WorkFlags()
        let devices = [SyncedNotes("a", databases[0], flags), SyncedNotes("b", databases[1], flags)]
        let third = PlainNotes("c", databases[2], flags)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, device) in devices.enumerated() {
                group.addTask { try await device.work(seed: UInt64(place + 1)) }
            }
            group.addTask { try await third.work(seed: 3) }
            defer { flags.stop() }
            try await Self.disturb(cluster, relays, devices, flags)
            flags.stop()
            try await group.waitForAll()
        }
        try await Self.compare(devices, third)
        for fault in cluster.stop() { Issue.record("\(fault)") }
    }

    /// The user's database as three devices reach it, each by a network of its own.
    private static func databases(of cluster: ProcessCluster, _ relays: [Relay]) async throws -> [CKDatabase] {
        var databases: [CKDatabase] = []
        for relay in relays {
            let token = try await cluster.client.admin(
                "POST", "tokens",
                #"{"kind": "session", "container": "\#(cluster.container)", "user": "\#(cluster.user)"}"#)
            var configuration = try ZonekeeperConfiguration(variables: cluster.environment)
            configuration.webAuthToken = try #require(token["secret"]?.string)
            configuration.urls = ["https://127.0.0.1:\(relay.port)"]
            databases.append(CKContainer(configuration: configuration).privateCloudDatabase)
        }
        return databases
    }

    /// Kills each node in turn, cuts one device off meanwhile, and has an engine begin again with what it stored.
    private static func disturb(
        _ cluster: ProcessCluster, _ relays: [Relay], _ devices: [SyncedNotes], _ flags: WorkFlags
    ) async throws {
        let end = ContinuousClock.now + .seconds(seconds)
        var round = 0
        while round < rounds || ContinuousClock.now < end {
            let (node, cut) = (cluster.ids[round % 3], (round + 1) % 3)
            try await flags.awaitSaves(savesOfRound)
            relays[cut].cut(true)
            cluster.kill(node)
            try await flags.awaitSaves(savesOfRound)
            if round % 3 == 2 { devices[round / 3 % 2].restart() }
            relays[cut].cut(false)
            try await flags.awaitSaves(savesOfRound)
            try cluster.start(node)
            try await cluster.awaitReady(node)
            round += 1
        }
        print("soak: \(round) rounds, \(flags.saves) saves, \(flags.restarts) restarts of an engine")
    }

    /// Waits until the engines have what the server has, by themselves.
    private static func compare(_ devices: [SyncedNotes], _ third: PlainNotes) async throws {
        for device in devices {
            try await awaitState("\(device.name) has sent everything", within: .seconds(400)) {
                device.unsent
            } until: {
                $0.isEmpty
            }
        }
        let truth = try await third.everything()
        #expect(!truth.isEmpty)
        for device in devices {
            try await awaitState("\(device.name) has what the server has", within: .seconds(400)) {
                device.texts.filter { truth[$0.key] != $0.value }.keys.sorted()
                    + truth.keys.filter { device.texts[$0] == nil }.sorted()
            } until: {
                $0.isEmpty
            }
            #expect(device.faults.isEmpty, "\(device.faults.prefix(5))")
        }
        for (name, own) in [(devices[0].name, devices[0].own), (devices[1].name, devices[1].own), ("c", third.own)] {
            #expect(truth.filter { $0.key.hasPrefix(name + "-") } == own, "what only \(name) wrote")
        }
    }
}

/// Whether clients go on, and how far they came.
private final class WorkFlags: Sendable {
    private let state = Mutex((isWorking: true, saves: 0, restarts: 0))
    var isWorking: Bool { state.withLock(\.isWorking) }
    var saves: Int { state.withLock(\.saves) }
    var restarts: Int { state.withLock(\.restarts) }
    func stop() { state.withLock { $0.isWorking = false } }
    func noteSaves(_ count: Int) { state.withLock { $0.saves += count } }
    func noteRestart() { state.withLock { $0.restarts += 1 } }

    /// Waits until so many more changes were answered.
    func awaitSaves(_ count: Int) async throws {
        let before = saves
        try await awaitState("\(count) more saves") {
            saves
        } until: {
            $0 >= before + count
        }
    }
}

/// What clients change: texts by name, in one zone.
private enum Notes {
    static let zone = CKRecordZone.ID(zoneName: "Notes")
    static func id(_ name: String) -> CKRecord.ID { CKRecord.ID(recordName: name, zoneID: zone) }

    /// A change of a record that only `client` changes, or one that all do: its name and text; nil deletes it.
    static func change(by client: String, _ number: Int, _ random: inout SplitMix64) -> (name: String, text: String?) {
        let isOwn = Int.random(in: 0..<3, using: &random) > 0
        let name = "\(isOwn ? client : "all")-\(Int.random(in: 0..<(isOwn ? 40 : 10), using: &random))"
        return (name, Int.random(in: 0..<6, using: &random) == 0 ? nil : "\(client) \(number)")
    }
}

/// An app on one device that syncs by an engine: it keeps its own change where one of another device comes first.
private final class SyncedNotes: CKSyncEngineDelegate {
    private struct Store: Sendable {
        var texts: [String: String] = [:]
        var known: [String: CKRecord] = [:]
        /// Numbers of the last edits of records that are not sent yet, and of those that were given to the engine.
        var edits: [String: Int] = [:]
        var given: [String: Int] = [:]
        var state: CKSyncEngine.State.Serialization?
        /// What only this device wrote, as it wrote it last.
        var own: [String: String] = [:]
        var editCount = 0
        var isHandling = false
        var faults: [String] = []

        /// The server's record, or nil where it was deleted, is known; what was edited here meanwhile stays.
        mutating func fetched(_ name: String, _ record: CKRecord?) {
            known[name] = record
            if edits[name] == nil { texts[name] = record.map { $0["text"] ?? "" } }
        }

        /// The server has what was given to the engine.
        mutating func sent(_ name: String, _ record: CKRecord?) {
            known[name] = record
            if let edit = edits[name], edit == given[name] { edits[name] = nil }
        }
    }

    let name: String
    private let database: CKDatabase
    private let flags: WorkFlags
    private let store = Mutex(Store())
    private let running = Mutex<CKSyncEngine?>(nil)

    init(_ name: String, _ database: CKDatabase, _ flags: WorkFlags) {
        (self.name, self.database, self.flags) = (name, database, flags)
        begin()
    }

    var texts: [String: String] { store.withLock(\.texts) }
    var own: [String: String] { store.withLock(\.own) }
    var unsent: [String] { store.withLock { $0.edits.keys.sorted() } }
    var faults: [String] { store.withLock(\.faults) }

    private func begin() {
        let state = store.withLock(\.state)
        let configuration = CKSyncEngine.Configuration(database: database, stateSerialization: state, delegate: self)
        running.withLock { $0 = CKSyncEngine(configuration) }
    }

    /// Begins again with the state that was told last, as an app does after it ended at any point: what is edited and
    /// not known to be sent is sent again.
    func restart() {
        running.withLock { $0 = nil }
        begin()
        let (saves, deletions) = store.withLock { store in
            store.isHandling = false
            return (
                store.edits.keys.filter { store.texts[$0] != nil }, store.edits.keys.filter { store.texts[$0] == nil }
            )
        }
        add(saves.map { .saveRecord(Notes.id($0)) } + deletions.map { .deleteRecord(Notes.id($0)) })
        flags.noteRestart()
    }

    private func add(_ changes: [CKSyncEngine.PendingRecordZoneChange]) {
        running.withLock { $0 }?.state.add(pendingRecordZoneChanges: changes)
    }

    func work(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        while flags.isWorking {
            // A person who is offline goes on; here, up to 30 records.
            try await awaitTrue("\(name) has sent something", within: .seconds(600)) {
                !flags.isWorking || unsent.count < 30
            }
            for _ in 0..<Int.random(in: 1...5, using: &random) { edit(&random) }
        }
    }

    private func edit(_ random: inout SplitMix64) {
        let change = store.withLock { store -> CKSyncEngine.PendingRecordZoneChange in
            store.editCount += 1
            let (name, text) = Notes.change(by: self.name, store.editCount, &random)
            store.texts[name] = text
            store.edits[name] = store.editCount
            if name.hasPrefix(self.name + "-") { store.own[name] = text }
            return text == nil ? .deleteRecord(Notes.id(name)) : .saveRecord(Notes.id(name))
        }
        add([change])
    }

    func handleEvent(_ event: CKSyncEngine.Event, syncEngine: CKSyncEngine) async {
        guard isCurrent(syncEngine) else { return }
        let (zones, records) = store.withLock { store in
            if store.isHandling { store.faults.append("\(event) came during another event") }
            store.isHandling = true
            return take(event, &store)
        }
        syncEngine.state.add(pendingDatabaseChanges: zones)
        syncEngine.state.add(pendingRecordZoneChanges: records)
        store.withLock { $0.isHandling = false }
    }

    private func isCurrent(_ engine: CKSyncEngine) -> Bool { running.withLock { $0 === engine } }

    func nextRecordZoneChangeBatch(
        _ context: CKSyncEngine.SendChangesContext, syncEngine: CKSyncEngine
    ) async -> CKSyncEngine.RecordZoneChangeBatch? {
        guard isCurrent(syncEngine) else { return nil }
        let changes = syncEngine.state.pendingRecordZoneChanges.filter { context.options.scope.contains($0) }
        store.withLock { store in
            for case .deleteRecord(let id) in changes { store.given[id.recordName] = store.edits[id.recordName] }
        }
        return await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { id in
            self.store.withLock { store in
                let name = id.recordName
                guard let text = store.texts[name] else {
                    syncEngine.state.remove(pendingRecordZoneChanges: [.saveRecord(id)])
                    return nil
                }
                store.given[name] = store.edits[name]
                let record = store.known[name] ?? CKRecord(recordType: "Note", recordID: id)
                record["text"] = text
                return record
            }
        }
    }

    private func take(
        _ event: CKSyncEngine.Event, _ store: inout Store
    ) -> ([CKSyncEngine.PendingDatabaseChange], [CKSyncEngine.PendingRecordZoneChange]) {
        switch event {
        case .stateUpdate(let event): store.state = event.stateSerialization
        case .accountChange(let event):
            guard case .signIn = event.changeType else {
                store.faults.append("\(event)")
                break
            }
            return ([.saveZone(CKRecordZone(zoneID: Notes.zone))], [])
        case .fetchedRecordZoneChanges(let event):
            for change in event.modifications { store.fetched(change.record.recordID.recordName, change.record) }
            for change in event.deletions { store.fetched(change.recordID.recordName, nil) }
        case .sentRecordZoneChanges(let event): return sent(event, &store)
        case .fetchedDatabaseChanges(let event):
            if !event.deletions.isEmpty { store.faults.append("\(event)") }
        case .sentDatabaseChanges, .willFetchChanges, .willFetchRecordZoneChanges, .didFetchRecordZoneChanges,
            .didFetchChanges, .willSendChanges, .didSendChanges:
            break
        }
        return ([], [])
    }

    private func sent(
        _ event: CKSyncEngine.Event.SentRecordZoneChanges, _ store: inout Store
    ) -> ([CKSyncEngine.PendingDatabaseChange], [CKSyncEngine.PendingRecordZoneChange]) {
        for record in event.savedRecords { store.sent(record.recordID.recordName, record) }
        for id in event.deletedRecordIDs { store.sent(id.recordName, nil) }
        flags.noteSaves(event.savedRecords.count + event.deletedRecordIDs.count)
        var zones: [CKSyncEngine.PendingDatabaseChange] = []
        var records: [CKSyncEngine.PendingRecordZoneChange] = []
        for failed in event.failedRecordSaves {
            let id = failed.record.recordID
            switch failed.error.code {
            case .serverRecordChanged: store.known[id.recordName] = failed.error.serverRecord
            case .unknownItem: store.known[id.recordName] = nil
            case .zoneNotFound:
                store.known[id.recordName] = nil
                zones = [.saveZone(CKRecordZone(zoneID: id.zoneID))]
            // These stay with the engine.
            case .networkFailure, .networkUnavailable, .serviceUnavailable, .requestRateLimited, .zoneBusy: continue
            case .batchRequestFailed: break
            default: store.faults.append("saving \(id.recordName): \(failed.error)")
            }
            // An edit of this device counts, whatever came first.
            records.append(store.texts[id.recordName] == nil ? .deleteRecord(id) : .saveRecord(id))
        }
        for (id, error) in event.failedRecordDeletes {
            switch error.code {
            case .unknownItem, .zoneNotFound: store.sent(id.recordName, nil)
            case .networkFailure, .networkUnavailable, .serviceUnavailable, .requestRateLimited, .zoneBusy: continue
            default:
                store.faults.append("deleting \(id.recordName): \(error)")
                records.append(.deleteRecord(id))
            }
        }
        return (zones, records)
    }
}

/// A client that saves and deletes by itself, and tries again until it is answered.
private final class PlainNotes: Sendable {
    private let name: String
    private let database: CKDatabase
    private let flags: WorkFlags
    private let written = Mutex<[String: String]>([:])

    init(_ name: String, _ database: CKDatabase, _ flags: WorkFlags) {
        (self.name, self.database, self.flags) = (name, database, flags)
    }

    var own: [String: String] { written.withLock { $0 } }

    func work(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var number = 0
        while flags.isWorking {
            number += 1
            let (name, text) = Notes.change(by: self.name, number, &random)
            try await awaitTrue("\(name) is written", within: .seconds(600)) { try await write(name, text) }
            flags.noteSaves(1)
            if name.hasPrefix(self.name + "-") { written.withLock { $0[name] = text } }
        }
    }

    private func write(_ name: String, _ text: String?) async throws -> Bool {
        do {
            if let text {
                let record = CKRecord(recordType: "Note", recordID: Notes.id(name))
                record["text"] = text
                let answer = try await database.modifyRecords(saving: [record], deleting: [], savePolicy: .allKeys)
                _ = try answer.saveResults[record.recordID]?.get()
            } else {
                let answer = try await database.modifyRecords(saving: [], deleting: [Notes.id(name)])
                try answer.deleteResults[Notes.id(name)]?.get()
            }
            return true
        } catch let error as CKError where error.code == .zoneNotFound {
            try await database.save(CKRecordZone(zoneID: Notes.zone))
            return false
        } catch let error as CKError where error.code == .unknownItem {
            return text == nil
        }
    }

    /// What the server has, by a query.
    func everything() async throws -> [String: String] {
        var texts: [String: String] = [:]
        let query = CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
        var page = try await database.records(matching: query, inZoneWith: Notes.zone)
        while true {
            for (id, result) in page.matchResults { texts[id.recordName] = try result.get()["text"] ?? "" }
            guard let cursor = page.queryCursor else { return texts }
            page = try await database.records(continuingMatchFrom: cursor)
        }
    }
}
