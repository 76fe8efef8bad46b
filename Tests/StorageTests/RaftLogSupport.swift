import Foundation
import RaftCore
import Storage
import Synchronization

/// A folder that goes with the last reference to it.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        path = NSTemporaryDirectory() + "raftlog-" + UUID().uuidString
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// What a crash at this moment would leave (the files' content, synced or not).
    func copy() throws -> TemporaryFolder {
        let copy = TemporaryFolder()
        let files = FileManager.default
        try files.createDirectory(atPath: copy.path, withIntermediateDirectories: true)
        // Only the segments in use and the identity stay what they are while this goes on: the preparing thread makes,
        // fills and renames the others, which hold nothing. One of those may be gone, or half filled, when its turn
        // comes.
        for name in try files.contentsOfDirectory(atPath: path).sorted() {
            do {
                try files.copyItem(atPath: "\(path)/\(name)", toPath: "\(copy.path)/\(name)")
            } catch  where !files.fileExists(atPath: "\(path)/\(name)") {
                continue
            }
        }
        return copy
    }

    /// A folder with these files only.
    func copy(of names: [String]) throws -> TemporaryFolder {
        let copy = TemporaryFolder()
        try FileManager.default.createDirectory(atPath: copy.path, withIntermediateDirectories: true)
        for name in names { try copy.write(bytes(name), to: name) }
        return copy
    }

    func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: "\(path)/\(name)"))) }

    func write(_ bytes: [UInt8], to name: String) throws { try Data(bytes).write(to: URL(filePath: "\(path)/\(name)")) }

    func names(endingIn end: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(end) }.sorted()
    }
}

/// A disk whose calls are counted, watched, and made to fail.
final class FaultyDisk: LogDisk {
    enum Call: Hashable, Sendable { case open, read, write, sync, rename, remove, syncFolder }

    struct State: Sendable {
        var counts: [Call: Int] = [:]
        /// Called before each call with the path; an error code makes the call fail.
        var fault: (@Sendable (Call, String) -> Int32?)?
        /// The most that one write writes.
        var writeBytesMax = Int.max
    }

    let state = Mutex(State())

    func fail(_ fault: (@Sendable (Call, String) -> Int32?)?) { state.withLock { $0.fault = fault } }
    func limitWrites(to bytes: Int) { state.withLock { $0.writeBytesMax = bytes } }
    func count(_ call: Call) -> Int { state.withLock { $0.counts[call, default: 0] } }

    private func check(_ call: Call, _ path: String) throws(DiskError) {
        let fault = state.withLock { state in
            state.counts[call, default: 0] += 1
            return state.fault
        }
        if let code = fault?(call, path) { throw DiskError(operation: "\(call)", path: path, code: code) }
    }

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        try check(.open, path)
        return try PosixDisk().open(path, creating: creating)
    }
    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        try check(.write, file.path)
        let count = min(bytes.count, state.withLock { $0.writeBytesMax })
        return try file.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
    }
    func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        try check(.read, file.path)
        return try file.read(into: buffer, at: offset)
    }
    func sync(_ file: DiskFile) throws(DiskError) {
        try check(.sync, file.path)
        try file.syncData()
    }
    func rename(_ path: String, to newPath: String) throws(DiskError) {
        try check(.rename, path)
        try renameFile(at: path, to: newPath)
    }
    func remove(_ path: String) throws(DiskError) {
        try check(.remove, path)
        try removeFile(at: path)
    }
    func syncFolder(_ path: String) throws(DiskError) {
        try check(.syncFolder, path)
        try fsyncFolder(at: path)
    }
}

extension RaftLogOptions {
    static func small(_ segmentBytes: Int = 4_096, disk: any LogDisk = UnsyncedDisk()) -> RaftLogOptions {
        var options = RaftLogOptions()
        options.segmentBytes = segmentBytes
        options.keepEntries = 0
        options.disk = disk
        return options
    }
}

extension RaftLog {
    /// Submits and waits.
    func write(_ batch: [LogWrite]) async -> Result<Void, RaftLogError> {
        await withCheckedContinuation { waiting in submit(batch) { waiting.resume(returning: $0) } }
    }

    func collectNow() async -> Result<Int, RaftLogError> {
        await withCheckedContinuation { waiting in collect { waiting.resume(returning: $0) } }
    }

    func all(_ group: GroupID, from first: UInt64) throws -> [Entry]? {
        try entries(of: group, from: LogIndex(first), through: LogIndex(.max - 1), bytesMax: .max)
    }
}

let group1 = GroupID(1)
let group2 = GroupID(2)

func command(_ index: UInt64, _ term: UInt64, _ text: String = "payload") -> Entry {
    Entry(index: LogIndex(index), term: Term(term), payload: .command(Array("\(text) \(index)@\(term)".utf8)))
}

func commands(_ indexes: ClosedRange<UInt64>, _ term: UInt64, _ text: String = "payload") -> [Entry] {
    indexes.map { command($0, term, text) }
}

func mark(_ index: UInt64, _ term: UInt64) -> SnapshotMark {
    SnapshotMark(
        position: LogPosition(index: LogIndex(index), term: Term(term)),
        configuration: Configuration(voters: [ReplicaID(1), ReplicaID(2), ReplicaID(index)]))
}

func vote(_ term: UInt64, _ replica: UInt64? = nil) -> HardState {
    HardState(term: Term(term), vote: replica.map { ReplicaID($0) })
}

/// A disk that never syncs, for tests that only look at what was written.
struct UnsyncedDisk: LogDisk {
    func sync(_ file: DiskFile) throws(DiskError) {}
    func syncFolder(_ path: String) throws(DiskError) {}
}
