import CloudKit
import os

/// The fastings of the user, in the private database.
final class CloudKitService {
    private static let logger = Logger(
        subsystem: "com.example.seeds",
        category: String(describing: CloudKitService.self)
    )

    func checkAccountStatus() async throws -> CKAccountStatus {
        try await CKContainer.default().accountStatus()
    }

    /// The status as the history's screen asks for it: what went wrong is logged.
    func accountStatus() async -> CKAccountStatus {
        do {
            return try await checkAccountStatus()
        } catch {
            Self.logger.error("\(error.localizedDescription, privacy: .public)")
            return .couldNotDetermine
        }
    }
}

extension CloudKitService {
    func save(_ record: CKRecord) async throws {
        try await CKContainer.default().privateCloudDatabase.save(record)
    }

    func fetchFastingRecords(in interval: DateInterval) async throws -> [Fasting] {
        let predicate = NSPredicate(
            format: "\(FastingRecordKeys.start.rawValue) >= %@ AND \(FastingRecordKeys.end.rawValue) <= %@",
            interval.start as NSDate,
            interval.end as NSDate
        )

        let query = CKQuery(
            recordType: FastingRecordKeys.type.rawValue,
            predicate: predicate
        )

        query.sortDescriptors = [.init(key: FastingRecordKeys.end.rawValue, ascending: true)]

        let result = try await CKContainer.default().privateCloudDatabase.records(matching: query)
        let records = result.matchResults.compactMap { try? $0.1.get() }
        return records.compactMap(Fasting.init)
    }
}
