import CloudKit

extension PeopleRows {
    static let layer: [SeedRow] = [
        .run(62, "class Person: CloudKitable, Hashable, Identifiable") { _ in
            let mark = Person(firstName: "Mark", lastName: "Volkmann")
            try expectEqual(mark.firstName + " " + mark.lastName, "Mark Volkmann", "the name")
            mark.firstName = "Marcus"
            try expectEqual(mark.record["firstName"] as? String, "Marcus", "the name in the record")
            let same = Person(record: mark.record)
            try expect(mark == same && mark.hashValue == same.hashValue, "one record, one person")
            let other = Person(firstName: "Marcus", lastName: "Volkmann")
            try expectEqual(Set([mark, same, other]).count, 2, "people in a set")
            try expectEqual(mark.id, mark.record.recordID.recordName, "the identity")
            try expectEqual(Person(record: CKRecord(recordType: "People")).lastName, "", "no name")
        },
        .run(63, "CKRecordZone(zoneName:), CKRecord.ID(zoneID:), CKRecord(recordType:recordID:)") { _ in
            let first = Person(firstName: "A", lastName: "B").record
            let second = Person(firstName: "A", lastName: "B").record
            try expectEqual(CloudKit.zone.zoneID.zoneName, "my-zone", "the zone")
            try expectEqual(first.recordID.zoneID, CloudKit.zone.zoneID, "the record's zone")
            try expect(UUID(uuidString: first.recordID.recordName) != nil, "a name of its own")
            try expect(first.recordID != second.recordID, "each has another name")
        },
        .run(64, "the layer on the public or the private database") { surroundings in
            let own = CloudKit(containerId: surroundings.ada.container)
            let open = CloudKit(containerId: surroundings.ada.container, usePublic: true)
            try expectEqual(own.database.databaseScope, .private, "the private one")
            try expectEqual(open.database.databaseScope, .public, "the public one")
        },
        .run(65, "createOperation: an operation with a limit") { surroundings in
            try await fresh(surroundings) { cloud in
                for number in 0..<3 { try await cloud.create(item: Person(firstName: "\(number)", lastName: "")) }
                let (names, error): ([String], Error?) = await completion { done in
                    cloud.names(recordType: "People", resultsLimit: 2) { done(($0, $1)) }
                }
                try expect(error == nil, "no error: \(String(describing: error))")
                try expectEqual(names.count, 2, "the names")
            }
        },
        .run(66, "statusText: every account status, and default") { surroundings in
            let cloud = CloudKit(containerId: surroundings.ada.container)
            try expectEqual(try await cloud.statusText(), "available", "with a session")
            let text = try await surroundings.acting(as: surroundings.nobody) {
                try await CloudKit(containerId: surroundings.ada.container).statusText()
            }
            try expectEqual(text, "no account", "without one")
        },
        .run(69, "create and update: a fetched record is saved, an old one is not") { surroundings in
            try await fresh(surroundings) { cloud in
                let person = Person(firstName: "Tami", lastName: "V")
                try await cloud.create(item: person)
                let old = Person(record: try await cloud.database.record(for: person.record.recordID))
                let tag = person.record.recordChangeTag
                person.lastName = "Volkmann"
                try await cloud.update(item: person)
                try expect(person.record.recordChangeTag != tag, "another change tag")
                old.lastName = "Late"
                let error = try await expectFailure(.serverRecordChanged, of: "an update of what has changed") {
                    try await cloud.update(item: old)
                }
                try expectEqual(error.serverRecord?["lastName"] as? String, "Volkmann", "the server's record")
                try expectEqual(error.clientRecord?["lastName"] as? String, "Late", "the client's")
                try expectEqual(error.ancestorRecord?["lastName"] as? String, "V", "their ancestor")
                let merged = try need(error.serverRecord, "the server's record")
                merged["lastName"] = "Late"
                try await cloud.update(item: Person(record: merged))
            }
        },
        .run(70, "createZone, deleteZone, recreateZone; a zone may be made and deleted twice") { surroundings in
            let cloud = CloudKit(containerId: surroundings.ada.container)
            try await cloud.createZone()
            try await cloud.createZone()
            let zones = try await cloud.database.allRecordZones().map(\.zoneID.zoneName)
            try expect(zones.contains("my-zone"), "the zones: \(zones)")
            try await cloud.recreateZone()
            try await cloud.deleteZone()
            do { try await cloud.deleteZone() } catch let error as CKError where error.code == .zoneNotFound {}
            try await expectFailure(.zoneNotFound, of: "the zone that is gone") {
                try await cloud.database.recordZone(for: CloudKit.zone.zoneID)
            }
        },
        .run(71, "delete(item:)") { surroundings in
            try await fresh(surroundings) { cloud in
                let person = Person(firstName: "Tami", lastName: "V")
                try await cloud.create(item: person)
                try await cloud.delete(item: person)
                let left: [Person] = try await cloud.retrieve(recordType: "People")
                try expectEqual(left.count, 0, "the people left")
            }
        },
        .run(72, "deleteAll: the zone goes, and every record with it") { surroundings in
            try await fresh(surroundings) { cloud in
                let person = Person(firstName: "Tami", lastName: "V")
                try await cloud.create(item: person)
                try await cloud.create(item: Pet(name: "Comet", breed: "Whippet", owner: person))
                try await cloud.deleteAll()
                let people: [Person] = try await cloud.retrieve(recordType: "People")
                let pets: [Pet] = try await cloud.retrieve(recordType: "Pets")
                try expectEqual(people.count + pets.count, 0, "what is left")
            }
        },
        .run(73, "retrieve: every page, by recursion over the cursor") { surroundings in
            try await fresh(surroundings) { cloud in
                let people = (0..<25).map { Person(firstName: "\(100 + $0)", lastName: "Many") }
                _ = try await cloud.database.modifyRecords(saving: people.map(\.record), deleting: [])
                let found: [Person] = try await cloud.retrieve(
                    recordType: "People", sortDescriptors: [NSSortDescriptor(key: "firstName", ascending: false)],
                    resultsLimit: 10)
                try expectEqual(found.map(\.firstName), people.map(\.firstName).reversed(), "the people, in order")
            }
        },
        .run(74, "CKQueryOperation.Cursor and CKQueryOperation.maximumResults") { _ in
            let cursor: CloudKit.Cursor? = nil
            let same: CKQueryOperation.Cursor? = cursor
            try expect(same == nil, "a name for the cursor")
            let limit: Int = CKQueryOperation.maximumResults
            try expectEqual(
                limit,
                CKQueryOperation(query: CKQuery(recordType: "People", predicate: NSPredicate(value: true)))
                    .resultsLimit, "the default limit")
        },
        .run(75, "the demonstration: people, pets that refer to them, and a deletion that takes along") {
            surroundings in
            try await fresh(surroundings) { try await demonstration($0) }
        },
        .run(76, "the operations' classes, and desiredKeys") { _ in
            let operations: [CKDatabaseOperation] = [
                CKFetchRecordsOperation(recordIDs: []),
                CKModifyRecordsOperation(recordsToSave: [], recordIDsToDelete: nil),
                CKQueryOperation(),
            ]
            let group = CKOperationGroup()
            group.name = "a group"
            for operation in operations { operation.group = group }
            try expectEqual(operations.compactMap { $0.group?.name }, ["a group", "a group", "a group"], "their group")
            let query = CKQueryOperation()
            query.desiredKeys = ["name"]
            try expectEqual(query.desiredKeys, ["name"], "the desired keys")
        },
    ]

    private static func demonstration(_ cloud: CloudKit) async throws {
        let mark = Person(firstName: "Mark", lastName: "Volkmann")
        let tami = Person(firstName: "Tami", lastName: "Volkmann")
        let amanda = Person(firstName: "Amanda", lastName: "Barry")
        for person in [mark, tami, amanda] { try await cloud.create(item: person) }
        let comet = Pet(name: "Comet", breed: "Whippet", owner: tami)
        let maisey = Pet(name: "Maisey", breed: "Native American Indian Dog", owner: mark)
        for pet in [comet, maisey] { try await cloud.create(item: pet) }

        let people: [Person] = try await cloud.retrieve(
            recordType: "People", predicate: NSPredicate(format: "lastName = %@", "Volkmann"),
            sortDescriptors: [NSSortDescriptor(key: "firstName", ascending: true)])
        try expectEqual(people.map(\.firstName), ["Mark", "Tami"], "the Volkmanns")
        let owned: [Pet] = try await cloud.retrieve(
            recordType: "Pets", predicate: NSPredicate(format: "ownedBy = %@", tami.record.recordID))
        try expectEqual(owned.map(\.name), ["Comet"], "Tami's pets")
        try expectEqual(owned[0].owner?.recordID, tami.record.recordID, "whose they are")

        try await cloud.delete(item: tami)
        let left: [Pet] = try await cloud.retrieve(recordType: "Pets")
        try expectEqual(left.map(\.name), ["Maisey"], "the pets when Tami is gone")
        comet.name = "Fireball"
        try await expectFailure(.unknownItem, of: "an update of a pet that went along") {
            try await cloud.update(item: comet)
        }
        maisey.name = "Oscar"
        try await cloud.update(item: maisey)
        let renamed: [Pet] = try await cloud.retrieve(recordType: "Pets")
        try expectEqual(renamed.map(\.name), ["Oscar"], "the pet with a new name")
    }
}
