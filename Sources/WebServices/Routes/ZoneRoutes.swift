import RecordModel
import RecordStore
import Service

/// `zones/list`, `zones/lookup` and `zones/modify`.
struct ZoneRoutes {
    var service: RecordService
    var call: DatabaseCall

    private var zones: Zones { Zones(service, call.request) }

    /// `GET zones/list`: every zone of the database, sorted by name; the default zone is always there.
    func list() async throws(RequestFailure) -> Reply {
        let states = try await zones.list()
        return Reply { writer in
            writer.array("zones") { writer in for state in states { writer.zone(state, of: call.request, in: service) }
            }
        }
    }

    /// `POST zones/lookup`.
    func lookUp() async throws(RequestFailure) -> Reply {
        let form = try call.form(ZonesLookupRequest.self)
        var writer = JSONWriter()
        writer.beginArray()
        for id in form.zones {
            do throws(RequestFailure) {
                writer.zone(try await zones.lookUp(id), of: call.request, in: service)
            } catch {
                if error.error.code == .tryAgainLater { throw error }
                writer.zoneError(id, error.error)
            }
        }
        writer.endArray()
        return Reply { $0.raw("zones", writer.bytes) }
    }

    /// `POST zones/modify`: creates and deletes, in order, each on its own.
    func modify() async throws(RequestFailure) -> Reply {
        try zones.requireModifiable()
        let form = try call.form(ZonesModifyRequest.self)
        var writer = JSONWriter()
        writer.beginArray()
        for (number, operation) in form.operations.enumerated() {
            do throws(RequestFailure) {
                if let state = try await zones.modify(operation, number: number) {
                    writer.zone(state, of: call.request, in: service)
                } else {
                    writer.deletedZone(call.request.zoneID(named: operation.zoneID.name))
                }
            } catch {
                call.note.itemFailed(error.error)
                writer.zoneError(operation.zoneID, error.error)
            }
        }
        writer.endArray()
        return Reply { $0.raw("zones", writer.bytes) }
    }
}

extension JSONWriter {
    /// A zone dictionary; zones with a change feed have a token.
    mutating func zone(_ state: ZoneState, of request: DatabaseRequest, in service: RecordService) {
        zone(
            request.zoneID(named: state.name), syncToken: request.token(of: state, in: service),
            isAtomic: ZoneKey(database: request.key, name: state.name).isAtomic)
    }
}
