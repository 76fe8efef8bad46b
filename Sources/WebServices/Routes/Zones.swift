import Authorization
import Cluster
import Crypto
import Directory
import RaftCore
import RecordModel
import RecordStore

/// `zones/list`, `zones/lookup` and `zones/modify`.
struct Zones {
    var context: WebContext
    var request: DatabaseRequest

    /// `GET zones/list`: every zone of the database, sorted by name; the default zone is always there.
    func list() async throws(RequestFailure) -> Reply {
        var zones: [String: ZoneState] = [
            ZoneKey.defaultZoneName: ZoneState(name: ZoneKey.defaultZoneName, incarnation: 1, sequence: 0)
        ]
        let answers = try await context.readAll(of: request.key, by: request.deadline) { [request] _, schema in
            .zones(request.key, schemaVersion: schema.version)
        }
        for (_, answer) in answers {
            for state in try unpacked(answer.bytes, as: ShardList<ZoneState>.self).elements {
                zones[state.name] = state
            }
        }
        return Reply { writer in
            writer.key("zones")
            writer.array { writer in
                for name in zones.keys.sorted() { if let state = zones[name] { write(state, to: &writer) } }
            }
        }
    }

    /// `POST zones/lookup`.
    func lookup() async throws(RequestFailure) -> Reply {
        let form = try request.form(ZonesLookupRequest.self)
        var writer = JSONWriter()
        writer.beginArray()
        for id in form.zones {
            do throws(RequestFailure) {
                let zone = try request.zone(id)
                if let state = try await context.zoneState(zone, by: request.deadline) {
                    write(state, to: &writer)
                } else {
                    writer.zoneError(id, ServiceError(.zoneNotFound, "no zone '\(id.name)' in this database"))
                }
            } catch {
                if error.error.code == .tryAgainLater { throw error }
                writer.zoneError(id, error.error)
            }
        }
        writer.endArray()
        return Reply {
            $0.key("zones"); $0.raw(writer.bytes)
        }
    }

    /// `POST zones/modify`: creates and deletes, in order, each on its own.
    func modify() async throws(RequestFailure) -> Reply {
        guard request.key.scope == .private else {
            throw RequestFailure(.badRequest, "zones are made and deleted in the private database only")
        }
        let form = try request.form(ZonesModifyRequest.self)
        let key = try request.idempotencyKey.map { text throws(RequestFailure) in
            try UUIDv7.parse(text, now: context.now)
        }
        var writer = JSONWriter()
        writer.beginArray()
        for (number, operation) in form.operations.enumerated() {
            let id = operation.zoneID
            do throws(RequestFailure) {
                let zone = try request.zone(id)
                switch try await outcome(of: operation, on: zone, idempotency: key.map { idempotency($0, number) }) {
                case .zone(.exists(let state)): write(state, to: &writer)
                case .zone(.deleted): writer.deletedZone(request.zoneID(named: id.name))
                case .refused(let error): throw RequestFailure(error)
                default: throw RequestFailure(.internalError, "the shard gave an answer to another question")
                }
            } catch {
                writer.zoneError(id, error.error)
            }
        }
        writer.endArray()
        return Reply {
            $0.key("zones"); $0.raw(writer.bytes)
        }
    }

    /// A request's key stands for several commands, each with its place in the request.
    private func idempotency(_ key: [UInt8], _ number: Int) -> IdempotencyKey {
        IdempotencyKey(
            key: key, bodyHash: Array(SHA256.hash(data: request.body)),
            caller: request.caller.user ?? Caller.anonymousName, position: UInt64(number))
    }

    private func outcome(
        of operation: ZonesModifyRequest.Operation, on zone: ZoneKey, idempotency: IdempotencyKey?
    ) async throws(RequestFailure) -> RecordOutcome {
        try await context.submitUnderSchema(
            request.schemaKey, to: context.node.map.group(of: zone), by: request.deadline
        ) { schema in
            .modifyZone(
                ModifyZone(
                    operation.kind == .create ? .create : .delete, zone: zone, caller: request.caller,
                    time: context.now, schemaVersion: schema.version, idempotency: idempotency))
        }
    }

    private func write(_ state: ZoneState, to writer: inout JSONWriter) {
        writer.zone(
            state, of: ZoneKey(database: request.key, name: state.name), id: request.zoneID(named: state.name))
    }
}

extension JSONWriter {
    /// A zone dictionary; zones with a change feed have a token.
    mutating func zone(_ state: ZoneState, of zone: ZoneKey, id: ZoneID) {
        self.zone(
            id, syncToken: zone.isAtomic ? Base64.encode(ZoneToken.current(zone, state)) : nil, isAtomic: zone.isAtomic)
    }
}
