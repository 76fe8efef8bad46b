import CloudKit
import CoreLocation

extension PeopleRows {
    static let types: [SeedRow] = [
        .run(52, "everyone has a record of the type Users, to write and not to query") { surroundings in
            let container = CKContainer.default()
            let id = try await container.userRecordID()
            let user = try await container.publicCloudDatabase.record(for: id)
            try expectEqual(user.recordType, CKRecord.SystemType.userRecord, "its type")
            user["nickname"] = "ada-\(surroundings.run)"
            try await container.publicCloudDatabase.save(user)
            let again = try await container.publicCloudDatabase.record(for: id)
            try expectEqual(again["nickname"] as? String, "ada-\(surroundings.run)", "what was written")
            let query = CKQuery(recordType: "Users", predicate: NSPredicate(value: true))
            do {
                _ = try await container.publicCloudDatabase.records(matching: query)
                throw CheckFailure("a query of users should have failed", line: #line, file: #fileID)
            } catch is CKError {}
        },
        .run(53, "every type of field comes back as it went, lists and encrypted ones too") { surroundings in
            let database = CKContainer.default().privateCloudDatabase
            let id = CKRecord.ID(recordName: "specimen-\(surroundings.run)")
            let record = CKRecord(recordType: "Specimen", recordID: id)
            let time = Date(timeIntervalSince1970: 1_767_225_600.25)
            let place = CLLocation(latitude: 48.86, longitude: 2.35)
            let target = CKRecord.Reference(recordID: CKRecord.ID(recordName: "target"), action: .none)
            record["text"] = "words"
            record["texts"] = ["one", "two"]
            record["bytes"] = Data([0, 255, 7])
            record["bytesList"] = [Data([1]), Data([2])]
            record["int"] = Int64.max
            record["ints"] = [1, -2, 3]
            record["double"] = 0.1
            record["doubles"] = [0.5, -1.5]
            record["time"] = time
            record["times"] = [time, time.addingTimeInterval(1)]
            record["location"] = place
            record["locations"] = [place]
            record["reference"] = target
            record["references"] = [target]
            record.encryptedValues["encryptedText"] = "secret"
            record.encryptedValues["encryptedBytes"] = Data([9, 9])
            try await database.save(record)

            let back = try await database.record(for: id)
            try expectEqual(back["text"] as? String, "words", "text")
            try expectEqual(back["texts"] as? [String], ["one", "two"], "texts")
            try expectEqual(back["bytes"] as? Data, Data([0, 255, 7]), "bytes")
            try expectEqual(back["bytesList"] as? [Data], [Data([1]), Data([2])], "lists of bytes")
            try expectEqual(back["int"] as? Int64, Int64.max, "whole number")
            try expectEqual(back["ints"] as? [Int], [1, -2, 3], "whole numbers")
            try expectEqual(back["double"] as? Double, 0.1, "number")
            try expectEqual(back["doubles"] as? [Double], [0.5, -1.5], "numbers")
            try expectEqual(back["time"] as? Date, time, "time")
            try expectEqual(back["times"] as? [Date], [time, time.addingTimeInterval(1)], "times")
            try expectEqual((back["location"] as? CLLocation)?.coordinate.latitude, 48.86, "place")
            try expectEqual((back["locations"] as? [CLLocation])?.count, 1, "places")
            try expectEqual((back["reference"] as? CKRecord.Reference)?.recordID, target.recordID, "reference")
            try expectEqual(
                (back["references"] as? [CKRecord.Reference])?.map(\.recordID), [target.recordID], "references")
            try expectEqual(back.encryptedValues["encryptedText"] as? String, "secret", "encrypted text")
            try expectEqual(back.encryptedValues["encryptedBytes"] as? Data, Data([9, 9]), "encrypted bytes")
            try await database.deleteRecord(withID: id)
        },
        .run(60, "what production has stays: types and fields are added, not taken away") { _ in
            let deployed = try CommandLineTool.zonekeeper("schema", "deploy")
            try expectEqual(deployed.status, 0, "the deploy: \(deployed)")
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).ckdb")
            try Data("DEFINE SCHEMA\n\n    RECORD TYPE People (\n        firstName STRING\n    );\n".utf8).write(
                to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let refused = try CommandLineTool.zonekeeper(
                "schema", "import", "--dry-run", "--allow-data-loss", file.path)
            try expect(refused.status == 1 && refused.errors.contains("production"), "\(refused)")
        },
    ]
}
