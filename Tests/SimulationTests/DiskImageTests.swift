import Foundation
import GRDB
import RaftCore
import Storage
import Testing

@testable import Simulation

@Suite("A simulated crash leaves what a real one might")
struct DiskImageTests {
    @Test(
        "A database comes back as of a commit that is not older than its last checkpoint",
        arguments: 1...40 as ClosedRange<UInt64>)
    func databaseComesBack(_ seed: UInt64) throws {
        let folder = try Folder()
        let path = folder.path + "/live.sqlite"
        let database = try ShardDatabase.open(path: path) { try $0.execute(sql: "CREATE TABLE item (n INTEGER)") }
        // Before its first checkpoint even the tables may be lost.
        #expect(try database.checkpoint())
        var generator = SplitMix64(seed: seed)
        var (written, durable) = (0, 0)
        for _ in 0..<Int.random(in: 1...12, using: &generator) {
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                written += 1
                let number = written
                try database.write { try $0.execute(sql: "INSERT INTO item VALUES (?)", arguments: [number]) }
            }
            if Int.random(in: 0..<3, using: &generator) == 0, try database.checkpoint() { durable = written }
        }
        let image = folder.path + "/image.sqlite"
        let crash: SimulatedDisk.Crash = seed % 4 == 0 ? .process : .power
        try DatabaseImage.write(of: path, to: image, after: crash, using: &generator)
        let after = try ShardDatabase.open(path: image) { _ in Issue.record("the image holds no tables") }
        let found = try after.read { try Int.fetchAll($0, sql: "SELECT n FROM item ORDER BY n") }
        #expect(found == Array(1...max(1, found.count)).prefix(found.count).map(\.self))
        #expect((durable...written).contains(found.count))
        if crash == .process { #expect(found.count == written) }
        let check = try after.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") }
        #expect(check == "ok")
        try after.close()
        try database.close()
    }

    @Test("A second crash takes nothing back that was there after the first", arguments: 1...20 as ClosedRange<UInt64>)
    func secondCrash(_ seed: UInt64) throws {
        let folder = try Folder()
        var generator = SplitMix64(seed: seed)
        var path = folder.path + "/0.sqlite"
        var database = try ShardDatabase.open(path: path) { try $0.execute(sql: "CREATE TABLE item (n INTEGER)") }
        #expect(try database.checkpoint())
        var count = 0
        for crash in 1...6 {
            for _ in 0..<5 {
                count += 1
                let number = count
                // Pages of their own, so that a mixture of old and new ones shows.
                try database.write {
                    try $0.execute(sql: "INSERT INTO item VALUES (?)", arguments: [number])
                    try $0.execute(sql: "CREATE TABLE t\(crash)_\(number) (n)")
                }
                if Int.random(in: 0..<3, using: &generator) == 0 { _ = try database.checkpoint() }
            }
            let image = folder.path + "/\(crash).sqlite"
            let kind = Bool.random(using: &generator) ? SimulatedDisk.Crash.power : .process
            try DatabaseImage.write(of: path, to: image, after: kind, using: &generator)
            try database.close()
            database = try ShardDatabase.open(path: image) { _ in Issue.record("the image holds no tables") }
            let found = try database.read { try Int.fetchAll($0, sql: "SELECT n FROM item ORDER BY n") }
            #expect(found == Array(1...found.count) && (kind == .power || found.count == count))
            #expect(try database.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
            // Crashes again before anything was written.
            let again = folder.path + "/\(crash)-again.sqlite"
            try DatabaseImage.write(of: image, to: again, after: .power, using: &generator)
            let second = try ShardDatabase.open(path: again) { _ in Issue.record("the image holds no tables") }
            let left = try second.read { try Int.fetchAll($0, sql: "SELECT n FROM item ORDER BY n") }
            // What the end of a process left need not be synced: a later power failure may take back the last commits.
            #expect(kind == .power ? left == found : found.starts(with: left))
            try second.close()
            (path, count) = (image, found.count)
            let stale = try database.read { db in
                try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE name LIKE 't%'").count
            }
            #expect(stale == count)
        }
        try database.close()
    }

    @Test("Every commit since the last checkpoint may be the last one")
    func everyCommitMayBeLast() throws {
        let folder = try Folder()
        let path = folder.path + "/live.sqlite"
        let database = try ShardDatabase.open(path: path) { try $0.execute(sql: "CREATE TABLE item (n INTEGER)") }
        #expect(try database.checkpoint())
        for number in 1...4 {
            try database.write { try $0.execute(sql: "INSERT INTO item VALUES (?)", arguments: [number]) }
        }
        var generator = SplitMix64(seed: 1)
        var counts: Set<Int> = []
        for attempt in 0..<60 {
            let image = folder.path + "/image-\(attempt).sqlite"
            try DatabaseImage.write(of: path, to: image, after: .power, using: &generator)
            let after = try ShardDatabase.open(path: image) { _ in }
            counts.insert(try after.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM item") } ?? -1)
            try after.close()
        }
        #expect(counts == [0, 1, 2, 3, 4])
        try database.close()
    }

    @Test(
        "What was synced is there after the power failed, what was not may be there in part, and names go with their folder"
    )
    func filesComeBack() throws {
        var outcomes: Set<String> = []
        for seed in 1...80 as ClosedRange<UInt64> {
            let folder = try Folder()
            let disk = SimulatedDisk(world: World(seed: seed))
            let log = folder.path + "/log"
            try makeFolder(at: log)
            let file = try disk.open(log + "/a", creating: true)
            try disk.put("durable.", in: file, at: 0)
            try disk.sync(file)
            try disk.syncFolder(log)
            try disk.put("written", in: file, at: 8)
            try disk.rename(log + "/a", to: log + "/b")
            try disk.writeImage(of: log, to: folder.path + "/image", after: seed % 5 == 0 ? .process : .power)
            let names = try listFolder(at: folder.path + "/image")
            #expect(names == ["a"] || names == ["b"])
            let content = String(decoding: try readWholeFile(at: "\(folder.path)/image/\(names[0])"), as: UTF8.self)
            #expect(content.hasPrefix("durable."))
            if seed % 5 == 0 { #expect(names == ["b"] && content == "durable.written") }
            outcomes.insert("\(names[0]) \(content.count == 8 ? "without" : content.count == 15 ? "with" : "part")")
        }
        #expect(outcomes.isSuperset(of: ["a without", "a with", "b without", "b with"]))
        #expect(outcomes.contains { $0.hasSuffix("part") })
    }

    @Test(
        "A file that came through a power failure is there when another one was to take its name as power fails again")
    func replacedFile() throws {
        var contents: Set<String> = []
        for seed in 1...40 as ClosedRange<UInt64> {
            let folder = try Folder()
            try makeFolder(at: folder.path + "/node")
            let path = folder.path + "/node/node.json"
            try writeWhole(Array("old".utf8), to: DiskFile(path: path, flags: O_WRONLY | O_CREAT))
            let disk = SimulatedDisk(world: World(seed: seed))
            let file = try disk.open(path + ".tmp", creating: true)
            try disk.put("new", in: file, at: 0)
            try disk.sync(file)
            try disk.rename(path + ".tmp", to: path)
            try disk.writeImage(of: folder.path + "/node", to: folder.path + "/image", after: .power)
            contents.insert(String(decoding: try readWholeFile(at: folder.path + "/image/node.json"), as: UTF8.self))
        }
        #expect(contents == ["old", "new"])
    }

    @Test(
        "What a failed sync lost is there until the power fails, also for the next process, unless it is written again")
    func failedSync() throws {
        var outcomes: Set<String> = []
        for seed in 1...60 as ClosedRange<UInt64> {
            let folder = try Folder()
            let (log, next) = (folder.path + "/log", folder.path + "/next")
            let disk = SimulatedDisk(world: World(seed: seed))
            try makeFolder(at: log)
            let file = try disk.open(log + "/a", creating: true)
            try disk.put("durable.", in: file, at: 0)
            try disk.sync(file)
            try disk.syncFolder(log)
            try disk.put("written", in: file, at: 8)
            disk.faults.failuresPerMillion = 1_000_000
            #expect(throws: DiskError.self) { try disk.sync(file) }
            disk.faults.failuresPerMillion = 0
            try disk.sync(file)
            try disk.writeImage(of: log, to: next, after: .process)
            #expect(try text(next + "/a") == "durable.written")
            // The next process writes something of it again.
            let other = SimulatedDisk(world: World(seed: seed), disk.unsynced(of: log, movedTo: next))
            let again = try other.open(next + "/a", creating: false)
            try other.put("wr", in: again, at: 8)
            try other.sync(again)
            try other.writeImage(of: next, to: folder.path + "/image", after: .power)
            let left = try text(folder.path + "/image/a")
            #expect(left.hasPrefix("durable.wr"))
            outcomes.insert(left)
        }
        #expect(outcomes == ["durable.written", "durable.wr\0\0\0\0\0"])
    }

    private func text(_ path: String) throws -> String { String(decoding: try readWholeFile(at: path), as: UTF8.self) }

    /// A folder that goes with the test.
    private final class Folder {
        let path = NSTemporaryDirectory() + "/disk-image-\(UUID().uuidString)"
        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }
}

extension SimulatedDisk {
    fileprivate func put(_ text: String, in file: DiskFile, at offset: Int) throws {
        _ = try Array(text.utf8).withUnsafeBytes { try self.write($0, to: file, at: offset) }
    }
}
