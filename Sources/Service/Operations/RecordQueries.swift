import Authorization
import Cluster
import Directory
import RaftCore
package import RecordModel
import RecordStore

/// Looks for records of one database: by name, or by a query over one zone or all of them.
package struct RecordQueries: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// Records, as the JSON array that the shards' leaders rendered.
    package struct Page: Sendable {
        /// A JSON array. A lookup has one element for each name, in their order, with an error where it failed.
        package var records: [UInt8]
        /// How many a query found.
        package var count = 0
        /// Where a query goes on; nil where it ended.
        package var continuationMarker: String?
        /// How the query was run, as a JSON object, where that was asked for.
        package var explanation: [UInt8]?
        /// The zone's token, where the request wants it.
        package var syncToken: String?
    }

    /// Up to 200 records of one zone by name.
    package func lookUp(_ form: LookupRecordsRequest) async throws(RequestFailure) -> Page {
        let zone = try request.zone(form.zoneID)
        try await service.userRecords.ensure(of: request, among: form.records.map(\.recordName))
        let items = form.records.map { item in
            (
                item.recordName,
                request.rendering(
                    desiredKeys: item.desiredKeys ?? form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
            )
        }
        let records = try await request.read(zone) { schema in
            .lookup(
                ShardRead.RecordLookup(
                    zone: zone, schemaVersion: schema.version, caller: request.caller, items: items))
        }
        request.auditDenials("records/lookup", count: records.denials)
        return Page(records: records.bytes, syncToken: try await request.currentToken(of: zone))
    }

    /// Earlier versions of one record, the newest first. Their files come with receipts, by which they can be saved.
    /// - Returns: the JSON array that the shard's leader rendered, and whether there are older ones.
    package func versions(
        _ form: RecordVersionsRequest
    ) async throws(RequestFailure) -> (versions: [UInt8], moreComing: Bool) {
        let zone = try request.zone(form.zoneID)
        try await service.node.require(
            .versions, for: "earlier versions of records need", in: service.node.map.group(of: zone))
        var rendering = request.rendering(desiredKeys: nil, numbersAsStrings: form.numbersAsStrings)
        rendering.assets = .linksAndReceipts(
            origin: request.origin, user: request.caller.stampName,
            expires: service.now + AssetDownloadTicket.lifeMilliseconds)
        let page = try await request.read(zone) { schema in
            .versions(
                VersionsRequest(
                    form.recordName, zone: zone, schemaVersion: schema.version, caller: request.caller,
                    before: form.before, limit: form.resultsLimit), rendering)
        }
        return (page.bytes, page.hasMore)
    }

    /// One page of the records of a type for which all filters hold, in one zone or in the whole database.
    package func query(_ form: QueryRecordsRequest) async throws(RequestFailure) -> Page {
        // The public database has one zone, so all of its zones are that one.
        if form.isZoneWide, request.key.scope == .private {
            return try await DatabaseWideQuery(request: request, form: form).page()
        }
        let zone = try request.zone(form.zoneID)
        let cursor = try await SealedPosition.marker.open(form.continuationMarker, in: service)
        let rendering = request.rendering(desiredKeys: form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
        let page = try await request.read(zone) { schema throws(ServiceError) in
            var read = RecordQuery(
                zone: zone, schemaVersion: schema.version, caller: request.caller,
                query: try request.resolved(form, schema: schema.schema), limit: form.resultsLimit, cursor: cursor)
            read.explains = form.explains
            return .query(read, rendering)
        }
        return Page(
            records: page.bytes, count: page.count,
            continuationMarker: page.cursor.map { SealedPosition.marker.text(of: $0, in: service) },
            explanation: page.explanation, syncToken: try await request.currentToken(of: zone))
    }
}

extension DatabaseRequest {
    /// A query in terms of the schema.
    func resolved(_ form: QueryRecordsRequest, schema: Schema) throws(ServiceError) -> Query {
        // The command that an error names must be about this environment, and development is what it takes by itself.
        let target = key.environment == .development ? key.container : "\(key.container) --environment production"
        guard let type = schema.type(named: form.query.recordType) else {
            throw ServiceError(
                .badRequest,
                "record type not found: \(form.query.recordType). `zonekeeper schema show --container \(target)` shows those "
                    + "that there are", detail: .unknownRecordType)
        }
        let isWide = form.isZoneWide && key.scope == .private
        return try form.query.resolve(schema: type, zone: isWide ? nil : form.zoneID, container: target)
    }
}
