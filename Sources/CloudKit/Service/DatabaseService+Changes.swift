import RecordModel

/// What of a zone's changes is wanted.
struct ZoneChangesCall: Sendable {
    var zone: CKRecordZone.ID
    /// Nil for the beginning.
    var token: CKServerChangeToken?
    /// Of one page; nil for the server's.
    var limit: Int?
    var desiredKeys: [String]?

    /// The limit to ask with again where a page was too long for an answer; nil where that was not why it failed, or it
    /// cannot be smaller.
    func smallerLimit(after error: CKError) -> Int? {
        let limit = limit ?? DatabaseService.pageMax
        return error.isOfTooLongAnswer && limit > 1 ? limit / 2 : nil
    }
}

/// A change of a zone, in the order of the feed.
enum ZoneChange: Sendable {
    case changed(CKRecord.ID, Result<CKRecord, any Error>)
    case deleted(CKRecord.ID, CKRecord.RecordType)
}

/// A page of a zone's changes, or why there is none.
struct ZoneChangesPage: Sendable {
    var changes: [ZoneChange]
    var token: CKServerChangeToken
    var hasMore: Bool
}

/// A page of a database's changes.
struct DatabaseChangesPage: Sendable {
    /// Zones with changes, and whether each was deleted.
    var zones: [(id: CKRecordZone.ID, isDeleted: Bool)]
    var token: CKServerChangeToken
    var hasMore: Bool
}

extension DatabaseService {
    /// One page of each zone's changes. A zone that did not fit the answer is among none of the results and is asked
    /// for again.
    func changes(
        _ calls: [ZoneChangesCall]
    ) async throws(CKError) -> [(zone: CKRecordZone.ID, page: Result<ZoneChangesPage, CKError>)] {
        let answer = try await read("changes/zone") { writer in
            writer.key("zones")
            writer.array { writer in for call in calls { Self.write(call, to: &writer) } }
        }
        let members = try members("zones", of: answer)
        guard members.count == calls.count else { throw .unreadable("zone for each one asked for") }
        var results: [(zone: CKRecordZone.ID, page: Result<ZoneChangesPage, CKError>)] = []
        let mapping = mapping
        for (place, (call, json)) in zip(calls, members).enumerated() {
            if let error = mapping.item(json) {
                // The zones before it filled the answer.
                if place > 0, error.code == .zoneBusy, error.retryAfterSeconds == 0 { continue }
                results.append((call.zone, .failure(error)))
            } else {
                results.append((call.zone, .success(try page(json, of: call.zone))))
            }
        }
        return results
    }

    /// One page of one zone's changes, a smaller one where the server's would be too long.
    func zoneChanges(_ call: ZoneChangesCall) async throws(CKError) -> ZoneChangesPage {
        var call = call
        while true {
            switch try await changes([call]).first?.page {
            case .success(let page)?: return page
            case .failure(let error)?:
                guard let limit = call.smallerLimit(after: error) else { throw error }
                call.limit = limit
            case nil: throw .unreadable("zone")
            }
        }
    }

    private static func write(_ call: ZoneChangesCall, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("zoneID")
        writer.zoneID(of: call.zone)
        if let token = call.token { writer.member("syncToken", token.value) }
        if let limit = call.limit { writer.member("resultsLimit", integer: Int64(limit)) }
        writer.desiredKeys(call.desiredKeys)
        writer.endObject()
    }

    private func page(_ json: JSONValue, of zone: CKRecordZone.ID) throws(CKError) -> ZoneChangesPage {
        guard let token = json["syncToken"]?.string else { throw .unreadable("syncToken") }
        let (reader, mapping) = (RecordReader(zone: zone), mapping)
        let records = try members("records", of: json)
        var changes: [ZoneChange] = []
        changes.reserveCapacity(records.count)
        for record in records {
            let id = try reader.recordID(record)
            if record["deleted"] == .bool(true) {
                // The server keeps no type of what is gone.
                changes.append(.deleted(id, record["recordType"]?.string ?? ""))
            } else {
                changes.append(.changed(id, reader.result(record, mapping)))
            }
        }
        return ZoneChangesPage(
            changes: changes, token: CKServerChangeToken(token), hasMore: json["moreComing"] == .bool(true))
    }

    /// One page of the zones that changed.
    func databaseChanges(
        since token: CKServerChangeToken?, limit: Int?
    ) async throws(CKError) -> DatabaseChangesPage {
        let answer = try await read("changes/database") { writer in
            if let token { writer.member("syncToken", token.value) }
            if let limit { writer.member("resultsLimit", integer: Int64(limit)) }
        }
        guard let token = answer["syncToken"]?.string else { throw .unreadable("syncToken") }
        var zones: [(id: CKRecordZone.ID, isDeleted: Bool)] = []
        for json in try members("zones", of: answer) {
            guard let id = json["zoneID"].flatMap(RecordReader.zoneID) else { throw .unreadable("zoneID") }
            zones.append((id, json["deleted"] == .bool(true)))
        }
        return DatabaseChangesPage(
            zones: zones, token: CKServerChangeToken(token), hasMore: answer["moreComing"] == .bool(true))
    }
}
