import Admission
import Cluster
import Directory
import RecordModel
import RecordStore
import Wire

/// `zoneWide`: one page of a query over every zone of a private database, merged from its shards.
///
/// Every shard answers in the same total order and says of each record where in it the record stands, as bytes; the
/// merge compares bytes. The marker is the position of the page's last record, which any shard can go on from.
struct DatabaseWideQuery {
    let request: DatabaseRequest
    let form: QueryRecordsRequest
    private var service: RecordService { request.service }

    func page() async throws(RequestFailure) -> RecordQueries.Page {
        if form.explains {
            throw .badRequest("explain: a query over one zone can be explained; name one in zoneID")
        }
        let hash = try await request.judge { attempt throws(ServiceError) in
            let schema = attempt.schema.schema
            let query = try request.resolved(form, schema: schema)
            return Marker.hash(query, of: request.key, type: schema.type(named: query.recordType) ?? .blank)
        }
        let marker = try await marker(hash)
        let rendering = request.rendering(desiredKeys: form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
        let answers = try await service.attempts.readAll(of: request.key, by: request.deadline) {
            [request, form] _, schema throws(ServiceError) in
            .databaseQuery(
                DatabaseQuery(
                    database: request.key, schemaVersion: schema.version, caller: request.caller,
                    query: try request.resolved(form, schema: schema.schema), limit: form.resultsLimit,
                    cursor: marker?.position),
                rendering)
        }
        // Each shard answers with a page of its own, most of which may be thrown away.
        let gathered = answers.reduce(0) { $0 + $1.answer.bytes.count }
        service.peerExchange.rates.charge(Self.tokens(forGathered: gathered), to: request)
        let page = try merged(answers.map(\.answer))
        var records = JSONWriter(capacity: page.records.reduce(2) { $0 + $1.json.count + 1 })
        records.array { writer in for record in page.records { writer.raw(record.json) } }
        return RecordQueries.Page(
            records: records.bytes, count: page.records.count,
            continuationMarker: page.next.map { next in
                SealedPosition.marker.text(of: Marker(query: hash, position: next).encoded(), in: service)
            })
    }

    /// What a query costs beyond one token: a token for each MB that the shards send beyond the bytes of one page.
    static func tokens(forGathered bytes: Int) -> Int { max(0, bytes - (4 << 20)) / 1_000_000 }

    /// The first records of all shards, and where to go on. No shard's silence beyond the position that it looked up to
    /// counts.
    private func merged(_ answers: [ShardAnswer]) throws(RequestFailure) -> (records: [RankedRecord], next: [UInt8]?) {
        var all: [RankedRecord] = []
        for answer in answers { all += try unpacked(answer.bytes, as: ShardList<RankedRecord>.self).elements }
        all.sort { $0.position.lexicographicallyPrecedes($1.position) }
        let horizon = answers.compactMap(\.cursor).min { $0.lexicographicallyPrecedes($1) }
        if let horizon { all.removeAll { horizon.lexicographicallyPrecedes($0.position) } }
        guard all.count > form.resultsLimit else { return (all, horizon) }
        let records = Array(all.prefix(form.resultsLimit))
        return (records, records.last?.position)
    }

    private func marker(_ hash: UInt64) async throws(RequestFailure) -> Marker? {
        guard let bytes = try await SealedPosition.marker.open(form.continuationMarker, in: service) else {
            return nil
        }
        guard let marker = try? Marker(decoding: bytes), marker.query == hash else {
            throw .badRequest("continuationMarker is not one of this query: start again without it")
        }
        return marker
    }
}

/// The bytes of a marker of a query over a whole database.
private struct Marker: WireMessage {
    /// What the query was, and what its order follows; a marker of another one is refused.
    var query: UInt64
    var position: [UInt8]
    /// Tells it from the cursor of a query over one zone, which has no such field.
    var isWide = true

    /// FNV-1a of the query with its order, and its database: the same on every node.
    static func hash(_ query: Query, of database: DatabaseKey, type: RecordType) -> UInt64 {
        fnv1a(database.encoded() + query.encodedWithOrder(in: type))
    }

    static var blank: Self { Marker(query: 0, position: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &query)
        try wire.field(2, &position)
        try wire.required(3, &isWide)
    }

    mutating func check() throws(WireError) {
        guard isWide else { throw .missingField(3) }
    }
}
