import Foundation
import RecordModel
import ServiceClient

/// The outcome of one record of a lookup.
typealias RecordResult = (CKRecord.ID, Result<CKRecord, any Error>)

extension DatabaseService {
    /// Looks up records, one zone at a time, with the files of their assets.
    /// - Parameters:
    ///   - progress: gets how much of a record's files is there.
    ///   - deliver: gets the records of each request as soon as they are there.
    /// - Throws: if the whole call failed and nothing was delivered. After a delivery, each remaining item gets the
    ///   error.
    func fetch(
        _ ids: [CKRecord.ID], desiredKeys: [String]?, progress: (@Sendable (CKRecord.ID, Double) -> Void)? = nil,
        deliver: ([RecordResult]) async -> Void
    ) async throws(CKError) {
        var known: Set<CKRecord.ID> = []
        let zones = ids.filter { known.insert($0).inserted }.grouped(by: \.zoneID)
        var hasDelivered = false
        var failure: CKError?
        for (zone, ids) in zones {
            var rest = ids[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(Self.pageMax))
                rest = rest.dropFirst(part.count)
                var results: [RecordResult]
                do throws(CKError) {
                    if let failure { throw failure }
                    let found = try await lookup(part, in: zone, desiredKeys: desiredKeys)
                    results = await AssetFetcher(
                        service: self, desiredKeys: desiredKeys,
                        progress: progress.map { tell in TransferProgress { tell(part[$0], $1) } }
                    ).withFiles(found)
                    try checkCancellation()
                } catch {
                    if error.isOfWholeRequest {
                        guard hasDelivered else { throw error }
                        failure = error
                    }
                    results = part.map { ($0, .failure(error)) }
                }
                await deliver(results)
                hasDelivered = true
            }
        }
    }

    /// Looks up at most 200 records of one zone in one request, and in halves if they are too large for one answer;
    /// those for which an answer has no room in further ones.
    func lookup(
        _ ids: [CKRecord.ID], in zone: CKRecordZone.ID, desiredKeys: [String]?
    ) async throws(CKError) -> [RecordResult] {
        do throws(CKError) {
            var results = try await lookupAtOnce(ids, in: zone, desiredKeys: desiredKeys)
            var left = results.indices.filter { place in
                if case .failure(let error as CKError) = results[place].1 { error.isOfTooLongAnswer } else { false }
            }
            // The first one is too large by itself where none has room.
            if left.count == ids.count { left = Array(left.dropFirst()) }
            if left.isEmpty { return results }
            let others = try await lookup(left.map { ids[$0] }, in: zone, desiredKeys: desiredKeys)
            for (place, other) in zip(left, others) { results[place] = other }
            return results
        } catch {
            guard error.isOfTooLongAnswer, ids.count > 1 else { throw error }
            let middle = ids.count / 2
            return try await lookup(Array(ids[..<middle]), in: zone, desiredKeys: desiredKeys)
                + lookup(Array(ids[middle...]), in: zone, desiredKeys: desiredKeys)
        }
    }

    private func lookupAtOnce(
        _ ids: [CKRecord.ID], in zone: CKRecordZone.ID, desiredKeys: [String]?
    ) async throws(CKError) -> [RecordResult] {
        let answer = try await read("records/lookup") { writer in
            writer.member("zoneID", zone)
            writer.desiredKeys(desiredKeys)
            writer.member("records", each: ids) { writer, id in
                writer.object { $0.member("recordName", id.recordName) }
            }
        }
        let members = try members("records", of: answer, count: ids.count, "record for each name")
        let (reader, mapping) = (RecordReader(zone: zone, scope: scope), mapping)
        return zip(ids, members).map { ($0, reader.result($1, mapping)) }
    }

    /// One record with the files of its assets, or its error.
    func record(_ id: CKRecord.ID) async throws(CKError) -> CKRecord {
        let found = try await lookedUp(id, desiredKeys: nil)
        return try single(await AssetFetcher(service: self).withFiles([(id, .success(found))]))
    }

    /// One record without files, or its error.
    func lookedUp(_ id: CKRecord.ID, desiredKeys: [String]?) async throws(CKError) -> CKRecord {
        try single(await lookup([id], in: id.zoneID, desiredKeys: desiredKeys))
    }

    private func single(_ results: [RecordResult]) throws(CKError) -> CKRecord {
        guard let result = results.first else { throw .unreadable("record") }
        do {
            return try result.1.get()
        } catch {
            throw mapping.error(error)
        }
    }

    func userRecordID() async throws(CKError) -> CKRecord.ID {
        let (session, _) = try account.session()
        do {
            return CKRecord.ID(recordName: try await session.userRecordName())
        } catch {
            throw mapping.error(error)
        }
    }
}

/// A query and its position: the content of a cursor.
struct QueryCall: Sendable, Hashable {
    /// `{recordType, filterBy, sortBy}` as the server takes it.
    var query: JSONValue
    /// Nil is every zone of the database.
    var zone: CKRecordZone.ID?
    /// The end of the previous page; nil for the first one.
    var marker: String?
}

extension DatabaseService {
    /// The first page's call of a query; nil where no record can match.
    func call(_ query: CKQuery, in zone: CKRecordZone.ID?) throws(CKError) -> QueryCall? {
        guard let form = try query.webForm(zone: zone, distanceUnit: try distanceUnit()) else { return nil }
        return QueryCall(query: form, zone: zone, marker: nil)
    }

    /// What distances in predicates count in.
    func distanceUnit() throws(CKError) -> UnitLength {
        try account.configuration().distanceUnit == .metres ? .meters : .kilometers
    }

    /// Runs a query until there are as many records as wanted, or no more.
    /// - Parameters:
    ///   - limit: `CKQueryOperation.maximumResults` for as many as the server gives at once.
    ///   - deliver: gets each page's records as soon as they are there.
    /// - Returns: the call for the next page; nil at the end.
    func query(
        _ call: QueryCall, desiredKeys: [String]?, limit: Int, deliver: ([RecordResult]) async -> Void
    ) async throws(CKError) -> QueryCall? {
        guard limit >= 0 else {
            throw CKError(.invalidArguments, reason: "resultsLimit is \(limit); 1 or more is expected")
        }
        var call = call
        var count = 0
        var pageMax = Self.pageMax
        while true {
            try checkCancellation()
            let wanted = limit == CKQueryOperation.maximumResults ? pageMax : min(limit - count, pageMax)
            let page: (results: [RecordResult], marker: String?)
            do throws(CKError) {
                page = try await self.page(of: call, desiredKeys: desiredKeys, limit: wanted)
            } catch {
                guard error.isOfTooLongAnswer, wanted > 1 else { throw error }
                pageMax = wanted / 2
                continue
            }
            count += page.results.count
            if !page.results.isEmpty {
                let results = await AssetFetcher(service: self, desiredKeys: desiredKeys).withFiles(page.results)
                try checkCancellation()
                await deliver(results)
            }
            guard let marker = page.marker else { return nil }
            if page.results.isEmpty, marker == call.marker {
                throw .unreadable("new continuationMarker, though it says that more is coming,")
            }
            call.marker = marker
            // A page may be empty although more follow.
            let isEnough = limit == CKQueryOperation.maximumResults ? count > 0 : count >= limit
            if isEnough { return call }
        }
    }

    private func page(
        of call: QueryCall, desiredKeys: [String]?, limit: Int
    ) async throws(CKError) -> (results: [RecordResult], marker: String?) {
        let answer = try await read("records/query") { writer in
            writer.member("query", call.query)
            if let zone = call.zone {
                writer.member("zoneID", zone)
            } else if scope == .private {
                writer.member("zoneWide", true)
            }
            writer.member("resultsLimit", integer: Int64(limit))
            if let marker = call.marker { writer.member("continuationMarker", marker) }
            writer.desiredKeys(desiredKeys)
        }
        let (reader, mapping) = (RecordReader(zone: call.zone ?? .default, scope: scope), mapping)
        var results: [RecordResult] = []
        for json in try members("records", of: answer) {
            results.append((try reader.recordID(json), reader.result(json, mapping)))
        }
        return (results, answer["continuationMarker"]?.string)
    }
}

struct ZoneChangesCall: Sendable {
    var zone: CKRecordZone.ID
    /// Nil for the beginning.
    var token: CKServerChangeToken?
    /// The limit of a page; nil for the server's.
    var limit: Int?
    var desiredKeys: [String]?

    /// The limit for another attempt after a page was too long for an answer; nil if it failed for another reason, or
    /// the limit cannot be smaller.
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

/// A page of a zone's changes, or its error.
struct ZoneChangesPage: Sendable {
    var changes: [ZoneChange]
    var token: CKServerChangeToken
    var hasMore: Bool
}

struct DatabaseChangesPage: Sendable {
    /// Zones with changes, whether each was deleted, and the number of its life, which grows when it is deleted and
    /// made again, or restored.
    var zones: [(id: CKRecordZone.ID, isDeleted: Bool, life: Int64?)]
    var token: CKServerChangeToken
    var hasMore: Bool

    var modifications: [CKDatabase.DatabaseChange.Modification] {
        zones.filter { !$0.isDeleted }.map { CKDatabase.DatabaseChange.Modification(zoneID: $0.id) }
    }

    var deletions: [CKDatabase.DatabaseChange.Deletion] {
        zones.filter(\.isDeleted).map { CKDatabase.DatabaseChange.Deletion(zoneID: $0.id, reason: .deleted) }
    }
}

extension DatabaseService {
    /// Fetches one page of each zone's changes. A zone that did not fit the answer is in none of the results, and is
    /// fetched again.
    func changes(
        _ calls: [ZoneChangesCall]
    ) async throws(CKError) -> [(zone: CKRecordZone.ID, page: Result<ZoneChangesPage, CKError>)] {
        let answer = try await read("changes/zone") { writer in
            writer.member("zones", each: calls) { writer, call in
                writer.object { writer in
                    writer.member("zoneID", call.zone)
                    if let token = call.token { writer.member("syncToken", token.value) }
                    if let limit = call.limit { writer.member("resultsLimit", integer: Int64(limit)) }
                    writer.desiredKeys(call.desiredKeys)
                }
            }
        }
        let members = try members("zones", of: answer, count: calls.count, "zone for each one asked for")
        var results: [(zone: CKRecordZone.ID, page: Result<ZoneChangesPage, CKError>)] = []
        let mapping = mapping
        for (place, (call, json)) in zip(calls, members).enumerated() {
            if let error = mapping.item(json) {
                // Earlier zones filled the answer.
                if place > 0, error.code == .zoneBusy, error.retryAfterSeconds == 0 { continue }
                results.append((call.zone, .failure(error)))
                continue
            }
            let page = try page(json, of: call.zone)
            do throws(CKError) {
                let fetcher = AssetFetcher(service: self, desiredKeys: call.desiredKeys)
                results.append((call.zone, .success(try await fetcher.withFiles(page))))
            } catch {
                try checkCancellation()
                results.append((call.zone, .failure(error)))
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

    private func page(_ json: JSONValue, of zone: CKRecordZone.ID) throws(CKError) -> ZoneChangesPage {
        guard let token = json["syncToken"]?.string else { throw .unreadable("syncToken") }
        let (reader, mapping) = (RecordReader(zone: zone, scope: scope), mapping)
        let records = try members("records", of: json)
        var changes: [ZoneChange] = []
        changes.reserveCapacity(records.count)
        for record in records {
            let id = try reader.recordID(record)
            if record["deleted"] == .bool(true) {
                // The server does not keep the type of a deleted record.
                changes.append(.deleted(id, record["recordType"]?.string ?? ""))
            } else {
                changes.append(.changed(id, reader.result(record, mapping)))
            }
        }
        return ZoneChangesPage(
            changes: changes, token: CKServerChangeToken(token), hasMore: json["moreComing"] == .bool(true))
    }

    func databaseChanges(
        since token: CKServerChangeToken?, limit: Int?
    ) async throws(CKError) -> DatabaseChangesPage {
        let answer = try await read("changes/database") { writer in
            if let token { writer.member("syncToken", token.value) }
            if let limit { writer.member("resultsLimit", integer: Int64(limit)) }
        }
        guard let token = answer["syncToken"]?.string else { throw .unreadable("syncToken") }
        var zones: [(id: CKRecordZone.ID, isDeleted: Bool, life: Int64?)] = []
        for json in try members("zones", of: answer) {
            guard let id = json["zoneID"].flatMap(RecordReader.zoneID) else { throw .unreadable("zoneID") }
            let life: Int64? = if case .integer(let number) = json["incarnation"] { number } else { nil }
            zones.append((id, json["deleted"] == .bool(true), life))
        }
        return DatabaseChangesPage(
            zones: zones, token: CKServerChangeToken(token), hasMore: answer["moreComing"] == .bool(true))
    }
}
