import Cluster
import Directory
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

    /// Asks a shard what no schema has a part in.
    func answer(
        to request: ShardRead, from group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        switch try await read(request, from: group, by: deadline) {
        case .found(let answer): return answer
        case .refused(let error): throw RequestFailure(error)
        case .needsSchema: throw .otherAnswer
        }
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
}
