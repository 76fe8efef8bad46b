import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore

/// `changes/zone` and its older form `records/changes`: what became of the records of a zone since a token.
struct ZoneChanges {
    var context: WebContext
    var request: DatabaseRequest

    /// Bytes of records in one answer, give or take a page: zones that come after have to be asked for again.
    private static let answerBytesMax = 8 << 20

    /// `POST changes/zone`: each zone stands alone.
    func zones() async throws(RequestFailure) -> Reply {
        let form = try request.form(ZoneChangesRequestForm.self)
        var writer = JSONWriter()
        writer.beginArray()
        for item in form.zones {
            let id = request.zoneID(named: item.zoneID.name)
            do throws(RequestFailure) {
                guard writer.bytes.count <= Self.answerBytesMax else {
                    throw RequestFailure(
                        ServiceError(
                            .tryAgainLater, "the zones before this one filled the answer: ask for this one again",
                            retryAfterSeconds: 0))
                }
                let page = try await page(of: item)
                writer.zoneChanges(
                    id, records: page.bytes, moreComing: page.hasMore, syncToken: page.cursor ?? [])
            } catch {
                writer.zoneError(ZoneID(name: id.name, owner: item.zoneID.owner ?? id.owner), error.error)
            }
        }
        writer.endArray()
        return Reply {
            $0.key("zones"); $0.raw(writer.bytes)
        }
    }

    /// `POST records/changes`: one zone, whose fault is the request's.
    func records() async throws(RequestFailure) -> Reply {
        let form = try request.form(RecordChangesRequest.self)
        let page = try await page(of: form)
        return Reply { writer in
            writer.changesMembers(
                records: page.bytes, moreComing: page.hasMore, syncToken: page.cursor ?? [], isReverse: form.isReverse)
        }
    }

    private func page(of item: RecordChangesRequest) async throws(RequestFailure) -> ShardAnswer {
        let zone = try request.zone(item.zoneID)
        let token: [UInt8]?
        do throws(ServiceError) {
            token = try SyncToken.bytes(item.syncToken)
        } catch {
            throw RequestFailure(error)
        }
        return try await context.readUnderSchema(
            request.schemaKey, from: context.node.map.group(of: zone), by: request.deadline
        ) { schema in
            .zoneChanges(
                ZoneChangesRequest(
                    zone: zone, schemaVersion: schema.version, caller: request.caller, token: token,
                    limit: item.resultsLimit, isReverse: item.isReverse, recordTypes: item.desiredRecordTypes),
                ShardRead.Rendering(desiredKeys: item.desiredKeys, numbersAsStrings: item.numbersAsStrings))
        }
    }
}

/// `changes/database` and its older form `zones/changes`: the zones of a private database with changes since a token.
struct DatabaseChanges {
    var context: WebContext
    var request: DatabaseRequest

    /// `POST changes/database`.
    func database() async throws(RequestFailure) -> Reply {
        let form = try request.form(DatabaseChangesForm.self)
        let page = try await page(after: form.syncToken, limit: form.resultsLimit)
        return Reply { writer in
            writer.key("zones")
            writer.array { writer in
                for zone in page.zones {
                    writer.changedZone(request.zoneID(named: zone.state.name), isDeleted: zone.isDeleted)
                }
            }
            writer.member("moreComing", page.hasMore)
            writer.member("syncToken", page.token)
        }
    }

    /// `POST zones/changes`: zone dictionaries instead of bare IDs, and the token under both of its names.
    func zones() async throws(RequestFailure) -> Reply {
        let form = try request.form(ZonesChangesForm.self)
        let page = try await page(after: form.syncToken, limit: form.resultsLimit)
        return Reply { writer in
            writer.key("zones")
            writer.array { writer in
                for zone in page.zones {
                    let id = request.zoneID(named: zone.state.name)
                    if zone.isDeleted {
                        writer.deletedZone(id)
                    } else {
                        writer.zone(zone.state, of: ZoneKey(database: request.key, name: zone.state.name), id: id)
                    }
                }
            }
            writer.member("moreComing", page.hasMore)
            writer.member("syncToken", page.token)
            writer.member("metaSyncToken", page.token)
        }
    }

    private struct Page {
        var zones: [ChangedZone] = []
        var token = ""
        var hasMore = false
    }

    /// Asks all shards at once and takes their answers in order while they fit: what does not fit comes again with the next page.
    private func page(after text: String?, limit: Int) async throws(RequestFailure) -> Page {
        guard request.key.scope == .private else {
            throw RequestFailure(
                .badRequest, "the public database has one zone, which has no change feed; query its records instead")
        }
        var token = try DatabaseToken(text, of: request.key)
        let begin = token
        let answers = try await context.readAll(of: request.key, by: request.deadline) { [request] group, schema in
            let place = begin.places[group.rawValue] ?? DatabaseToken.Place()
            return .databaseChanges(
                DatabaseChangesRequest(
                    database: request.key, schemaVersion: schema.version, caller: request.caller,
                    incarnation: place.incarnation, after: place.position, limit: limit))
        }
        var page = Page()
        let first = Int(token.turn % UInt64(max(answers.count, 1)))
        for (group, answer) in answers[first...] + answers[..<first] {
            let part = try unpacked(answer.bytes, as: DatabaseChangesPage.self)
            guard page.zones.count + part.zones.count <= limit else {
                page.hasMore = true
                continue
            }
            page.zones += part.zones
            page.hasMore = page.hasMore || part.hasMore
            token.places[group.rawValue] = DatabaseToken.Place(
                incarnation: part.incarnation, position: part.position)
        }
        if page.hasMore { token.turn = UInt64((first + 1) % answers.count) }
        page.zones.sort { $0.state.name < $1.state.name }
        page.token = token.text
        return page
    }
}
