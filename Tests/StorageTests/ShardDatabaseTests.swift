import Foundation
import GRDB
import Storage
import TestSupport
import Testing

@Suite("Shard databases")
final class ShardDatabaseTests {
    let folder: String
    var path: String { folder + "/0001.sqlite" }

    init() throws {
        folder = NSTemporaryDirectory() + "shard-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func open() throws -> ShardDatabase {
        try ShardDatabase.open(path: path) { try $0.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)") }
    }

    func insert(_ database: ShardDatabase, _ count: Int = 1) throws {
        try database.write { db in
            for _ in 0..<count { try db.execute(sql: "INSERT INTO t VALUES (NULL, randomblob(1000))") }
        }
    }

    func count(_ path: String) throws -> Int {
        try DatabaseQueue(path: path).read { (db: Database) throws in
            #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
            return try Int.fetchOne(db, sql: "SELECT count(*) FROM t") ?? -1
        }
    }

    @Test("tables are made once, with the settings that the design asks for")
    func opening() throws {
        let first = try open()
        try insert(first)
        try first.close()
        let second = try open()
        #expect(try second.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 1)
        try second.write { (db: Database) throws in
            #expect(try Int.fetchOne(db, sql: "PRAGMA synchronous") == 1)
            #expect(try Int.fetchOne(db, sql: "PRAGMA wal_autocheckpoint") == 0)
            #expect(try Int.fetchOne(db, sql: "PRAGMA page_size") == 4096)
            #expect(try Int.fetchOne(db, sql: "PRAGMA foreign_keys") == 0)
            #expect(try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal")
        }
    }

    @Test("a read that nobody wants any more ends within a statement, and its connection goes on")
    func unwantedReads() throws {
        let database = try open()
        try insert(database, 100)
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        for looksMax in [0, 1, 5] {
            var looks = 0
            #expect(throws: ShardDatabaseError.readEnded) {
                try database.read(
                    while: {
                        looks += 1
                        return looks <= looksMax
                    }
                ) { try Int.fetchOne($0, sql: endless) }
            }
            #expect(looks == looksMax + 1)
        }
        var looks = 0
        for _ in 0..<3 {
            #expect(try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 100)
            let count = try database.read(
                while: {
                    looks += 1
                    return true
                }
            ) { try Int.fetchOne($0, sql: "SELECT count(*) FROM t, t") }
            #expect(count == 10_000)
        }
        #expect(looks > 3)
        struct Stop: Error {}
        #expect(throws: Stop.self) { try database.read(while: { true }) { _ in throw Stop() } }
        try database.close()
    }

    @Test("a failed write leaves nothing, and a file of another format is refused")
    func failures() throws {
        struct Stop: Error {}
        let database = try open()
        #expect(throws: Stop.self) {
            try database.write { db in
                try db.execute(sql: "INSERT INTO t VALUES (1, NULL)")
                throw Stop()
            }
        }
        #expect(try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 0)
        try database.write { try $0.execute(sql: "UPDATE meta SET value = '9' WHERE key = 'format'") }
        try database.close()
        #expect(throws: ShardDatabaseError.unknownFormat("9")) { try self.open() }
    }

    @Test("a checkpoint empties the WAL, and a reader's snapshot holds it back")
    func checkpoint() throws {
        let database = try open()
        #expect(try database.checkpoint())
        #expect(database.walBytes == 0)
        try insert(database, 100)
        #expect(database.walBytes > 100_000)
        try database.read { (db: Database) throws in
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM t")
            try insert(database, 10)
            #expect(try !database.checkpoint())
            #expect(throws: ShardDatabaseError.heldByReaders) { try database.copy(to: self.folder + "/held") }
            // The writer goes on meanwhile.
            try insert(database, 1)
        }
        #expect(try database.checkpoint())
        #expect(database.walBytes == 0)
        try insert(database, 1)
        #expect(database.walBytes > 0 && database.walBytes < 100_000)
        #expect(try database.truncateWAL())
        #expect(try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int == 0)
    }

    @Test("after a checkpoint the file alone holds what was committed before it")
    func durability() throws {
        let database = try open()
        try insert(database, 50)
        #expect(try database.checkpoint())
        try insert(database, 5)
        try FileManager.default.copyItem(atPath: path, toPath: folder + "/alone.sqlite")
        #expect(try count(folder + "/alone.sqlite") == 50)
    }

    @Test("copies made during writes are consistent")
    func copies() async throws {
        let database = try open()
        try insert(database, 500)
        let writer = Task.detached {
            for _ in 0..<200 {
                try database.write { db in
                    // Two rows a transaction: a torn copy would show an odd number.
                    try db.execute(sql: "INSERT INTO t VALUES (NULL, randomblob(3000)), (NULL, randomblob(10))")
                }
            }
        }
        var counts: [Int] = []
        for number in 0..<5 {
            try database.copy(to: folder + "/copy\(number)")
            counts.append(try count(folder + "/copy\(number)"))
        }
        try await writer.value
        #expect(counts.allSatisfy { $0 >= 500 && $0.isMultiple(of: 2) })
        #expect(counts == counts.sorted())
        #expect(throws: ShardDatabaseError.self) { try database.copy(to: self.folder + "/copy0") }
    }

    func readTwice(_ database: ShardDatabase) throws {
        try database.read { (db: Database) throws in
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 2)
            try insert(database, 1)
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 2)
        }
    }

    @Test("reads see a snapshot")
    func snapshots() throws {
        let database = try open()
        try insert(database, 2)
        #expect(try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 2)
        try readTwice(database)
        #expect(try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 3)
    }

    @Test("a copy leaves the locks by which other processes know that the database is in use")
    func locks() throws {
        let database = try open()
        try insert(database, 20)
        let number = try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
        // One line a lock: its number, POSIX or FLOCK, ADVISORY, READ or WRITE, the process, device and inode, the
        // range. `String(contentsOfFile:)` reads the first page alone of a file that has no size.
        func locks() throws -> [Substring] {
            let file = try #require(FileHandle(forReadingAtPath: "/proc/locks"))
            let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
            return text.split(separator: "\n").filter { line in
                line.contains(" POSIX ") && line.contains(":\(number) ")
                    && line.contains(" \(ProcessInfo.processInfo.processIdentifier) ")
            }
        }
        let before = try locks().count
        #expect(before > 0)
        try database.copy(to: folder + "/copy")
        #expect(try locks().count == before)
        #expect(try count(folder + "/copy") == 20)
        try database.close()
    }

    @Test("a part of the file that cannot be copied is told as what it is")
    func unreadableCopy() throws {
        try FaultyFiles.prepare()
        let database = try open()
        try insert(database, 20)
        #expect(try database.checkpoint())
        FaultyFiles.set(.read, isFailing: true, under: path)
        let error = #expect(throws: DatabaseError.self) { try database.copy(to: folder + "/copy") }
        #expect(error?.extendedResultCode == .SQLITE_IOERR_READ)
        FaultyFiles.set(.read, isFailing: false, under: path)
        #expect(!FileManager.default.fileExists(atPath: folder + "/copy"))
        try database.copy(to: folder + "/copy")
        #expect(try count(folder + "/copy") == 20)
        try database.close()
    }

    @Test("a copy that is not wanted any more is given up between two pieces, and leaves no file")
    func abandonedCopy() throws {
        let database = try open()
        try database.write { try $0.execute(sql: "INSERT INTO t VALUES (NULL, zeroblob(3000000))") }
        var pieces = 0
        #expect(throws: CancellationError.self) {
            try database.copy(to: self.folder + "/copy") {
                pieces += 1
                return pieces < 3
            }
        }
        #expect(pieces == 3)
        #expect(!FileManager.default.fileExists(atPath: folder + "/copy"))
        try database.copy(to: folder + "/copy")
        #expect(try count(folder + "/copy") == 1)
        try database.close()
    }

    @Test("after a sync that failed no checkpoint is believed, and nothing is lost by it")
    func failedSync() throws {
        try FaultyFiles.prepare()
        let database = try open()
        try insert(database)
        #expect(try database.checkpoint())
        try insert(database, 20)
        FaultyFiles.set(.sync, isFailing: true, under: folder)
        #expect(throws: ShardDatabaseError.failedSync(path: path)) { try database.checkpoint() }
        FaultyFiles.set(.sync, isFailing: false, under: folder)
        // SQLite itself would now say that all is well.
        #expect(throws: ShardDatabaseError.failedSync(path: path)) { try database.checkpoint() }
        #expect(throws: ShardDatabaseError.failedSync(path: path)) { try database.truncateWAL() }
        #expect(throws: ShardDatabaseError.failedSync(path: path)) { try database.copy(to: folder + "/copy") }
        #expect(throws: ShardDatabaseError.failedSync(path: path)) { try database.close() }
        #expect(try count(path) == 21, "the WAL is still there for the next process")

        let wal = path + "-wal"
        let before = Date(timeIntervalSince1970: 1_000_000)
        try FileManager.default.setAttributes([.modificationDate: before], ofItemAtPath: wal)
        let content = try Data(contentsOf: URL(filePath: wal))
        let again = try open()
        let written = try FileManager.default.attributesOfItem(atPath: wal)[.modificationDate] as? Date
        #expect(written != before, "what the system calls written is written again")
        #expect(try Data(contentsOf: URL(filePath: wal)) == content)
        #expect(try again.checkpoint())
        #expect(try again.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") } == 21)
        try again.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix("-unsynced") } == [])
    }

    @Test("what comes while the connections are closed fails, and has no connection taken away")
    func usedWhileClosed() throws {
        for round in 0..<50 {
            let path = folder + "/closed-\(round).sqlite"
            let database = try ShardDatabase.open(path: path) { try $0.execute(sql: "CREATE TABLE t (a INTEGER)") }
            let (begun, ended) = (DispatchSemaphore(value: 0), DispatchGroup())
            for number in 0..<4 {
                ended.enter()
                Thread {
                    var count = 0
                    do {
                        while true {
                            if number == 0 { _ = try database.checkpoint() }
                            _ = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
                            count += 1
                            if count == 1 { begun.signal() }
                        }
                    } catch {
                        #expect(error as? ShardDatabaseError == .closed(path: path), "\(error)")
                    }
                    ended.leave()
                }.start()
            }
            for _ in 0..<4 { begun.wait() }
            try database.close()
            ended.wait()
        }
    }
}
