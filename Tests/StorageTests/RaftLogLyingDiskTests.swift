import Foundation
import RaftCore
import Storage
import Synchronization
import TestSupport
import Testing

@Suite("Raft log on a disk that calls written what it is not")
struct RaftLogLyingDiskTests {
    let folder = TemporaryFolder()
    let disk = LyingDisk()

    private func open(_ folder: TemporaryFolder) throws -> (log: RaftLog, groups: [GroupID: RecoveredGroup]) {
        try RaftLog.open(directory: folder.path, options: .small(4_096, disk: disk))
    }

    @Test("what a start reports is durable, though the sync of it failed before", arguments: [false, true])
    func failedSync(isFull: Bool) async throws {
        let (log, _) = try open(folder)
        try await log.write([LogWrite(group: group1, hardState: vote(1), entries: commands(1...3, 1))]).get()
        disk.state.withLock { $0.isFailing = true }
        let lost = await log.write([LogWrite(group: group1, hardState: vote(2, 3), entries: commands(4...5, 2))])
        guard case .failure(.failed(EIO, _)) = lost else { throw TestFailure("the sync did not fail: \(lost)") }
        log.close()
        disk.state.withLock {
            $0.isFailing = false
            $0.isFull = isFull
        }
        // Nor is there a file that was made before.
        if isFull {
            for name in try folder.names(endingIn: ".seg").dropFirst() { try removeFile(at: "\(folder.path)/\(name)") }
        }
        let without = try disk.powerCut(folder)
        let (old, before) = try RaftLog.open(directory: without.path, options: .small())
        #expect(before[group1]?.lastLog.index == LogIndex(3), "the disk does not lie: this test shows nothing")
        old.close()

        let (again, groups) = try open(folder)
        let reported = try #require(groups[group1])
        #expect(reported.lastLog.index == LogIndex(5) && reported.hardState == vote(2, 3))
        let image = try disk.powerCut(folder)
        let (sound, after) = try RaftLog.open(directory: image.path, options: .small())
        #expect(after[group1] == reported)
        #expect(try sound.all(group1, from: 1) == commands(1...3, 1) + commands(4...5, 2))
        sound.close()
        // And it goes on from there.
        try await again.write([LogWrite(group: group1, entries: commands(6...6, 2))]).get()
        again.close()
        let later = try disk.powerCut(folder)
        let (last, _) = try RaftLog.open(directory: later.path, options: .small())
        #expect(try last.all(group1, from: 1) == commands(1...3, 1) + commands(4...6, 2))
    }

    @Test("after an orderly end nothing is written again")
    func orderly() async throws {
        let (log, _) = try open(folder)
        try await log.write([LogWrite(group: group1, entries: commands(1...3, 1))]).get()
        log.close()
        func file() throws -> UInt64? {
            let path = "\(folder.path)/0000000000000001.seg"
            return try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
        }
        let before = try file()
        let (again, groups) = try open(folder)
        #expect(groups[group1]?.lastLog.index == LogIndex(3))
        #expect(try file() == before)
        again.close()
    }

    @Test("a start goes on in no file whose name went to another, where the folder cannot be synced for want of room")
    func unsyncedFolder() async throws {
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small())
        try await log.write([LogWrite(group: group1, entries: commands(1...3, 1))]).get()
        let image = try folder.copy()
        log.close()
        let full = FaultyDisk()
        full.fail { call, _ in call == .syncFolder ? ENOSPC : nil }
        #expect(throws: RaftLogError.diskFull) {
            try RaftLog.open(directory: image.path, options: .small(disk: full))
        }
        full.fail(nil)
        let (again, _) = try RaftLog.open(directory: image.path, options: .small(disk: full))
        try await again.write([LogWrite(group: group1, entries: commands(4...4, 1))]).get()
        again.close()
        let (last, _) = try RaftLog.open(directory: image.path, options: .small())
        #expect(try last.all(group1, from: 1) == commands(1...4, 1))
        last.close()
    }
}

/// A disk under a cache. A sync that fails leaves what was written in the cache only, and marks it as written there:
/// later syncs leave it alone.
final class LyingDisk: LogDisk {
    struct State: Sendable {
        var isFailing = false
        /// Whether no file may be made.
        var isFull = false
        /// What is on the disk, by path and offset, where the cache holds something else: yet to be synced, and lost.
        var unsynced: [String: [Int: UInt8]] = [:]
        var lost: [String: [Int: UInt8]] = [:]
    }

    let state = Mutex(State())

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        if creating {
            if state.withLock({ $0.isFull }) { throw DiskError(operation: "open", path: path, code: ENOSPC) }
            state.withLock { ($0.unsynced[path], $0.lost[path]) = (nil, nil) }
        }
        return try PosixDisk().open(path, creating: creating)
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        var before = [UInt8](repeating: 0, count: bytes.count)
        var failure: DiskError?
        before.withUnsafeMutableBytes { buffer in
            do throws(DiskError) { _ = try file.read(into: buffer, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
        let path = path(of: file)
        state.withLock { state in
            for (position, byte) in before.enumerated() {
                let onDisk = state.lost[path]?.removeValue(forKey: offset + position) ?? byte
                if state.unsynced[path, default: [:]][offset + position] == nil {
                    state.unsynced[path, default: [:]][offset + position] = onDisk
                }
            }
        }
        return try file.write(bytes, at: offset)
    }

    func sync(_ file: DiskFile) throws(DiskError) {
        let path = path(of: file)
        let fails = state.withLock { state in
            let fails = state.isFailing && path.hasSuffix(".seg")
            let unsynced = state.unsynced.removeValue(forKey: path) ?? [:]
            if fails { state.lost[path, default: [:]].merge(unsynced) { old, _ in old } }
            return fails
        }
        if fails { throw DiskError(operation: "fdatasync", path: path, code: EIO) }
    }

    func rename(_ path: String, to newPath: String) throws(DiskError) {
        try renameFile(at: path, to: newPath)
        state.withLock { state in
            state.unsynced[newPath] = state.unsynced.removeValue(forKey: path)
            state.lost[newPath] = state.lost.removeValue(forKey: path)
        }
    }

    /// What the folder holds when the power comes back.
    func powerCut(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let image = try folder.copy()
        let onDisk = state.withLock { state in state.lost.merging(state.unsynced) { lost, _ in lost } }
        for name in try image.names(endingIn: ".seg") {
            var bytes = try image.bytes(name)
            for (offset, byte) in onDisk["\(folder.path)/\(name)"] ?? [:] { bytes[offset] = byte }
            try image.write(bytes, to: name)
        }
        return image
    }

    /// Where a file is now: it may have been renamed since it was opened.
    private func path(of file: DiskFile) -> String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(file.descriptor)")) ?? file.path
    }
}
