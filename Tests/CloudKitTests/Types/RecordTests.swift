import Foundation
import Synchronization
import Testing

@testable import CloudKit

@Suite("The life of a record: edits, saves, conflicts")
struct RecordTests {
    private static let id = CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "zone"))
    private static let user = CKRecord.ID(recordName: "_user")
    private static func system(_ tag: String) -> SystemFields {
        SystemFields(
            changeTag: tag, created: .init(date: Date(timeIntervalSince1970: 1), user: user),
            modified: .init(date: Date(timeIntervalSince1970: 2), user: user))
    }
    private static func fetched() -> CKRecord {
        CKRecord(
            id: id, type: "Thing", system: system("1"), values: ["a": .int64(1), "b": .string("x"), "c": .int64(3)])
    }

    @Test("a new record has a random name in the default zone and nothing from a server")
    func new() {
        let record = CKRecord(recordType: "Thing")
        #expect(record.recordType == "Thing")
        #expect(UUID(uuidString: record.recordID.recordName) != nil)
        #expect(record.recordID.zoneID == .default)
        #expect(record.recordChangeTag == nil && record.creationDate == nil && record.modificationDate == nil)
        #expect(record.creatorUserRecordID == nil && record.lastModifiedUserRecordID == nil)
        #expect(record.parent == nil && record.share == nil)
        #expect(record.changedKeys() == [] && record.ancestor() == nil)
    }

    @Test("a fetched record has the server's system fields and no changed keys")
    func fetchedRecord() {
        let record = Self.fetched()
        #expect(record.recordChangeTag == "1")
        #expect(record.creationDate == Date(timeIntervalSince1970: 1))
        #expect(record.modificationDate == Date(timeIntervalSince1970: 2))
        #expect(record.creatorUserRecordID == Self.user && record.lastModifiedUserRecordID == Self.user)
        #expect(record.changedKeys() == [])
        #expect(record["a"] as? Int == 1)
    }

    @Test("setting marks a key as changed, also to the value it has, and so does removing")
    func changedKeys() {
        let record = Self.fetched()
        record["b"] = "x"
        #expect(record.changedKeys() == ["b"])
        record["a"] = nil
        record["new"] = 5
        #expect(record.changedKeys() == ["a", "b", "new"])
        let snapshot = record.snapshot()
        #expect(snapshot.changedKeys == ["a", "b", "new"])
        #expect(snapshot.values == ["b": .string("x"), "c": .int64(3), "new": .int64(5)])
        #expect(snapshot.system.changeTag == "1" && snapshot.id == Self.id && snapshot.type == "Thing")
    }

    @Test("a save takes over the server's state and clears what was sent")
    func saved() {
        let record = Self.fetched()
        record["a"] = 2
        record["b"] = nil
        let sent = record.snapshot()
        record.saved(
            as: ServerState(system: Self.system("2"), values: ["a": .int64(2), "c": .int64(4), "d": .int64(9)]),
            sent: sent)
        #expect(record.changedKeys() == [])
        #expect(record.recordChangeTag == "2")
        #expect(record.allKeys() == ["a", "c", "d"])
        #expect(record["c"] as? Int == 4, "what another wrote comes along")
    }

    @Test("an edit made while a save is under way is kept and stays changed")
    func editedMeanwhile() {
        let record = Self.fetched()
        record["a"] = 2
        record["b"] = "y"
        let sent = record.snapshot()
        record["a"] = 3
        record["c"] = nil
        record.encryptedValues["e"] = "late"
        record.saved(
            as: ServerState(
                system: Self.system("2"), values: ["a": .int64(2), "b": .string("y"), "c": .int64(3)]),
            sent: sent)
        #expect(record.changedKeys() == ["a", "c", "e"])
        #expect(record["a"] as? Int == 3)
        #expect(record["b"] as? String == "y")
        #expect(record["c"] == nil)
        #expect(record.encryptedValues["e"] as? String == "late")
        #expect(record.recordChangeTag == "2")
        #expect(record.ancestor()?["a"] as? Int == 2, "the base is what the server has")
    }

    @Test("a key set to another value and back while a save is under way stays changed")
    func setBackMeanwhile() {
        let record = Self.fetched()
        record["a"] = 2
        let sent = record.snapshot()
        record["a"] = 3
        record["a"] = 2
        record.saved(as: ServerState(system: Self.system("2"), values: ["a": .int64(2)]), sent: sent)
        #expect(record.changedKeys() == ["a"])
    }

    @Test("a second save sends what the first left and ends with nothing changed")
    func twoSaves() {
        let record = Self.fetched()
        record["a"] = 2
        let first = record.snapshot()
        record["b"] = "late"
        let second = record.snapshot()
        record.saved(as: ServerState(system: Self.system("2"), values: ["a": .int64(2)]), sent: first)
        #expect(record.changedKeys() == ["b"])
        record.saved(
            as: ServerState(system: Self.system("3"), values: ["a": .int64(2), "b": .string("late")]), sent: second)
        #expect(record.changedKeys() == [])
        #expect(record.recordChangeTag == "3")
    }

    @Test("the ancestor is the record as it was fetched, without edits")
    func ancestor() throws {
        let record = Self.fetched()
        record["a"] = 7
        record.setParent(CKRecord.ID(recordName: "parent"))
        let ancestor = try #require(record.ancestor())
        #expect(ancestor !== record)
        #expect(ancestor["a"] as? Int == 1)
        #expect(ancestor.recordChangeTag == "1" && ancestor.recordID == record.recordID)
        #expect(ancestor.parent == nil && ancestor.changedKeys() == [])
    }

    @Test("a parent is kept with the action none, and its change is sent and cleared like a key's")
    func parent() {
        let record = Self.fetched()
        let parent = CKRecord(recordType: "Parent")
        record.parent = CKRecord.Reference(record: parent, action: .deleteSelf)
        #expect(record.parent == CKRecord.Reference(record: parent, action: .none))
        let sent = record.snapshot()
        #expect(sent.isParentChanged && sent.changedKeys == [])
        var system = Self.system("2")
        system.parent = record.parent
        record.saved(as: ServerState(system: system, values: [:]), sent: sent)
        #expect(!record.snapshot().isParentChanged)
        let later = record.snapshot()
        record.setParent(nil as CKRecord?)
        record.saved(as: ServerState(system: system, values: [:]), sent: later)
        #expect(record.parent == nil && record.snapshot().isParentChanged, "removed while the save was under way")
    }

    @Test("records are equal when they are the same instance")
    func identity() {
        let record = Self.fetched()
        #expect(record == record)
        #expect(record != Self.fetched())
        #expect(Set([record, record, Self.fetched()]).count == 2)
    }

    @Test("a copy has the same content and edits, and goes its own way")
    func copying() throws {
        let record = Self.fetched()
        record["a"] = 5
        let copy = try #require(record.copy() as? CKRecord)
        #expect(copy !== record && copy.recordID == record.recordID && copy.recordChangeTag == "1")
        #expect(copy.changedKeys() == ["a"] && copy["a"] as? Int == 5)
        copy["b"] = "mine"
        #expect(record["b"] as? String == "x")
        #expect(copy.ancestor()?["a"] as? Int == 1)
    }

    @Test("the names of system types and fields are Apple's")
    func names() {
        #expect(CKRecord.SystemType.userRecord == "Users")
        #expect(CKRecord.SystemType.share == "cloudkit.share")
        #expect(CKRecord.SystemFieldKey.recordID == "recordID")
        #expect(CKRecord.SystemFieldKey.creationDate == "creationDate")
        #expect(CKRecord.SystemFieldKey.creatorUserRecordID == "creatorUserRecordID")
        #expect(CKRecord.SystemFieldKey.modificationDate == "modificationDate")
        #expect(CKRecord.SystemFieldKey.lastModifiedUserRecordID == "lastModifiedUserRecordID")
        #expect(CKRecord.SystemFieldKey.parent == "parent")
        #expect(CKRecord.SystemFieldKey.share == "share")
        #expect(CKCurrentUserDefaultName == "__defaultOwner__")
        #expect(CKRecordNameZoneWideShare == "cloudkit.zoneshare")
        #expect(
            [0, 1, 2, 3, 4].map { CKAccountStatus(rawValue: $0) } == [
                .couldNotDetermine, .available, .restricted, .noAccount, .temporarilyUnavailable,
            ])
        #expect([1, 2, 3].map { CKDatabaseScope(rawValue: $0) } == [.public, .private, .shared])
    }

    @Test("of two saves under way together the older answer, when it comes last, changes no value")
    func answersOutOfOrder() {
        func system(_ second: Double) -> SystemFields {
            SystemFields(
                changeTag: "\(second)", modified: SystemFields.Stamp(date: Date(timeIntervalSince1970: second)))
        }
        let record = Self.fetched()
        record["a"] = 2
        let first = record.snapshot()
        record["b"] = "new"
        let second = record.snapshot()
        record["c"] = 30
        let third = record.snapshot()
        record.saved(as: ServerState(system: system(6), values: ["a": .int64(2), "b": .string("new")]), sent: second)
        record.saved(as: ServerState(system: system(5), values: ["a": .int64(2), "b": .string("x")]), sent: first)
        #expect(record["b"] as? String == "new" && record["c"] as? Int == 30)
        #expect(record.recordChangeTag == "6.0" && record.changedKeys() == ["c"])
        record.saved(as: ServerState(system: system(4), values: ["c": .int64(30)]), sent: third)
        #expect(record.changedKeys() == [] && record["c"] as? Int == 30, "it was sent, and the server has it")
    }

    @Test("an answer that tells no more than was sent, as to a writer who may not read, drops no other value")
    func partialAnswer() {
        let record = Self.fetched()
        record["a"] = 2
        record["c"] = nil
        let sent = record.snapshot()
        let part = SentPart(keys: ["a", "c"], hasParent: false)
        record["late"] = 1
        record.saved(as: ServerState(system: Self.system("2"), values: ["a": .int64(2)]), sent: sent, part: part)
        #expect(record["a"] as? Int == 2 && record["b"] as? String == "x" && record["c"] == nil)
        #expect(record.recordChangeTag == "2" && record.changedKeys() == ["late"])
        #expect(record.ancestor()?["b"] as? String == "x")
        // One that tells more tells all.
        record["a"] = 3
        let next = record.snapshot()
        let state = ServerState(system: Self.system("3"), values: ["a": .int64(3), "d": .int64(4)])
        record.saved(as: state, sent: next, part: SentPart(keys: ["a", "late"], hasParent: false))
        #expect(record["b"] == nil && record["d"] as? Int == 4)
    }

    @Test("a list that contains itself is refused when it is saved, and ends nothing")
    func endlessList() {
        let record = Self.fetched()
        let endless = NSMutableArray()
        endless.add(endless)
        record["list"] = endless
        let error = #expect(throws: CKError.self) { try record.snapshot().validate() }
        #expect(error?.localizedDescription.contains("a list within a list") == true)
        endless.removeAllObjects()
    }

    /// Takes over what is sent, as the server does for a save of the changed keys, and dates each answer.
    private final class Server: Sendable {
        private let state = Mutex((values: [String: RecordValue](), encrypted: Set<String>(), clock: 10.0))

        func save(_ sent: RecordSnapshot) -> ServerState {
            state.withLock { state in
                for key in sent.changedKeys {
                    state.values[key] = sent.values[key]
                    if sent.encryptedKeys.contains(key) { state.encrypted.insert(key) }
                }
                state.clock += 1
                let date = Date(timeIntervalSince1970: state.clock)
                return ServerState(
                    system: SystemFields(changeTag: "\(state.clock)", modified: SystemFields.Stamp(date: date)),
                    values: state.values, encryptedKeys: state.encrypted)
            }
        }
    }

    @Test("tasks that set and save one record at a time lose no edit")
    func concurrentUse() async {
        let record = Self.fetched()
        let server = Server()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    for step in 0..<20 {
                        record["k\(number)-\(step)"] = step
                        record.encryptedValues["e\(number)-\(step)"] = "\(step)"
                        let sent = record.snapshot()
                        await Task.yield()
                        record.saved(as: server.save(sent), sent: sent)
                    }
                }
            }
        }
        let sent = record.snapshot()
        record.saved(as: server.save(sent), sent: sent)
        for number in 0..<8 {
            for step in 0..<20 {
                #expect(record["k\(number)-\(step)"] as? Int == step)
                #expect(record.encryptedValues["e\(number)-\(step)"] as? String == "\(step)")
            }
        }
        #expect(record.changedKeys() == [])
        #expect(record.allKeys().count == 160 && record.encryptedValues.allKeys().count == 160)
    }
}
