import RecordModel
import RecordStore
import Service

/// `changes/zone` and `changes/database`, and their older forms `records/changes` and `zones/changes`.
struct ChangeRoutes {
    var service: RecordService
    var call: DatabaseCall

    /// Bytes of records in one answer, give or take a page: zones that come after have to be asked for again.
    private static let answerBytesMax = 8 << 20

    private var feeds: ChangeFeeds { ChangeFeeds(service, call.request) }

    /// `POST changes/zone`: each zone stands alone.
    func zones() async throws(RequestFailure) -> Reply {
        let form = try call.form(ZoneChangesRequestForm.self)
        call.note.about(zone: form.zones.first?.zoneID.name ?? "")
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
                        writer.zone(zone.state, of: call.request, in: service)
                    }
                }
            }
            writer.member("moreComing", page.hasMore)
            writer.member("syncToken", page.token)
            writer.member("metaSyncToken", page.token)
        }
    }
}
