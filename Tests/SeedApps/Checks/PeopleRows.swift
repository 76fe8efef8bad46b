import CloudKit

/// People, pets and a preference, seed 003.
enum PeopleRows {
    static let rows: [SeedRow] =
        layer + types + preferences + notifications + [
            .console(51, "records queried, made, changed and deleted in the console"),
            .console(54, "fields changed, types deleted in the console"),
            .console(55, "indexes in the console"),
            .console(56, "databases, zones and types to choose in the console"),
            .console(57, "a zone made in the console"),
            .console(58, "a deploy looked through in the console"),
            .console(59, "containers hidden in the console"),
            .run(61, "an index has no delay: a record is found at once") { surroundings in
                try await fresh(surroundings) { cloud in
                    for number in 0..<10 {
                        try await cloud.create(item: Person(firstName: "Number \(number)", lastName: "Now"))
                        let found: [Person] = try await cloud.retrieve(
                            recordType: "People", predicate: NSPredicate(format: "firstName = %@", "Number \(number)"))
                        try expectEqual(found.count, 1, "right after save \(number)")
                    }
                }
            },
            .run(77, "no field is unique: equal records live side by side") { surroundings in
                try await fresh(surroundings) { cloud in
                    for _ in 0..<2 { try await cloud.create(item: Person(firstName: "Mark", lastName: "Twice")) }
                    let found: [Person] = try await cloud.retrieve(recordType: "People")
                    try expectEqual(found.map(\.firstName), ["Mark", "Mark"], "both")
                }
            },
            .outside(80, "iCloud Documents", because: "files are not records; not a part of CloudKit"),
        ]

    /// The layer, on a zone that is new.
    static func fresh(_ surroundings: Surroundings, _ body: (CloudKit) async throws -> Void) async throws {
        let cloud = CloudKit(containerId: surroundings.ada.container)
        try await cloud.createZone()
        try await cloud.recreateZone()
        try await body(cloud)
        try await cloud.deleteZone()
    }
}
