import GRDB
import RaftCore
import Testing

@testable import Cluster

@Suite("Comparing the copies of a group's data")
struct ScrubTests {
    private static func database(rows: Int, of bytes: Int = 10, changed: Int? = nil) throws -> DatabaseQueue {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE applied (id INTEGER PRIMARY KEY, log_index INTEGER);
                    CREATE TABLE plain (id INTEGER PRIMARY KEY, body BLOB);
                    CREATE TABLE keyed (a INTEGER, b TEXT, c BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID;
                    CREATE TABLE loose (value);
                    """)
            try db.execute(sql: "INSERT INTO applied VALUES (1, ?)", arguments: [Int.random(in: 0...1_000_000)])
            for row in 0..<rows {
                let text = String(repeating: "x", count: bytes) + (row == changed ? "!" : "")
                try db.execute(sql: "INSERT INTO plain VALUES (?, ?)", arguments: [row, text])
                try db.execute(sql: "INSERT INTO keyed VALUES (?, ?, NULL)", arguments: [row % 7, "\(row)"])
                try db.execute(sql: "INSERT INTO loose VALUES (?)", arguments: [Double(row) / 3])
            }
        }
        return queue
    }

    /// The parts of a whole walk.
    private static func walk(_ queue: DatabaseQueue) throws -> [[UInt8]] {
        try queue.read { db in
            var parts: [[UInt8]] = []
            var cursor: [UInt8] = []
            repeat {
                var part: [UInt8] = []
                cursor = try TableWalk.fold(after: cursor, in: db) { part += Array($0) }
                parts.append(part)
            } while !cursor.isEmpty && parts.count < 1_000
            return parts
        }
    }

    @Test("a walk in parts sees every row of every table once, and not what belongs to the replica")
    func wholeWalk() throws {
        let parts = try Self.walk(Self.database(rows: 3_000))
        #expect(parts.count == 5)
        #expect(parts == (try Self.walk(Self.database(rows: 3_000))), "equal states have equal hashes")
        #expect(try Self.walk(Self.database(rows: 0)) == [[]])
    }

    @Test("one changed value changes one part", arguments: [0, 1, 1_999, 2_000, 2_999])
    func changedValue(row: Int) throws {
        let right = try Self.walk(Self.database(rows: 3_000))
        let wrong = try Self.walk(Self.database(rows: 3_000, changed: row))
        #expect(zip(right, wrong).count { $0 != $1 } == 1)
    }

    @Test("large rows end a part early")
    func largeRows() throws {
        let parts = try Self.walk(Self.database(rows: 12, of: 1 << 20))
        #expect(parts.count >= 3)
        #expect(parts.allSatisfy { $0.count < 6 << 20 })
    }

    @Test("a cursor of a table that is gone goes on with the next one")
    func goneTable() throws {
        let queue = try Self.database(rows: 3_000)
        let cursor = try queue.read { try TableWalk.fold(after: [], in: $0) { _ in } }
        try queue.write { try $0.execute(sql: "DROP TABLE keyed") }
        let rest = try queue.read { db in
            var bytes = 0
            _ = try TableWalk.fold(after: cursor, in: db) { bytes += $0.count }
            return bytes
        }
        #expect(rest > 0)
    }

    @Test("who differs from a majority of the voters is damaged; without a majority nobody is")
    func verdicts() {
        let (a, b, c, d) = (ReplicaID(1), ReplicaID(2), ReplicaID(3), ReplicaID(4))
        func verdict(_ hashes: [ReplicaID: [UInt8]]) -> ScrubVerdict { ScrubVerdict(hashes, voters: [a, b, c]) }
        #expect(verdict([a: [1], b: [1], c: [1]]) == .equal)
        #expect(verdict([a: [1]]) == .equal)
        #expect(verdict([a: [1], b: [2], c: [1]]) == .damaged([b]))
        #expect(verdict([a: [2], b: [1], c: [1]]) == .damaged([a]))
        #expect(verdict([a: [1], b: [2]]) == .undecided)
        #expect(verdict([a: [1], b: [2], c: [3]]) == .undecided)
        #expect(verdict([a: [1], b: [1], c: [1], d: [2]]) == .damaged([d]), "learners are judged, too")
        #expect(verdict([a: [1], d: [2]]) == .undecided, "and do not judge")
    }
}
