import RecordModel

/// What became of one zone of a call that saves and deletes.
enum ModifyZoneResult: Sendable {
    case saved(CKRecordZone.ID, Result<CKRecordZone, any Error>)
    case deleted(CKRecordZone.ID, Result<Void, any Error>)
}

extension DatabaseService {
    /// All zones of the database.
    func allZones() async throws(CKError) -> [CKRecordZone] {
        var zones: [CKRecordZone] = []
        for json in try members("zones", of: await read("zones/list") { _ in }) {
            zones.append(try RecordReader.zone(json))
        }
        return zones
    }

    /// Zones by their names, in the order asked for, as many in a request as it takes.
    /// - Throws: where the first request failed. Later the zones that are left get its error one by one.
    func zones(
        _ ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] {
        var results: [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] = []
        for first in stride(from: 0, to: ids.count, by: Limits.operationsMax) {
            let part = Array(ids[first..<min(first + Limits.operationsMax, ids.count)])
            do throws(CKError) {
                results += try await lookup(part)
            } catch {
                if first == 0 { throw error }
                return results + ids[first...].map { ($0, .failure(error)) }
            }
        }
        return results
    }

    private func lookup(
        _ ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] {
        try checkCancellation()
        let answer = try await read("zones/lookup") { writer in
            writer.key("zones")
            writer.array { writer in for id in ids { writer.zoneID(of: id) } }
        }
        let members = try members("zones", of: answer)
        guard members.count == ids.count else { throw .unreadable("zone for each name") }
        let mapping = mapping
        return zip(ids, members).map { id, json in
            if let error = mapping.item(json) { return (id, .failure(error)) }
            return (id, Result { try RecordReader.zone(json) })
        }
    }

    /// Makes zones that are not there, and deletes zones with all that is in them, as many in a request as it takes.
    /// - Throws: where the first request failed. Later the zones that are left get its error one by one: what was done
    ///   before is told.
    func modifyZones(
        saving zones: [CKRecordZone], deleting ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [ModifyZoneResult] {
        let operations = zones.map { ($0.zoneID, true) } + ids.map { ($0, false) }
        guard Set(operations.map(\.0)).count == operations.count else {
            throw CKError(.invalidArguments, reason: "a zone is to be saved or deleted twice in one call")
        }
        var results: [ModifyZoneResult] = []
        for first in stride(from: 0, to: operations.count, by: Limits.operationsMax) {
            let part = Array(operations[first..<min(first + Limits.operationsMax, operations.count)])
            do throws(CKError) {
                results += try await modify(part)
            } catch {
                if first == 0 { throw error }
                return results
                    + operations[first...].map { id, isSave in
                        isSave ? .saved(id, .failure(error)) : .deleted(id, .failure(error))
                    }
            }
        }
        return results
    }

    private func modify(_ operations: [(CKRecordZone.ID, Bool)]) async throws(CKError) -> [ModifyZoneResult] {
        try checkCancellation()
        let answer = try await write("zones/modify", Self.body(operations))
        let members = try members("zones", of: answer)
        guard members.count == operations.count else { throw .unreadable("zone for each operation") }
        let mapping = mapping
        return zip(operations, members).map { operation, json in
            let (id, isSave) = operation
            let error = mapping.item(json)
            guard isSave else { return .deleted(id, error.map { .failure($0) } ?? .success(())) }
            if let error { return .saved(id, .failure(error)) }
            return .saved(id, Result { try RecordReader.zone(json) })
        }
    }

    private static func body(_ operations: [(CKRecordZone.ID, Bool)]) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("operations")
            writer.array { writer in
                for (id, isSave) in operations {
                    writer.beginObject()
                    writer.member("operationType", isSave ? "create" : "delete")
                    writer.key("zone")
                    writer.object { writer in
                        writer.key("zoneID")
                        writer.zoneID(of: id)
                    }
                    writer.endObject()
                }
            }
        }
        return writer.bytes
    }
}
