import RecordModel
import Testing

@testable import Directory

@Suite("Schemas in the directory")
struct SchemaTests {
    private let directory: TestDirectory
    private static let development = SchemaKey(container: "app", environment: .development)
    private static let production = SchemaKey(container: "app", environment: .production)
    private static let note = Schema(types: [RecordType(name: "Note")])

    init() throws {
        directory = try TestDirectory()
        try directory.apply(.createContainer(name: "app", time: 5))
    }

    @Test("a new container has the type Users in both environments, as version 1")
    func initial() throws {
        let snapshot = try directory.snapshot()
        for key in [Self.development, Self.production] {
            let schema = try #require(snapshot.schemas[key])
            #expect(schema.version == 1 && schema.generation == 0)
            let users = try #require(schema.schema.type(named: "Users"))
            #expect(users.field(named: "roles")?.type == FieldType(.int64, isList: true))
            #expect(users.permissions(of: "_world") == .read)
            #expect(users.permissions(of: "_creator") == .write)
        }
    }

    @Test("a schema is changed only by who knew the one before")
    func versions() throws {
        #expect(try directory.refusal(of: .setSchema(Self.development, expectedVersion: 0, Self.note)) == "CONFLICT")
        #expect(
            try directory.apply(.setSchema(Self.development, expectedVersion: 1, Self.note)).outcome
                == .done(version: 2))
        #expect(try directory.refusal(of: .setSchema(Self.development, expectedVersion: 1, Schema())) == "CONFLICT")
        let snapshot = try directory.snapshot()
        #expect(
            snapshot.schemas[Self.development]
                == VersionedSchema(version: 2, schema: Self.note.dated(2, after: Schema())))
        #expect(snapshot.schemas[Self.production]?.version == 1)
    }

    @Test("a reset makes development's schema production's, in a new generation that later changes keep")
    func reset() throws {
        try directory.apply(.setSchema(Self.production, expectedVersion: 1, Self.note))
        try directory.apply(.setSchema(Self.development, expectedVersion: 1, Schema()))
        let reset = DirectoryCommand.resetDevelopment(container: "app", expectedVersion: 2)
        #expect(
            try directory.refusal(of: .resetDevelopment(container: "app", expectedVersion: 1)) == "CONFLICT")
        #expect(try directory.apply(reset).outcome == .done(version: 3))
        #expect(try directory.refusal(of: reset) == "CONFLICT")
        #expect(
            try directory.snapshot().schemas[Self.development]
                == VersionedSchema(version: 3, schema: Self.note.dated(3, after: Schema()), generation: 1))
        try directory.apply(.setSchema(Self.development, expectedVersion: 3, Schema()))
        #expect(
            try directory.snapshot().schemas[Self.development]
                == VersionedSchema(version: 4, schema: Schema(), generation: 1))
        #expect(try directory.snapshot().schemas[Self.production]?.generation == 0)
    }

    @Test("types and fields have the version that they came with, and another one if they come again")
    func dates() throws {
        func field(_ name: String, _ type: FieldType = FieldType(.string)) -> FieldDefinition {
            FieldDefinition(name: name, type: type)
        }
        func set(_ types: [RecordType]) throws -> String {
            let version = try #require(try directory.snapshot().schemas[Self.development]).version
            try directory.apply(.setSchema(Self.development, expectedVersion: version, Schema(types: types)))
            let schema = try #require(try directory.snapshot().schemas[Self.development]).schema
            return schema.types.map { type in
                "\(type.name)\(type.addedIn)" + type.fields.map { " \($0.name)\($0.addedIn)" }.joined()
            }.joined(separator: ", ")
        }
        let number = FieldType(.number)
        let settled = FieldType(.number, preferred: .int64)
        #expect(try set([RecordType(name: "A", fields: [field("a"), field("n", number)])]) == "A2 a2 n2")
        #expect(try set([RecordType(name: "A", fields: [field("b"), field("n", settled)])]) == "A2 b3 n2")
        #expect(
            try set([RecordType(name: "A", fields: [field("a"), field("b")]), RecordType(name: "B")]) == "A2 a4 b3, B4")
        #expect(try set([RecordType(name: "A", fields: [field("a"), field("b", number)])]) == "A2 a4 b5")
        // What a node says of it counts for nothing.
        let told = RecordType(name: "B", fields: [FieldDefinition(name: "b", type: number, addedIn: 9)], addedIn: 8)
        #expect(try set([told]) == "B6 b6")
    }

    @Test("before its feature level nothing has a date")
    func datesBelowLevel() throws {
        let set = DirectoryEntry(.setSchema(Self.development, expectedVersion: 1, Self.note))
        let result = try directory.apply(set, at: FeatureLevel(FeatureLevel.datedFields.rawValue - 1))
        #expect(result.outcome == .done(version: 2))
        #expect(
            try directory.snapshot().schemas[Self.development] == VersionedSchema(version: 2, schema: Self.note))
    }

    @Test("a schema of more than 1 MiB is refused, and the one before stays")
    func size() throws {
        let role = String(repeating: "r", count: 1_000)
        var schema = Schema(roles: Array(repeating: role, count: 1_045))
        schema.roles.append(String(repeating: "s", count: Limits.schemaBytesMax - schema.encodedSize - 3))
        #expect(schema.encodedSize == Limits.schemaBytesMax)
        #expect(try directory.refusal(of: .setSchema(Self.development, expectedVersion: 1, schema)) == nil)
        schema = Schema(roles: schema.roles + [""])
        let (outcome, changes) = try directory.apply(.setSchema(Self.development, expectedVersion: 2, schema))
        guard case .refused(let error) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(error.code == .badRequest && error.reason.contains("1048578 bytes, at most 1048576"))
        #expect(changes.isEmpty)
        #expect(try directory.snapshot().schemas[Self.development]?.version == 2)
    }

    @Test("a container's name is plain ASCII", arguments: ["\u{212A}ite", "", "a b", "é", "a/b"])
    func containerNames(name: String) throws {
        #expect(try directory.refusal(of: .createContainer(name: name, time: 1)) == "BAD_REQUEST")
    }

    @Test("data keys have consecutive numbers, each container its own")
    func containerKeys() throws {
        try directory.apply(.createContainer(name: "other", time: 6))
        func add(_ number: UInt64, to container: String = "app") throws -> String? {
            try directory.refusal(
                of: .addContainerKey(container: container, ContainerKey(number: number, wrapped: [UInt8(number)])))
        }
        #expect(try add(2) == "CONFLICT")
        #expect(try add(0) == "CONFLICT")
        #expect(try add(1) == nil)
        #expect(try add(1) == "CONFLICT")
        #expect(try add(2) == nil)
        #expect(try add(1, to: "other") == nil)
        let snapshot = try directory.snapshot()
        #expect(snapshot.keys(of: "app").map(\.wrapped) == [[1], [2]])
        #expect(snapshot.keys(of: "other").map(\.number) == [1])
        #expect(snapshot.keys(of: "none").isEmpty)
    }
}
