import Authorization
import Cluster
import KeyValueStore
import RaftCore
import RecordModel
import RecordStore
import Wire

/// What a node's edge does with a client's request: brings it to its group, and a shard the schema that it lacks.
struct Edge: Sendable {
    let node: ClusterNode
    let deadline: Deadline
    /// By the node's wall clock, in milliseconds since 1970.
    let time: Int64

    init(_ node: ClusterNode, time: Int64) {
        self.node = node
        self.time = time
        deadline = node.deadline()
    }

    func write(_ command: RecordCommand, to group: GroupID) async throws(ClusterError) -> RecordOutcome {
        for _ in 0..<4 {
            let bytes = try await submit(.record(command), to: group)
            guard let outcome = try? RecordOutcome(decoding: bytes) else { throw .failed("an unreadable outcome") }
            guard case .needsSchema = outcome else { return outcome }
            try await installSchema(on: group)
        }
        throw .failed("the shard does not take the schema")
    }

    func write(_ command: KeyValueCommand, to group: GroupID) async throws(ClusterError) -> KeyValueOutcome {
        let bytes = try await submit(.keyValue(command), to: group)
        guard let outcome = try? KeyValueOutcome(decoding: bytes) else { throw .failed("an unreadable outcome") }
        return outcome
    }

    func read(_ read: ShardRead, from group: GroupID) async throws(ClusterError) -> ReadAnswer {
        let request = read.encoded()
        for _ in 0..<4 {
            let bytes = try await node.router.read(request, from: group, by: deadline)
            guard let answer = try? ReadAnswer(decoding: bytes) else { throw .failed("an unreadable answer") }
            guard case .needsSchema = answer else { return answer }
            try await installSchema(on: group)
        }
        throw .failed("the shard does not take the schema")
    }

    private func submit(_ command: ShardCommand, to group: GroupID) async throws(ClusterError) -> [UInt8] {
        try await node.router.submit(GroupCommand(command), to: group, by: deadline)
    }

    private func installSchema(on group: GroupID) async throws(ClusterError) {
        let install = InstallSchema(
            container: Place.container, environment: .development, version: Place.schemaVersion, schema: Place.schema)
        _ = try await submit(.record(.installSchema(install)), to: group)
    }
}

/// Where the clients of a simulation keep what they keep.
enum Place {
    static let container = "iCloud.simulation"
    static let user = "_user"
    static let caller = Caller(user: user)
    static let schemaVersion: UInt64 = 1
    static let type = "Item"
    /// Few values, by which records are looked for.
    static let kindField = "kind"
    /// Another value for every write.
    static let valueField = "value"
    static let schema = Schema(types: [
        RecordType(
            name: type,
            fields: [
                FieldDefinition(name: kindField, type: FieldType(.string), indexes: [.queryable]),
                FieldDefinition(name: valueField, type: FieldType(.string), indexes: [.queryable, .sortable]),
                FieldDefinition(
                    name: SystemField.recordID.rawValue, type: FieldType(.reference), indexes: [.queryable]),
            ], grants: RecordType.defaultGrants)
    ])
    static let database = DatabaseKey(
        container: container, environment: .development, scope: .private, owner: user)

    static func zone(_ name: String) -> ZoneKey { ZoneKey(database: database, name: name) }

    static func store(_ name: String) -> StoreKey {
        StoreKey(container: container, environment: .development, user: name)
    }
}
