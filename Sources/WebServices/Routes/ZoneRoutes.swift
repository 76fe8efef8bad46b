import RecordModel
import RecordStore
import Service

/// `zones/list`, `zones/lookup` and `zones/modify`.
struct ZoneRoutes {
    let call: DatabaseCall

    private var zones: Zones { Zones(call.request) }

    /// `GET zones/list`: every zone of the database, sorted by name; the default zone is always there.
    func list() async throws(RequestFailure) -> Reply {
        let states = try await zones.list()
        return Reply { $0.array("zones") { writer in for state in states { writer.zone(state, of: call.request) } } }
    }

    /// `POST zones/lookup`.
    func lookUp() async throws(RequestFailure) -> Reply {
        let form = try call.form(ZonesLookupRequest.self)
        zones.pay(forZones: form.zones.count)
        var writer = JSONWriter()
        writer.beginArray()
        for id in form.zones {
            do throws(RequestFailure) {
                writer.zone(try await zones.lookUp(id), of: call.request)
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
        zones.pay(forZones: form.operations.count)
        var writer = JSONWriter()
        writer.beginArray()
        for (number, operation) in form.operations.enumerated() {
            do throws(RequestFailure) {
                if let state = try await zones.modify(operation, number: number) {
                    writer.zone(state, of: call.request)
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
    mutating func zone(_ state: ZoneState, of request: DatabaseRequest) {
        zone(
            request.zoneID(named: state.name), syncToken: request.token(of: state),
            isAtomic: ZoneKey(database: request.key, name: state.name).isAtomic)
    }
}

/// `changes/zone` and `changes/database`, and their older forms `records/changes` and `zones/changes`.
struct ChangeRoutes {
    let call: DatabaseCall

    /// Bytes of records in one answer, give or take a page: zones that come after have to be asked for again.
    private static let answerBytesMax = 8 << 20

    private var feeds: ChangeFeeds { ChangeFeeds(call.request) }

    /// `POST changes/zone`: each zone stands alone.
    func zones() async throws(RequestFailure) -> Reply {
        let form = try call.form(ZoneChangesRequestForm.self)
        call.note.about(zone: form.zones.first?.zoneID.name ?? "")
        // Those for which the answer has no room cost nothing: they are asked for again.
        var read = 0
        defer { Zones(call.request).pay(forZones: read) }
        var writer = JSONWriter()
        writer.beginArray()
        for item in form.zones {
            let id = call.request.zoneID(named: item.zoneID.name)
            do throws(RequestFailure) {
                guard writer.bytes.count <= Self.answerBytesMax else {
                    throw RequestFailure(
                        ServiceError(
                            .tryAgainLater, "the zones before this one filled the answer: ask for this one again",
                            retryAfterSeconds: 0))
                }
                read += 1
                let page = try await feeds.zone(item)
                call.note.note { $0.records += page.count }
                writer.zoneChanges(id, records: page.records, moreComing: page.hasMore, syncToken: page.token)
            } catch {
                call.note.itemFailed(error.error)
                writer.zoneError(ZoneID(name: id.name, owner: item.zoneID.owner ?? id.owner), error.error)
            }
        }
        writer.endArray()
        return Reply { $0.raw("zones", writer.bytes) }
    }

    /// `POST records/changes`: one zone, whose fault is the request's.
    func records() async throws(RequestFailure) -> Reply {
        let form = try call.form(RecordChangesRequest.self)
        let page = try await feeds.zone(form)
        call.note.about(zone: form.zoneID.name, records: page.count)
        return Reply { writer in
            writer.changesMembers(
                records: page.records, moreComing: page.hasMore, syncToken: page.token, isReverse: form.isReverse)
        }
    }

    /// `POST changes/database`.
    func database() async throws(RequestFailure) -> Reply {
        let form = try call.form(DatabaseChangesForm.self)
        let page = try await feeds.database(after: form.syncToken, limit: form.resultsLimit)
        return Reply { writer in
            writer.array("zones") { writer in
                for zone in page.zones {
                    writer.changedZone(
                        call.request.zoneID(named: zone.state.name), incarnation: zone.state.incarnation,
                        isDeleted: zone.isDeleted)
                }
            }
            writer.member("moreComing", page.hasMore)
            writer.member("syncToken", page.token)
        }
    }

    /// `POST zones/changes`: zone dictionaries instead of bare IDs, and the token under both of its names.
    func zoneDictionaries() async throws(RequestFailure) -> Reply {
        let form = try call.form(ZonesChangesForm.self)
        let page = try await feeds.database(after: form.syncToken, limit: form.resultsLimit)
        return Reply { writer in
            writer.array("zones") { writer in
                for zone in page.zones {
                    if zone.isDeleted {
                        writer.deletedZone(call.request.zoneID(named: zone.state.name))
                    } else {
                        writer.zone(zone.state, of: call.request)
                    }
                }
            }
            writer.member("moreComing", page.hasMore)
            writer.member("syncToken", page.token)
            writer.member("metaSyncToken", page.token)
        }
    }
}
