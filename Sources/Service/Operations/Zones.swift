import Authorization
import Cluster
import Directory
import RaftCore
package import RecordModel
package import RecordStore

/// The zones of one database.
package struct Zones: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// Every zone of the database, by name; the default zone is always there.
    package func list() async throws(RequestFailure) -> [ZoneState] {
        var zones: [String: ZoneState] = [
            ZoneKey.defaultZoneName: ZoneState(name: ZoneKey.defaultZoneName, incarnation: 1, sequence: 0)
        ]
        let answers = try await service.attempts.readAll(of: request.key, by: request.deadline) { [request] _, schema in
            .zones(request.key, schemaVersion: schema.version)
        }
        for (_, answer) in answers {
            for state in try unpacked(answer.bytes, as: ShardList<ZoneState>.self).elements {
                zones[state.name] = state
            }
        }
        return zones.values.sorted { $0.name < $1.name }
    }

    /// - Throws: `ZONE_NOT_FOUND` where there is none of the name.
    package func lookUp(_ id: ZoneID) async throws(RequestFailure) -> ZoneState {
        guard let state = try await service.attempts.zoneState(try request.zone(id), by: request.deadline) else {
            throw RequestFailure(.zoneNotFound, "no zone '\(id.name)' in this database")
        }
        return state
    }

    /// - Throws: `BAD_REQUEST` for the public database, whose one zone is always there.
    package func requireModifiable() throws(RequestFailure) {
        guard request.key.scope == .private else {
            throw .badRequest("zones are made and deleted in the private database only")
        }
    }

    /// Spends what a request of so many zones costs beyond one token: each is a command, or a read, of its own.
    package func pay(forZones count: Int) {
        service.peerExchange.rates.charge(RateExchange.tokens(forOperations: count), to: request)
    }

    /// Creates or deletes a zone.
    /// - Parameter number: the operation's place in its request, whose key stands for several commands.
    /// - Returns: the zone; nil where it was deleted.
    package func modify(
        _ operation: ZonesModifyRequest.Operation, number: Int
    ) async throws(RequestFailure) -> ZoneState? {
        try requireModifiable()
        let zone = try request.zone(operation.zoneID)
        let idempotency = request.idempotencyKey(position: number)
        let group = service.node.map.group(of: zone)
        let client = try await request.client(in: group)
        let isShare =
            if idempotency == nil { false } else {
                try await ask(await service.node.levels.isInForce(.zoneMemories, in: group, by: request.deadline))
            }
        let outcome = try await request.attempt { attempt throws(RequestFailure) in
            var command = ModifyZone(
                operation.kind == .create ? .create : .delete, zone: zone, caller: request.caller,
                time: service.now, schemaVersion: attempt.schema.version, idempotency: idempotency)
            command.client = client
            if isShare { command.quota = attempt.quotaTerms(of: request) }
            return try await Tried(.modifyZone(command), of: request, on: group)
        }
        switch outcome {
        case .zone(.exists(let state)): return state
        case .zone(.deleted): return nil
        case .refused(let error): throw RequestFailure(error)
        default: throw .otherAnswer
        }
    }
}
