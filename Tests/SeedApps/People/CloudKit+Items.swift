import CloudKit

extension CloudKit {
    func create<T: CloudKitable>(item: T) async throws {
        try await database.save(item.record)
    }

    func createZone() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
            database.save(Self.zone) { _, error in
                if let error = error {
                    continuation.resume(throwing: error)
                } else {
                    continuation.resume()
                }
            }
        }
    }

    func delete<T: CloudKitable>(item: T) async throws {
        try await database.deleteRecord(withID: item.record.recordID)
    }

    /// Every record of every type: they go with the zone.
    func deleteAll() async throws {
        try await recreateZone()
    }

    func deleteZone() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
            database.delete(withRecordZoneID: Self.zone.zoneID) { _, error in
                if let error = error {
                    continuation.resume(throwing: error)
                } else {
                    continuation.resume()
                }
            }
        }
    }

    func recreateZone() async throws {
        try await deleteZone()
        try await createZone()
    }

    func retrieve<T: CloudKitable>(
        recordType: CKRecord.RecordType,
        predicate: NSPredicate = NSPredicate(value: true),
        sortDescriptors: [NSSortDescriptor]? = nil,
        resultsLimit: Int = CKQueryOperation.maximumResults
    ) async throws -> [T] {
        let query = CKQuery(recordType: recordType, predicate: predicate)
        query.sortDescriptors = sortDescriptors
        let (results, cursor) = try await database.records(
            matching: query, inZoneWith: Self.zone.zoneID, resultsLimit: resultsLimit)
        let first: [T] = try results.map { T(record: try $0.1.get()) }
        return first + (try await retrieveMore(cursor, resultsLimit: resultsLimit))
    }

    private func retrieveMore<T: CloudKitable>(_ cursor: Cursor?, resultsLimit: Int) async throws -> [T] {
        guard let cursor = cursor else { return [] }
        let (results, nextCursor) = try await database.records(
            continuingMatchFrom: cursor, resultsLimit: resultsLimit)
        let some: [T] = try results.map { T(record: try $0.1.get()) }
        return some + (try await retrieveMore(nextCursor, resultsLimit: resultsLimit))
    }

    func update<T: CloudKitable>(item: T) async throws {
        try await database.save(item.record)
    }
}
