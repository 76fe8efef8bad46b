import Foundation
import RecordModel
import ServiceClient

/// A query on its way through its pages: what a cursor holds.
struct QueryCall: Sendable, Hashable {
    /// `{recordType, filterBy, sortBy}` as the server takes it.
    var query: JSONValue
    /// Nil is every zone of the database.
    var zone: CKRecordZone.ID?
    /// Where the page before ended; nil for the first one.
    var marker: String?
}

extension DatabaseService {
    /// The first page's call of a query; nil where no record can match.
    func call(_ query: CKQuery, in zone: CKRecordZone.ID?) throws(CKError) -> QueryCall? {
        let unit: UnitLength = try account.configuration().distanceUnit == .metres ? .meters : .kilometers
        guard let form = try query.webForm(zone: zone, distanceUnit: unit) else { return nil }
        return QueryCall(query: form, zone: zone, marker: nil)
    }

    /// Runs a query until there are as many records as wanted, or no more.
    /// - Parameters:
    ///   - limit: `CKQueryOperation.maximumResults` for as many as the server gives at once.
    ///   - deliver: gets each page's records as soon as they are there.
    /// - Returns: where to go on; nil at the end.
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
            if !page.results.isEmpty { await deliver(page.results) }
            guard let marker = page.marker else { return nil }
            if page.results.isEmpty, marker == call.marker {
                throw .unreadable("new continuationMarker, though it says that more is coming,")
            }
            call.marker = marker
            // A page may be empty and go on nevertheless.
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
                writer.key("zoneID")
                writer.zoneID(of: zone)
            } else if scope == .private {
                writer.member("zoneWide", true)
            }
            writer.member("resultsLimit", integer: Int64(limit))
            if let marker = call.marker { writer.member("continuationMarker", marker) }
            writer.desiredKeys(desiredKeys)
        }
        let (reader, mapping) = (RecordReader(zone: call.zone ?? .default), mapping)
        var results: [RecordResult] = []
        for json in try members("records", of: answer) {
            results.append((try reader.recordID(json), reader.result(json, mapping)))
        }
        return (results, answer["continuationMarker"]?.string)
    }
}
