import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore

/// `POST records/query`: one page of the records of a type for which all filters hold, in one zone or in the whole database.
struct RecordsQuery {
    var context: WebContext
    var request: DatabaseRequest

    func respond() async throws(RequestFailure) -> Reply {
        let form = try request.form(QueryRecordsRequest.self)
        // The public database has one zone, so all of its zones are that one.
        if form.isZoneWide, request.key.scope == .private {
            return try await DatabaseWideQuery(context: context, request: request, form: form).respond()
        }
        let zone = try request.zone(form.zoneID)
        let cursor = try ContinuationMarker.position(form.continuationMarker, context.identity.signer)
        let rendering = ShardRead.Rendering(desiredKeys: form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
        let page = try await context.readUnderSchema(
            request.schemaKey, from: context.node.map.group(of: zone), by: request.deadline
        ) { schema throws(RequestFailure) in
            let (query, version) = try await context.resolve(form, for: request, schema: schema)
            var read = RecordQuery(
                zone: zone, schemaVersion: version, caller: request.caller, query: query, limit: form.resultsLimit,
                cursor: cursor)
            read.explains = form.explains
            return .query(read, rendering)
        }
        let token = try await request.currentToken(of: zone, in: context)
        return Reply { writer in
            writer.key("records")
            writer.raw(page.bytes)
            if let next = page.cursor {
                writer.member("continuationMarker", ContinuationMarker.text(of: next, context.identity.signer))
            }
            if let token { writer.member("syncToken", token) }
            if let explanation = page.explanation {
                writer.key("explanation")
                writer.raw(explanation)
            }
        }
    }
}

extension WebContext {
    /// A query in terms of the schema; a fault is believed only under the newest one.
    func resolve(
        _ form: QueryRecordsRequest, for request: DatabaseRequest, schema: VersionedSchema
    ) async throws(RequestFailure) -> (Query, version: UInt64) {
        do throws(ServiceError) {
            return (try request.resolved(form, schema: schema.schema), schema.version)
        } catch {
            guard try await isOutdated(schema, request.schemaKey) else {
                throw RequestFailure(error)
            }
        }
        let newest = self.schema(request.schemaKey)
        do throws(ServiceError) {
            return (try request.resolved(form, schema: newest.schema), newest.version)
        } catch {
            throw RequestFailure(error)
        }
    }
}

extension DatabaseRequest {
    fileprivate func resolved(_ form: QueryRecordsRequest, schema: Schema) throws(ServiceError) -> Query {
        guard let type = schema.type(named: form.query.recordType) else {
            throw ServiceError(
                .badRequest,
                "record type not found: \(form.query.recordType). `zonekeeper schema export \(key.container)` shows those that "
                    + "there are")
        }
        let isWide = form.isZoneWide && key.scope == .private
        // The command that an error names must change this environment, and development is what it takes by itself.
        let target = key.environment == .development ? key.container : "\(key.container) --environment production"
        return try form.query.resolve(schema: type, zone: isWide ? nil : form.zoneID, container: target)
    }
}
