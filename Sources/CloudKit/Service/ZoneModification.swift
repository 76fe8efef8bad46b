import RecordModel

/// One call that creates and deletes zones.
struct ZoneModification {
    let service: DatabaseService

    /// - Parameter operations: of each zone, whether it is to be there.
    func run(_ operations: [(CKRecordZone.ID, Bool)]) async throws(CKError) -> [ModifyZoneResult] {
        guard Set(operations.map(\.0)).count == operations.count else {
            throw CKError(.invalidArguments, reason: "a zone is to be saved or deleted twice in one call")
        }
        return try await service.inRequests(operations, modify, failed: Self.failed)
    }

    private static func failed(_ operation: (CKRecordZone.ID, Bool), _ error: CKError) -> ModifyZoneResult {
        let (id, isSave) = operation
        return isSave ? .saved(id, .failure(error)) : .deleted(id, .failure(error))
    }

    /// Changes zones by one request, or by several where one of them may be what all were refused for.
    private func modify(_ operations: [(CKRecordZone.ID, Bool)]) async throws(CKError) -> [ModifyZoneResult] {
        do throws(CKError) {
            return try await modifyTogether(operations)
        } catch {
            guard error.code == .invalidArguments else { throw error }
            if operations.count == 1 { return [Self.failed(operations[0], error)] }
            let second = Array(operations[(operations.count / 2)...])
            let results = try await modify(Array(operations[..<(operations.count / 2)]))
            do throws(CKError) {
                return results + (try await modify(second))
            } catch {
                return results + second.map { Self.failed($0, error) }
            }
        }
    }

    private func modifyTogether(_ operations: [(CKRecordZone.ID, Bool)]) async throws(CKError) -> [ModifyZoneResult] {
        try checkCancellation()
        let answer = try await service.write("zones/modify", Self.body(operations))
        let members = try service.members("zones", of: answer)
        guard members.count == operations.count else { throw .unreadable("zone for each operation") }
        let mapping = service.mapping
        return zip(operations, members).map { operation, json in
            let (id, isSave) = operation
            let error = mapping.item(json)
            if !isSave, error == nil || error?.code == .zoneNotFound { return .deleted(id, .success(())) }
            if let error { return Self.failed(operation, error) }
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
