import CloudKit
import CoreLocation

extension EstablishmentRows {
    static let rules: [SeedRow] = [
        .run(36, "a container that does not exist is badContainer") { _ in
            let database = CKContainer(identifier: "iCloud.com.example.nowhere").publicCloudDatabase
            try await expectFailure(.badContainer, of: "a container that nobody made") {
                try await database.record(for: CKRecord.ID(recordName: "x"))
            }
        },
        .run(40, "an administrator reads public data, and nobody's private data") { surroundings in
            let fasting = FastingRows.day(40).record
            let database = CKContainer.default().privateCloudDatabase
            try await database.save(fasting)
            let token = try String(
                contentsOfFile: try need(
                    ProcessInfo.processInfo.environment["ZONEKEEPER_ADMIN_TOKEN_FILE"], "ZONEKEEPER_ADMIN_TOKEN_FILE"),
                encoding: .utf8
            ).trimmingCharacters(in: .whitespacesAndNewlines)
            func asAdministrator(_ scope: String, _ type: String) async throws -> (status: UInt, body: String) {
                try await PlainHTTP.answer(
                    PlainHTTP.path(scope, "records/query", in: surroundings),
                    json: "{\"query\": {\"recordType\": \"\(type)\"}}",
                    headers: [("Authorization", "Bearer \(token)")], in: surroundings)
            }
            let own = try await asAdministrator("private", "Fasting")
            try expect(own.status == 403 && !own.body.contains(fasting.recordID.recordName), "private data: \(own)")
            let open = try await asAdministrator("public", "Establishment")
            try expectEqual(open.status, 200, "public data: \(open)")
            try await database.deleteRecord(withID: fasting.recordID)
        },
        .run(43, "no zone is the whole database; each database is queried by itself") { _ in
            let container = CKContainer.default()
            let open = container.publicCloudDatabase
            let own = container.privateCloudDatabase
            let zone = try await own.save(CKRecordZone(zoneName: "corners"))
            let inDefault = place("Default", ferryBuilding)
            let inZone = CKRecord(recordType: EstablishmentType, recordID: CKRecord.ID(zoneID: zone.zoneID))
            inZone["Name"] = "Zone"
            inZone["Location"] = ferryBuilding
            try await own.save(inDefault)
            try await own.save(inZone)
            let query = CKQuery(recordType: EstablishmentType, predicate: NSPredicate(value: true))
            func found(_ database: CKDatabase, _ zoneID: CKRecordZone.ID?) async throws -> [String] {
                try await database.records(matching: query, inZoneWith: zoneID).matchResults
                    .compactMap { try $0.1.get()["Name"] as? String }.sorted()
            }
            try expectEqual(try await found(own, nil), ["Default", "Zone"], "in the whole private database")
            try expectEqual(try await found(own, .default), ["Default"], "in its default zone")
            try expectEqual(try await found(own, zone.zoneID), ["Zone"], "in the zone")
            try expectEqual(try await found(open, nil), [], "in the public database")
            try await own.deleteRecordZone(withID: zone.zoneID)
            try await own.deleteRecord(withID: inDefault.recordID)
        },
        .run(45, "errors: container, session, rights, record and record type") { surroundings in
            let open = CKContainer.default().publicCloudDatabase
            let nobody = CKRecord.ID(recordName: "nobody-\(surroundings.run)")
            let unknown = try await expectFailure(.unknownItem, of: "a record that is not there") {
                try await open.record(for: nobody)
            }
            try expect(!unknown.localizedDescription.isEmpty, "it has a text")
            let type = CKQuery(recordType: "NoSuchType", predicate: NSPredicate(value: true))
            let noType = try await expectFailure(.unknownItem, of: "a record type that is not there") {
                try await open.records(matching: type)
            }
            try expect(noType.localizedDescription.contains("NoSuchType"), "it says: \(noType.localizedDescription)")
            try await surroundings.acting(as: surroundings.nobody) {
                try await expectFailure(.notAuthenticated, of: "private data without a session") {
                    try await CKContainer.default().privateCloudDatabase.record(for: nobody)
                }
            }
        },
        .run(48, "a batch in a custom zone happens wholly or not at all") { surroundings in
            let own = CKContainer.default().privateCloudDatabase
            let zone = try await own.save(CKRecordZone(zoneName: "atomic"))
            func record(_ name: String) -> CKRecord {
                let id = CKRecord.ID(recordName: "\(name)-\(surroundings.run)", zoneID: zone.zoneID)
                let record = CKRecord(recordType: EstablishmentType, recordID: id)
                record["Name"] = name
                return record
            }
            try await own.save(record("taken"))
            let (results, _) = try await own.modifyRecords(saving: [record("new"), record("taken")], deleting: [])
            try await expectFailure(.batchRequestFailed, of: "the other record") {
                try results[record("new").recordID]?.get()
            }
            try await expectFailure(.serverRecordChanged, of: "the record that is there") {
                try results[record("taken").recordID]?.get()
            }
            try await expectFailure(.unknownItem, of: "the record of the refused batch") {
                try await own.record(for: record("new").recordID)
            }
            try await own.deleteRecordZone(withID: zone.zoneID)
        },
        .run(49, "an operation tells of records while it runs, before its end") { _ in
            try await withThree { _ in
                let operation = CKQueryOperation(
                    query: CKQuery(recordType: EstablishmentType, predicate: NSPredicate(value: true)))
                let calls = Calls()
                let order: [String] = await completion { done in
                    operation.recordMatchedBlock = { _, _ in calls.add("record") }
                    operation.queryResultBlock = { _ in
                        calls.add("end")
                        done(calls.names)
                    }
                    CKContainer.default().publicCloudDatabase.add(operation)
                }
                try expectEqual(order, ["record", "record", "record", "end"], "the calls")
            }
        },
        .run(50, "a copy that works offline, brought up to date by change tokens") { surroundings in
            try await NotesCheck.copyFollowsServer(surroundings)
        },
    ]
}

/// What was called, in order, from whatever thread.
// Unchecked because the lock guards what changes.
private final class Calls: @unchecked Sendable {
    private let lock = NSLock()
    private var all: [String] = []

    var names: [String] { lock.withLock { all } }
    func add(_ name: String) { lock.withLock { all.append(name) } }
}
