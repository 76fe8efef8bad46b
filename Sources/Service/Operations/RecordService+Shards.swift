import Cluster
package import Directory
package import RaftCore
package import RecordModel
import RecordStore
import Wire

// What is asked of the shards of a database.
extension RecordService {
    /// Asks the shards that may hold a part of a database, all at once; the answers are in the order of the shards.
    func readAll(
        of database: DatabaseKey, by deadline: Deadline,
        _ request: @escaping @Sendable (GroupID, VersionedSchema) throws(ServiceError) -> ShardRead
    ) async throws(RequestFailure) -> [(group: GroupID, answer: ShardAnswer)] {
        let key = SchemaKey(of: database)
        let groups = groups(of: database)
        let answers = await withTaskGroup(of: (Int, Result<ShardAnswer, RequestFailure>).self) { tasks in
            for (position, group) in groups.enumerated() {
                tasks.addTask {
                    do throws(RequestFailure) {
                        let answer = try await self.readUnderSchema(key, from: group, by: deadline) {
                            schema throws(ServiceError) in try request(group, schema)
                        }
                        return (position, .success(answer))
                    } catch {
                        return (position, .failure(error))
                    }
                }
            }
            var answers = [Result<ShardAnswer, RequestFailure>?](repeating: nil, count: groups.count)
            for await (position, answer) in tasks { answers[position] = answer }
            return answers
        }
        var all: [(group: GroupID, answer: ShardAnswer)] = []
        for (group, answer) in zip(groups, answers) {
            guard let answer else { throw RequestFailure(.internalError, "a shard was not asked") }
            all.append((group, try answer.get()))
        }
        return all
    }

    /// The groups that may hold zones of a database: public data has one zone, private data may be anywhere.
    package func groups(of database: DatabaseKey) -> [GroupID] {
        database.scope == .public
            ? [node.map.group(of: ZoneKey(database: database, name: ZoneKey.defaultZoneName))]
            : Array(node.map.groups.dropFirst())
    }

    /// A zone as its shard has it; nil if there is none of the name.
    func zoneState(
        _ zone: ZoneKey, by deadline: Deadline
    ) async throws(RequestFailure) -> ZoneState? {
        let key = SchemaKey(of: zone.database)
        let answer = try await readUnderSchema(key, from: node.map.group(of: zone), by: deadline) { schema in
            .zone(zone, schemaVersion: schema.version)
        }
        return try unpacked(answer.bytes, as: ShardList<ZoneState>.self).elements.first
    }

    /// How far each index of a schema is built, over all shards.
    package func indexStates(_ key: SchemaKey, by deadline: Deadline) async throws(RequestFailure) -> [IndexProgress] {
        // Every shard may hold a part of the container's data.
        let database = DatabaseKey(
            container: key.container, environment: key.environment, scope: .private, owner: "")
        let answers = try await readAll(of: database, by: deadline) { _, schema in
            .indexes(key, schemaVersion: schema.version)
        }
        var sums: [IndexProgress.Name: (done: Int, total: Int)] = [:]
        for (_, answer) in answers {
            for state in try unpacked(answer.bytes, as: ShardList<IndexState>.self).elements {
                let name = IndexProgress.Name(type: state.type, field: state.field, index: state.purpose)
                let sum = sums[name, default: (0, 0)]
                sums[name] = (sum.done + Int(clamping: state.done), sum.total + Int(clamping: state.total))
            }
        }
        return sums.keys.sorted().map { name in
            let sum = sums[name, default: (0, 0)]
            return IndexProgress(
                type: name.type, field: name.field, index: name.index, done: sum.done, total: sum.total)
        }
    }
}

/// How far one index is built: records done of those there were. Both are 0 where it was complete from the beginning.
package struct IndexProgress: Hashable, Sendable {
    package var type: String
    package var field: String
    /// Such as `QUERYABLE SORTABLE`.
    package var index: String
    package var done: Int
    package var total: Int

    package var isReady: Bool { done >= total }

    struct Name: Hashable, Comparable {
        var type: String
        var field: String
        var index: String

        static func < (left: Name, right: Name) -> Bool {
            (left.type, left.field, left.index) < (right.type, right.field, right.index)
        }
    }
}
