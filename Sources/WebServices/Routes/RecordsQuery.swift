import Cluster
import Directory
import RecordModel
import RecordStore

/// `POST records/query`: one page of the records of a type for which all filters hold, in one zone.
struct RecordsQuery {
    var context: WebContext
    var request: DatabaseRequest

    func respond() async throws(RequestFailure) -> Reply {
        let form = try request.form(QueryRecordsRequest.self)
        if form.isZoneWide { throw .notBuilt("a query over all zones (zoneWide)") }
        let zone = try request.zone(form.zoneID)
        let cursor = try cursor(form.continuationMarker)
        let rendering = ShardRead.Rendering(desiredKeys: form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
        let (records, next) = try await context.readUnderSchema(
            request.schemaKey, from: context.node.map.group(of: zone), by: request.deadline
        ) { schema throws(RequestFailure) in
            let (query, version) = try await resolve(form, zone: zone, schema: schema)
            return .query(
                RecordQuery(
                    zone: zone, schemaVersion: version, caller: request.caller, query: query, limit: form.resultsLimit,
                    cursor: cursor),
                rendering)
        }
        return Reply { writer in
            writer.key("records")
            writer.raw(records)
            if let next { writer.member("continuationMarker", Base64.encode(next)) }
        }
    }

    /// The query in terms of the schema; a fault is believed only under the newest one.
    private func resolve(
        _ form: QueryRecordsRequest, zone: ZoneKey, schema: VersionedSchema
    ) async throws(RequestFailure) -> (Query, version: UInt64) {
        do throws(ServiceError) {
            return (try resolved(form, zone: zone, schema: schema.schema), schema.version)
        } catch {
            guard try await context.isOutdated(schema, request.schemaKey) else {
                throw RequestFailure(error)
            }
        }
        let newest = context.schema(request.schemaKey)
        do throws(ServiceError) {
            return (try resolved(form, zone: zone, schema: newest.schema), newest.version)
        } catch {
            throw RequestFailure(error)
        }
    }

    private func resolved(_ form: QueryRecordsRequest, zone: ZoneKey, schema: Schema) throws(ServiceError) -> Query {
        guard let type = schema.type(named: form.query.recordType) else {
            throw ServiceError(
                .badRequest,
                "record type not found: \(form.query.recordType). Add it to the schema with `zonekeeper schema import`")
        }
        return try form.query.resolve(schema: type, zone: form.zoneID)
    }

    private func cursor(_ marker: String?) throws(RequestFailure) -> [UInt8]? {
        guard let marker else { return nil }
        guard let bytes = Base64.decode(marker) else {
            throw RequestFailure(.badRequest, "continuationMarker: it is not one that this server gave")
        }
        return bytes
    }
}
