import RecordModel
import Testing

@testable import CloudKit

@Suite("Spreading a batch over requests")
struct BatchPlanTests {
    private let zone = CKRecordZone.ID(zoneName: "zone")

    private func operations(
        _ numbers: Range<Int>, in zone: CKRecordZone.ID = .default, bytes: Int = 10
    ) -> [BatchPlan.Operation] {
        numbers.map {
            BatchPlan.Operation(
                id: CKRecord.ID(recordName: "r\($0)", zoneID: zone), kind: .save($0),
                json: [UInt8](repeating: 0x20, count: bytes))
        }
    }

    private func code(_ body: () throws(CKError) -> BatchPlan) -> CKError.Code? {
        do throws(CKError) {
            _ = try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Each zone has requests of its own, in the order in which the zones come; only custom zones are atomic")
    func zones() throws {
        let mixed = operations(0..<2) + operations(2..<4, in: zone) + operations(4..<5)
        let plan = try BatchPlan(mixed, isAtomic: true, isPublic: false)
        #expect(plan.requests.map(\.zone) == [.default, zone])
        #expect(plan.requests.map(\.isAtomic) == [false, true])
        #expect(plan.requests.map { $0.operations.map(\.id.recordName) } == [["r0", "r1", "r4"], ["r2", "r3"]])
        #expect(try !BatchPlan(mixed, isAtomic: false, isPublic: false).requests[1].isAtomic)
        #expect(try BatchPlan([], isAtomic: true, isPublic: false).requests.isEmpty)
    }

    @Test("A request holds 200 operations and fits the server's body")
    func split() throws {
        let plan = try BatchPlan(operations(0..<400), isAtomic: true, isPublic: true)
        #expect(plan.requests.map(\.operations.count) == [200, 200])
        let large = try BatchPlan(operations(0..<10, in: zone, bytes: 1 << 20), isAtomic: false, isPublic: false)
        #expect(large.requests.map(\.operations.count) == [3, 3, 3, 1])
        #expect(large.requests.allSatisfy { $0.body.count <= Limits.requestBodyBytesMax })
        // One that fits no request goes alone: the server says what is wrong with it.
        let huge = try BatchPlan(operations(0..<2, bytes: 5 << 20), isAtomic: false, isPublic: true)
        #expect(huge.requests.map(\.operations.count) == [1, 1])
    }

    @Test("A batch of pending changes has what goes in one request; the record that is too much comes with the next")
    func pendingChanges() async {
        let ids = (0..<6).map { CKRecord.ID(recordName: "r\($0)", zoneID: zone) }
        func names(of changes: [CKSyncEngine.PendingRecordZoneChange], first: Int = 900_000) async -> [String] {
            let batch = await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: changes) { id in
                let record = CKRecord(recordType: "Note", recordID: id)
                record["text"] = String(repeating: "x", count: id.recordName == "r0" ? first : 900_000)
                return record
            }
            return batch.map { $0.recordsToSave.map(\.recordID) + $0.recordIDsToDelete }?.map(\.recordName) ?? []
        }
        let saves = ids.map { CKSyncEngine.PendingRecordZoneChange.saveRecord($0) }
        #expect(await names(of: saves) == ["r0", "r1", "r2", "r3"])
        #expect(await names(of: Array(saves[4...])) == ["r4", "r5"])
        #expect(await names(of: [saves[0], .deleteRecord(ids[5])]) == ["r0", "r5"])
        // One that fits no request goes alone: the server says what is wrong with it.
        #expect(await names(of: saves, first: 5 << 20) == ["r0"])
        #expect(await names(of: [saves[1], saves[0]], first: 5 << 20) == ["r1"])
    }

    @Test("What cannot be atomic in one request is refused with the number; so are more than 400, and a record twice")
    func refused() {
        #expect(
            code { () throws(CKError) in
                try BatchPlan(operations(0..<201, in: zone), isAtomic: true, isPublic: false)
            } == .limitExceeded)
        #expect(
            code { () throws(CKError) in
                try BatchPlan(operations(0..<200, in: zone), isAtomic: true, isPublic: false)
            } == nil)
        #expect(
            code { () throws(CKError) in
                try BatchPlan(operations(0..<10, in: zone, bytes: 1 << 20), isAtomic: true, isPublic: false)
            } == .limitExceeded)
        #expect(
            code { () throws(CKError) in
                try BatchPlan(operations(0..<401), isAtomic: false, isPublic: false)
            } == .limitExceeded)
        #expect(
            code { () throws(CKError) in
                try BatchPlan(operations(0..<1) + operations(0..<1), isAtomic: false, isPublic: false)
            } == .invalidArguments)
    }
}
