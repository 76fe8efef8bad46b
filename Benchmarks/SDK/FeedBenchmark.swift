import ArgumentParser
import CloudKit
import Synchronization

/// `sdk-benchmarks feed`: a zone's changes from the beginning, page by page.
struct FeedBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Memory and CPU of a fetch of a whole zone by its change feed.")

    @Option(help: "Records in the zone; those that are missing are made first.") var records = 100_000

    func run() async throws {
        let database = CKContainer.default().privateCloudDatabase
        let zone = CKRecordZone(zoneName: "Feed")
        try await database.save(zone)
        let present = try await fetch(zone.zoneID, from: database).count
        if present < records { try await make(present..<records, in: zone.zoneID, database) }
        let before = ProcessUsage.cpuMicroseconds
        let resident = ProcessUsage.residentBytes
        let seen = try await fetch(zone.zoneID, from: database)
        let cpu = (ProcessUsage.cpuMicroseconds - before) / Double(max(seen.count, 1))
        print(
            """
            \(seen.count) records by CKFetchRecordZoneChangesOperation
            memory before        \(resident >> 10) KiB
            most memory meanwhile \(seen.residentBytesMax >> 10) KiB
            CPU a record         \(Int(cpu.rounded())) microseconds
            """)
    }

    private struct Seen: Sendable {
        var count = 0
        var residentBytesMax = 0
    }

    private func fetch(_ zoneID: CKRecordZone.ID, from database: CKDatabase) async throws -> Seen {
        let operation = CKFetchRecordZoneChangesOperation(recordZoneIDs: [zoneID])
        let seen = Mutex(Seen())
        operation.recordWasChangedBlock = { _, _ in
            seen.withLock { seen in
                seen.count += 1
                if seen.count.isMultiple(of: 1_000) {
                    seen.residentBytesMax = max(seen.residentBytesMax, ProcessUsage.residentBytes)
                }
            }
        }
        try await withCheckedThrowingContinuation { (waiting: CheckedContinuation<Void, any Error>) in
            operation.fetchRecordZoneChangesResultBlock = { waiting.resume(with: $0) }
            database.add(operation)
        }
        return seen.withLock { $0 }
    }

    private func make(_ numbers: Range<Int>, in zoneID: CKRecordZone.ID, _ database: CKDatabase) async throws {
        for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 200) {
            let batch = (first..<min(first + 200, numbers.upperBound)).map { number in
                let record = CKRecord(
                    recordType: "Benchmark", recordID: CKRecord.ID(recordName: "feed-\(number)", zoneID: zoneID))
                record["title"] = "Record \(number)"
                record["checked"] = number % 2
                return record
            }
            _ = try await database.modifyRecords(saving: batch, deleting: [], savePolicy: .allKeys)
        }
    }
}
