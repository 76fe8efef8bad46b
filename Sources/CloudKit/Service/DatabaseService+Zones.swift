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

    /// Zones by their names, in the order asked for.
    func zones(
        _ ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] {
        var results: [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] = []
        var rest = ids[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Limits.operationsMax))
            rest = rest.dropFirst(part.count)
            let answer = try await read("zones/lookup") { writer in
                writer.key("zones")
                writer.array { writer in for id in part { writer.zoneID(of: id) } }
            }
            let members = try members("zones", of: answer)
            guard members.count == part.count else { throw .unreadable("zone for each name") }
            for (id, json) in zip(part, members) {
                if let error = mapping.item(json) {
                    results.append((id, .failure(error)))
                } else {
                    results.append((id, .success(try RecordReader.zone(json))))
                }
            }
        }
        return results
    }

    /// Makes zones that are not there, and deletes zones with all that is in them.
    func modifyZones(
        saving zones: [CKRecordZone], deleting ids: [CKRecordZone.ID]
    ) async throws(CKError) -> [ModifyZoneResult] {
        let operations = zones.map { ($0.zoneID, true) } + ids.map { ($0, false) }
        guard Set(operations.map(\.0)).count == operations.count else {
            throw CKError(.invalidArguments, reason: "a zone is to be saved or deleted twice in one call")
        }
        var results: [ModifyZoneResult] = []
        var rest = operations[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(Limits.operationsMax))
            rest = rest.dropFirst(part.count)
            let answer = try await write("zones/modify", Self.body(part))
            let members = try members("zones", of: answer)
            guard members.count == part.count else { throw .unreadable("zone for each operation") }
            for ((id, isSave), json) in zip(part, members) {
                let error = mapping.item(json)
                if !isSave {
                    results.append(.deleted(id, error.map { .failure($0) } ?? .success(())))
                } else if let error {
                    results.append(.saved(id, .failure(error)))
                } else {
                    results.append(.saved(id, .success(try RecordReader.zone(json))))
                }
            }
        }
        return results
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
