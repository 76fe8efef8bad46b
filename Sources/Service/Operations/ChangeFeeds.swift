import Cluster
import Directory
import RaftCore
package import RecordModel
package import RecordStore
import Wire

/// What became of the records and zones of one database since a token.
package struct ChangeFeeds: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// A page of a zone's feed.
    package struct ZonePage: Sendable {
        /// The JSON array that the shard's leader rendered.
        package var records: [UInt8]
        /// How many of them there are.
        package var count: Int
        /// Whether the feed goes on after `token`.
        package var hasMore: Bool
        /// Where the next page begins, as bytes; clients get it in Base64.
        package var token: [UInt8]
    }

    /// A page of a database's feed.
    package struct DatabasePage: Sendable {
        /// By name.
        package var zones: [ChangedZone] = []
        /// Where the next page begins, in Base64.
        package var token = ""
        /// Whether there are changed zones that are not on the page.
        package var hasMore = false
    }

    /// What became of the records of one zone.
    package func zone(_ item: RecordChangesRequest) async throws(RequestFailure) -> ZonePage {
        let zone = try request.zone(item.zoneID)
        let token = try await SealedPosition.zone.open(item.syncToken, in: service)
        let page = try await request.read(zone) { schema in
            .zoneChanges(
                ZoneChangesRequest(
                    zone: zone, schemaVersion: schema.version, caller: request.caller, token: token,
                    limit: item.resultsLimit, isReverse: item.isReverse, recordTypes: item.desiredRecordTypes),
                request.rendering(desiredKeys: item.desiredKeys, numbersAsStrings: item.numbersAsStrings))
        }
        return ZonePage(
            records: page.bytes, count: page.count, hasMore: page.hasMore,
            token: SealedPosition.zone.bytes(of: page.cursor ?? [], in: service))
    }

    /// The zones of a private database with changes. Asks all shards at once and takes their answers in order while
    /// they fit: what does not fit comes again with the next page.
    package func database(after text: String?, limit: Int) async throws(RequestFailure) -> DatabasePage {
        guard request.key.scope == .private else {
            throw .badRequest("the public database has one zone, which has no change feed; query its records instead")
        }
        var token = try DatabaseToken(
            await SealedPosition.database.open(text, in: service), of: request.key)
        let begin = token
        let answers = try await service.attempts.readAll(of: request.key, by: request.deadline) {
            [request] group, schema in
            let place = begin.places[group.rawValue] ?? DatabaseToken.Place()
            return .databaseChanges(
                DatabaseChangesRequest(
                    database: request.key, schemaVersion: schema.version, caller: request.caller,
                    incarnation: place.incarnation, after: place.position, limit: limit))
        }
        var page = DatabasePage()
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
        page.token = SealedPosition.database.text(of: token.encoded(), in: service)
        return page
    }
}
