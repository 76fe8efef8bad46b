import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore

/// Fills a zone with plain records and reads its change feed in full, page by page, inside the store.
struct FeedBenchmark {
    /// 300-byte records with eight index rows each.
    var records = 100_000
    /// Records in a page.
    var pageSize = 200
    /// Commands in a write transaction.
    var batch = 500

    private static let zone = ZoneKey(
        database: DatabaseKey(container: "bench", environment: .production, scope: .private, owner: "_ann"),
        name: "work")
    private static let caller = Caller(user: "_ann")

    private static func indexed(_ name: String, _ type: FieldType) -> FieldDefinition {
        FieldDefinition(name: name, type: type, indexes: [.queryable, .sortable])
    }

    private static let type = RecordType(
        name: "Note",
        fields: [
            indexed("title", FieldType(.string)), indexed("rank", FieldType(.int64)),
            indexed("score", FieldType(.double)), indexed("due", FieldType(.timestamp)),
            indexed("list", FieldType(.reference)), FieldDefinition(name: "text", type: FieldType(.string)),
            indexed("___recordID", FieldType(.reference)), indexed("___createTime", FieldType(.timestamp)),
            indexed("___modTime", FieldType(.timestamp)),
        ])

    /// Prints what filling and reading took, in CPU time of this thread.
    func run() throws {
        let path = NSTemporaryDirectory() + "store-benchmarks-\(ProcessInfo.processInfo.processIdentifier).sqlite"
        defer { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
        var configuration = Configuration()
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let tables = RecordTables()
        try queue.write { db in
            try RecordTables.create(in: db)
            let zone = Self.zone.database
            _ = try tables.apply(
                .installSchema(
                    InstallSchema(
                        container: zone.container, environment: zone.environment, version: 1,
                        schema: Schema(types: [Self.type]))), in: db)
            _ = try tables.apply(
                .modifyZone(ModifyZone(.create, zone: Self.zone, caller: Self.caller, time: 1)), in: db)
        }
        for (name, first) in [("create", 0), ("update", 0)] {
            let fill = try timed {
                var position = first
                while position < records {
                    let end = min(position + batch, records)
                    try queue.write { try Self.save(position..<end, tables: tables, in: $0) }
                    position = end
                }
            }
            report(name, records, fill)
        }
        for isReverse in [false, true] {
            var read = 0
            let seconds = try timed {
                try queue.read { read = try Self.follow(tables, isReverse: isReverse, pageSize: pageSize, in: $0) }
            }
            precondition(read == records, "read \(read) of \(records)")
            report(isReverse ? "feed, newest first" : "feed", records, seconds)
        }
    }

    private func timed(_ body: () throws -> Void) rethrows -> Double {
        let start = Self.cpuSeconds()
        try body()
        return Self.cpuSeconds() - start
    }

    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private func report(_ name: String, _ count: Int, _ seconds: Double) {
        let each = String(format: "%.2f", seconds / Double(count) * 1e6)
        print("\(name): \(count) records, \(each) us of CPU each, \(Int(Double(count) / seconds)) records/s and core")
    }

    private static func save(_ numbers: Range<Int>, tables: RecordTables, in db: Database) throws {
        let transaction = try tables.begin(in: db)
        for number in numbers {
            let fields: [RecordChange.FieldChange] = [
                .init(name: "title", value: .string("title \(number % 1000)")),
                .init(name: "rank", value: .int64(Int64(number % 100))),
                .init(name: "score", value: .double(Double(number) / 7)),
                .init(name: "due", value: .timestamp(Int64(number) * 1000)),
                .init(name: "list", value: .reference(Reference(recordName: "list-\(number % 50)"))),
                .init(name: "text", value: .string(String(repeating: "x", count: 180))),
            ]
            let command = ModifyRecords(
                zone: zone, schemaVersion: 1, caller: caller, time: Int64(number), isAtomic: true,
                operations: [RecordChange(.forceUpdate, "record-\(number)", type: "Note", fields: fields)])
            _ = try transaction.apply(.modifyRecords(command))
        }
        try transaction.finish()
    }

    private static func follow(
        _ tables: RecordTables, isReverse: Bool, pageSize: Int, in db: Database
    ) throws -> Int {
        var token: [UInt8]?
        var count = 0
        while true {
            let request = ZoneChangesRequest(
                zone: zone, schemaVersion: 1, caller: caller, token: token, limit: pageSize, isReverse: isReverse)
            guard case .found(let page) = try ChangeReads(tables, in: db).zoneChanges(request) else { return count }
            count += page.records.count
            token = page.token
            if !page.moreComing { return count }
        }
    }
}
