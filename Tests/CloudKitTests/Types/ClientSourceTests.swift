// As an app has it: both modules, in this order, and nothing @testable.
import CloudKit
import Foundation
import Testing

/// Code as apps write it against CloudKit, unchanged: that it compiles is most of the test.
@Suite("Source as apps write it")
struct ClientSourceTests {
    private struct Fasting {
        enum Key: String { case start, end, goal }
        var start: Date
        var end: Date
        var goal: TimeInterval

        var record: CKRecord {
            let record = CKRecord(recordType: "Fasting")
            record[Key.start.rawValue] = start
            record[Key.end.rawValue] = end
            record[Key.goal.rawValue] = goal
            return record
        }

        init(start: Date, end: Date, goal: TimeInterval) { (self.start, self.end, self.goal) = (start, end, goal) }

        init?(from record: CKRecord) {
            guard let start = record["start"] as? Date, let end = record["end"] as? Date,
                let goal = record["goal"] as? TimeInterval
            else { return nil }
            self.init(start: start, end: end, goal: goal)
        }
    }

    @Test("a value that makes its record and is made of one")
    func fasting() {
        let fasting = Fasting(
            start: Date(timeIntervalSince1970: 0), end: Date(timeIntervalSince1970: 57_600), goal: 16 * 3600)
        #expect(Fasting(from: fasting.record)?.goal == 57_600)
        #expect(Fasting(from: CKRecord(recordType: "Fasting")) == nil)
    }

    private final class Person: Hashable, Identifiable {
        let record: CKRecord
        init(record: CKRecord) { self.record = record }
        var id: String { record.recordID.recordName }
        var firstname: String {
            get { record["firstname"] as? String ?? "" }
            set { record["firstname"] = newValue }
        }
        static func == (lhs: Person, rhs: Person) -> Bool { lhs.record == rhs.record }
        func hash(into hasher: inout Hasher) { hasher.combine(record) }
    }

    @Test("a class around a record, hashed and compared by it")
    func person() {
        let zone = CKRecordZone(zoneName: "my-zone")
        let person = Person(
            record: CKRecord(recordType: "People", recordID: CKRecord.ID(zoneID: zone.zoneID)))
        person.firstname = "Tami"
        #expect(person.firstname == "Tami" && Set([person, Person(record: person.record)]).count == 1)
        let pet = CKRecord(recordType: "Pets", recordID: CKRecord.ID(zoneID: zone.zoneID))
        pet["ownedBy"] = CKRecord.Reference(recordID: person.record.recordID, action: .deleteSelf)
        #expect((pet["ownedBy"] as? CKRecord.Reference)?.recordID.recordName == person.id)
    }

    @Test("values set as objects and with literals")
    func literals() {
        let task = CKRecord(recordType: "Task")
        task.setObject("title" as any __CKRecordObjCValue, forKey: "title")
        task.setObject(Date() as any __CKRecordObjCValue, forKey: "createdAt")
        task.setObject(0 as any __CKRecordObjCValue, forKey: "checked")
        #expect(task.object(forKey: "title") as! String == "title")
        #expect(task.object(forKey: "checked") as? Int64 == 0)
        task["checked"] = 1
        task["gone"] = nil
        task["ratio"] = 3.5
        task["flag"] = true
        task["number"] = 3 as NSNumber
        task["text"] = "s" as NSString
        task["list"] = ["a", "b"]
        task["either"] = task["checked"] as? Bool == true ? "yes" : "no"
        task["count"] = (task["count"] as? Int ?? 0) + 1
        let ratio: Double? = task["ratio"]
        #expect(ratio == 3.5 && task["ratio"] == 3.5 && task["count"] == 1)
        #expect(task["either"] == "yes")
        let value: (any CKRecordValue)? = task["list"]
        #expect(value as? [String] == ["a", "b"])
    }

    @Test("a record copied key by key, and as a dictionary")
    func copying() {
        let (one, two) = (CKRecord(recordType: "A"), CKRecord(recordType: "B"))
        one["a"] = 1
        one["b"] = ["x"]
        for key in one.allKeys() { two[key] = one[key] }
        #expect(two["a"] as? Int == 1 && two["b"] as? [String] == ["x"])
        let dictionary: [String: any CKRecordValueProtocol] = Dictionary(uniqueKeysWithValues: one.map { ($0, $1) })
        #expect(dictionary.count == 2)
    }

    @Test("errors handled the ways apps handle them")
    func errors() {
        func text(_ error: any Error) -> String {
            switch error {
            case CKError.networkFailure, CKError.networkUnavailable: return "offline"
            case let error as CKError where error.code == .serverRecordChanged: return "conflict"
            case let error as CKError:
                switch error.code {
                case .notAuthenticated: return "sign in"
                default: return "code \(error.errorCode)"
                }
            default: return "other"
            }
        }
        #expect(text(CKError(.networkFailure)) == "offline")
        #expect(text(CKError(.serverRecordChanged)) == "conflict")
        #expect(text(CKError(.notAuthenticated)) == "sign in")
        #expect(text(CKError(.zoneBusy)) == "code 23")
        #expect(text(CancellationError()) == "other")
        let status = CKAccountStatus.noAccount
        switch status {
        case .available: Issue.record("not available")
        case .couldNotDetermine, .restricted, .temporarilyUnavailable: Issue.record("another")
        case .noAccount: break
        @unknown default: Issue.record("unknown")
        }
    }

    @Test("records cross between tasks")
    func sending() async {
        let record = CKRecord(recordType: "A")
        let name = await Task.detached { () -> String? in
            record["name"] = "x"
            return record["name"] as? String
        }.value
        #expect(name == "x")
    }
}
