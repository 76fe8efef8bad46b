import Cluster
import Directory
import RecordModel

/// `POST records/lookup`: up to 200 records of one zone by name.
struct RecordsLookup {
    var context: WebContext
    var request: DatabaseRequest

    func respond() async throws(RequestFailure) -> Reply {
        let form = try request.form(LookupRecordsRequest.self)
        let zone = try request.zone(form.zoneID)
        try await context.ensureUserRecord(of: request, among: form.records.map(\.recordName))
        let items = form.records.map { item in
            (
                item.recordName,
                ShardRead.Rendering(
                    desiredKeys: item.desiredKeys ?? form.desiredKeys, numbersAsStrings: form.numbersAsStrings)
            )
        }
        let records = try await context.readUnderSchema(
            request.schemaKey, from: context.node.map.group(of: zone), by: request.deadline
        ) { schema in
            .lookup(
                ShardRead.RecordLookup(
                    zone: zone, schemaVersion: schema.version, caller: request.caller, items: items))
        }
        if records.denials > 0 {
            context.audit.refused(
                request.origin, in: request.key.container, action: "records/lookup", subject: request.subject,
                count: records.denials)
        }
        let token = try await request.currentToken(of: zone, in: context)
        return Reply { writer in
            writer.key("records")
            writer.raw(records.bytes)
            if let token { writer.member("syncToken", token) }
        }
    }
}
