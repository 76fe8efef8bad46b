import RecordModel

/// What became of one record that was asked for.
typealias RecordResult = (CKRecord.ID, Result<CKRecord, any Error>)

extension DatabaseService {
    /// Looks records up, a zone at a time.
    /// - Parameter deliver: gets the records of each request as soon as they are there.
    /// - Throws: where the whole call failed and nothing was delivered. Once something was, what is left gets the error
    ///   item by item.
    func fetch(
        _ ids: [CKRecord.ID], desiredKeys: [String]?, deliver: ([RecordResult]) async -> Void
    ) async throws(CKError) {
        var zones: [CKRecordZone.ID] = []
        var byZone: [CKRecordZone.ID: [CKRecord.ID]] = [:]
        var known: Set<CKRecord.ID> = []
        for id in ids where known.insert(id).inserted {
            if byZone[id.zoneID] == nil { zones.append(id.zoneID) }
            byZone[id.zoneID, default: []].append(id)
        }
        var hasDelivered = false
        var failure: CKError?
        for zone in zones {
            var rest = (byZone[zone] ?? [])[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(Self.pageMax))
                rest = rest.dropFirst(part.count)
                var results: [RecordResult]
                do throws(CKError) {
                    if let failure { throw failure }
                    results = try await lookup(part, in: zone, desiredKeys: desiredKeys)
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

    /// Looks up to 200 records of one zone up, in one request; in halves where they are too large for one answer.
    func lookup(
        _ ids: [CKRecord.ID], in zone: CKRecordZone.ID, desiredKeys: [String]?
    ) async throws(CKError) -> [RecordResult] {
        do throws(CKError) {
            return try await lookupAtOnce(ids, in: zone, desiredKeys: desiredKeys)
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
            writer.key("zoneID")
            writer.zoneID(of: zone)
            writer.desiredKeys(desiredKeys)
            writer.key("records")
            writer.array { writer in
                for id in ids { writer.object { $0.member("recordName", id.recordName) } }
            }
        }
        let members = try members("records", of: answer)
        guard members.count == ids.count else { throw .unreadable("record for each name") }
        let (reader, mapping) = (RecordReader(zone: zone), mapping)
        var results: [RecordResult] = []
        results.reserveCapacity(members.count)
        for (id, json) in zip(ids, members) {
            results.append((id, reader.result(json, mapping)))
        }
        return results
    }

    /// One record, or its error.
    func record(_ id: CKRecord.ID, desiredKeys: [String]? = nil) async throws(CKError) -> CKRecord {
        guard let result = try await lookup([id], in: id.zoneID, desiredKeys: desiredKeys).first else {
            throw .unreadable("record")
        }
        do {
            return try result.1.get()
        } catch {
            throw mapping.error(error)
        }
    }

    /// The record ID of the user who is signed in.
    func userRecordID() async throws(CKError) -> CKRecord.ID {
        let (session, _) = try account.session()
        do {
            return CKRecord.ID(recordName: try await session.userRecordName())
        } catch {
            throw mapping.error(error)
        }
    }
}
