import Cluster
import RaftCore
import RecordModel
import RecordStore
import Wire

/// `zones/list`, `zones/lookup` and `zones/modify`.
struct Zones {
    var context: WebContext
    var request: DatabaseRequest

    /// `GET zones/list`: every zone of the database, sorted by name; the default zone is always there.
    func list() async throws(RequestFailure) -> Reply {
        var names: [String: ZoneState] = [
            ZoneKey.defaultZoneName: ZoneState(name: ZoneKey.defaultZoneName, incarnation: 1, sequence: 0)
        ]
        for state in try await states() { names[state.name] = state }
        return Reply { writer in
            writer.key("zones")
            writer.array { writer in
                for name in names.keys.sorted() { if let state = names[name] { write(state, to: &writer) } }
            }
        }
    }

    /// The zones on every shard; asked all at once.
    private func states() async throws(RequestFailure) -> [ZoneState] {
        let groups =
            request.key.scope == .public
            ? [context.node.map.group(of: ZoneKey(database: request.key, name: ZoneKey.defaultZoneName))]
            : Array(context.node.map.groups.dropFirst())
        let answers = await withTaskGroup(of: Result<[ZoneState], RequestFailure>.self) { tasks in
            for group in groups {
                tasks.addTask {
                    do throws(RequestFailure) {
                        return .success(try await found(.zones(request.key), on: group))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        var states: [ZoneState] = []
        for answer in answers { states += try answer.get() }
        return states
    }

    private func found(_ read: ShardRead, on group: GroupID) async throws(RequestFailure) -> [ZoneState] {
        switch try await context.read(read, from: group, by: request.deadline) {
        case .found(let bytes, _):
            do throws(ClusterError) {
                return try decoded(bytes, as: ZoneStates.self).states
            } catch {
                throw RequestFailure(error)
            }
        case .refused(let error): throw RequestFailure(error)
        case .needsSchema: throw RequestFailure(.internalError, "a read of zones needs no schema")
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
                if let state = try await found(.zone(zone), on: context.node.map.group(of: zone)).first {
                    write(state, to: &writer)
                } else if zone.isDefault {
                    write(ZoneState(name: id.name, incarnation: 1, sequence: 0), to: &writer)
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
        var writer = JSONWriter()
        writer.beginArray()
        for operation in form.operations {
            let id = operation.zoneID
            do throws(RequestFailure) {
                let zone = try request.zone(id)
                let command = ModifyZone(
                    operation.kind == .create ? .create : .delete, zone: zone, caller: request.caller, time: context.now
                )
                switch try await outcome(of: command) {
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

    private func outcome(of command: ModifyZone) async throws(RequestFailure) -> RecordOutcome {
        let bytes = try await context.submit(
            .record(.modifyZone(command)), to: context.node.map.group(of: command.zone), by: request.deadline)
        do throws(ClusterError) {
            return try decoded(bytes)
        } catch {
            throw RequestFailure(error)
        }
    }

    private func write(_ state: ZoneState, to writer: inout JSONWriter) {
        let zone = ZoneKey(database: request.key, name: state.name)
        var token = WireWriter()
        token.field(1, state.incarnation)
        token.field(2, state.sequence)
        writer.zone(
            request.zoneID(named: state.name), syncToken: zone.isAtomic ? Base64.encode(token.bytes) : nil,
            isAtomic: zone.isAtomic)
    }
}
