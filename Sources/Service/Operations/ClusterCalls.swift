package import Cluster
package import Directory
package import RaftCore
package import RecordModel
import RecordStore
package import Wire

/// What the node's requests ask of the cluster, in the terms of the directory and of shards. What the cluster throws
/// becomes the request's failure.
package struct ClusterCalls: Sendable {
    private let node: ClusterNode

    init(of node: ClusterNode) { self.node = node }

    // MARK: The directory

    /// Has a command applied by the directory that a request brings about by itself; this node may not know of it yet.
    package func submit(
        _ command: DirectoryCommand, by deadline: Deadline
    ) async throws(RequestFailure) -> DirectoryOutcome {
        try await submit(DirectoryEntry(command), by: deadline)
    }

    /// Has an entry applied by the directory; this node may not know of it yet.
    package func submit(
        _ entry: DirectoryEntry, by deadline: Deadline
    ) async throws(RequestFailure) -> DirectoryOutcome {
        let bytes = try await ask(await node.router.submit(.machine(entry.encoded()), to: .directory, by: deadline))
        return try unpacked(bytes)
    }

    /// Has somebody's command applied by the directory and written to the audit log. When it returns, no node relies on
    /// anything older.
    /// - Parameter origin: nil where the audit log tells of it elsewhere.
    package func settle(
        _ command: DirectoryCommand, origin: AuditOrigin?, by deadline: Deadline
    ) async throws(RequestFailure) -> DirectoryOutcome {
        let bytes = try await ask(await node.changeDirectory(DirectoryEntry(command, origin: origin), by: deadline))
        return try unpacked(bytes)
    }

    /// Has somebody's command applied as `settle` does, and waits until this node knows, where it can.
    /// - Returns: the new version, where the command gives one.
    @discardableResult
    package func change(_ command: DirectoryCommand, origin: AuditOrigin?) async throws(RequestFailure) -> UInt64 {
        switch try await settle(command, origin: origin, by: node.deadline()) {
        case .refused(let error): throw RequestFailure(error)
        case .done(let version):
            await catchUp()
            return version
        }
    }

    /// Has the directory take an entry, and waits until this node knows, where it can. Other nodes may learn of it a
    /// moment later: for what they look up before they refuse anything by it.
    package func enter(_ entry: DirectoryEntry, by deadline: Deadline) async throws(RequestFailure) {
        if case .refused(let error) = try await submit(entry, by: deadline) { throw RequestFailure(error) }
        await catchUp()
    }

    /// The directory with every change that was acknowledged before this call.
    package func newestDirectory() async throws(RequestFailure) -> DirectorySnapshot {
        try await refreshDirectory()
        return node.directory.snapshot
    }

    /// Has this node know every change of the directory that was acknowledged before this call.
    package func refreshDirectory() async throws(RequestFailure) { try await ask(await node.refreshDirectory()) }

    /// Makes sure that this node may rely on what it knows of the directory.
    package func requireDirectory() async throws(RequestFailure) { try await ask(await node.requireDirectory()) }

    /// Has this node learn what was changed, where it can: a node that lags must not hide a change that is made.
    package func catchUp() async {
        do throws(RequestFailure) { try await refreshDirectory() } catch {}
    }

    /// Whether the directory holds a newer schema than the one at hand; then this node has it now.
    func isOutdated(_ schema: VersionedSchema, _ key: SchemaKey) async throws(RequestFailure) -> Bool {
        try await refreshDirectory()
        return node.directory.snapshot.schema(key).version > schema.version
    }

    // MARK: Shards

    /// Has a command applied by a shard.
    /// - Returns: what came of it.
    package func submit<Outcome: WireDecodable>(
        _ command: ShardCommand, to group: GroupID, by deadline: Deadline, as _: Outcome.Type = RecordOutcome.self
    ) async throws(RequestFailure) -> Outcome {
        try unpacked(try await ask(await node.router.submit(GroupCommand(command), to: group, by: deadline)))
    }

    /// Asks a shard.
    package func read(
        _ request: ShardRead, from group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> ReadAnswer {
        let answer = try await ask(
            await node.router.read(request.encoded(), from: group, of: request.container, by: deadline))
        return try unpacked(answer)
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

    /// The groups that may hold zones of a database: public data has one zone, private data may be anywhere.
    package func groups(of database: DatabaseKey) -> [GroupID] {
        database.scope == .public
            ? [node.map.group(of: ZoneKey(database: database, name: ZoneKey.defaultZoneName))]
            : Array(node.map.groups.dropFirst())
    }
}

/// Decodes what another part of the cluster encoded.
func unpacked<Value: WireDecodable>(
    _ bytes: [UInt8], as _: Value.Type = Value.self
) throws(RequestFailure) -> Value {
    do throws(WireError) {
        return try Value(decoding: bytes)
    } catch {
        throw RequestFailure(.internalError, "a shard's answer cannot be read: \(error)")
    }
}
