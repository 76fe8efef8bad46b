import Glibc
import RaftCore
import Storage

/// What a crash leaves of a SQLite database in WAL mode: the file as it is, and its write-ahead log up to some commit.
///
/// Of SQLite's promises with `synchronous=NORMAL` this relies on: a checkpoint syncs the log before it moves anything, and the
/// file before it counts as moved; a commit that is not synced may be lost, with everything after it.
enum DatabaseImage {
    /// The part of a WAL that matters to a crash.
    struct WAL: Equatable {
        /// Frames that are valid.
        var frames: Int
        /// Frames that are in the database file, durably.
        var moved: Int
        /// How many frames the log has after each commit, ascending.
        var commits: [Int]
        var frameBytes: Int
    }

    private static let walHeaderBytes = 32
    private static let frameHeaderBytes = 24

    /// Copies the database at `path`, which its owner may have open in this thread, as a crash leaves it.
    static func write(
        of path: String, to newPath: String, after crash: SimulatedDisk.Crash, using generator: inout SplitMix64
    ) throws(DiskError) {
        try copyFile(path, to: newPath)
        guard access(path + "-wal", F_OK) == 0 else { return }
        var bytes = try readWholeFile(at: path + "-wal")
        if crash == .power, let wal = try wal(of: path, bytes: bytes) {
            let kept = chooseEnd(wal, using: &generator)
            bytes.removeSubrange(min(bytes.count, walHeaderBytes + kept * wal.frameBytes)...)
        }
        let file = try DiskFile(path: newPath + "-wal", flags: O_WRONLY | O_CREAT | O_TRUNC)
        try writeWhole(bytes, to: file)
    }

    /// A commit that nothing before it may be lost of: the latest, the earliest that is possible, or any between.
    private static func chooseEnd(_ wal: WAL, using generator: inout SplitMix64) -> Int {
        let possible = [wal.moved] + wal.commits.filter { $0 > wal.moved }
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: return possible[0]
        case 1: return possible[possible.count - 1]
        default: return possible[Int.random(in: possible.indices, using: &generator)]
        }
    }

    /// What the WAL and its index say; nil where no connection has looked at the log yet, or it is empty.
    static func wal(of path: String, bytes: [UInt8]) throws(DiskError) -> WAL? {
        guard bytes.count > walHeaderBytes, access(path + "-shm", F_OK) == 0 else { return nil }
        let index = try DiskFile(path: path + "-shm", flags: O_RDONLY).bytes(at: 0, count: 100)
        // Two copies of a header of 48 bytes, then what was moved; in the machine's byte order.
        guard index.count == 100, index[12] == 1 else { return nil }
        let valid = Int(UInt32(littleEndian: index.number(at: 16)))
        let moved = Int(UInt32(littleEndian: index.number(at: 96)))
        let pageBytes = Int(UInt32(bigEndian: bytes.number(at: 8)))
        let frameBytes = frameHeaderBytes + pageBytes
        var wal = WAL(frames: 0, moved: 0, commits: [], frameBytes: frameBytes)
        while wal.frames < valid {
            let start = walHeaderBytes + wal.frames * frameBytes
            // A frame belongs to the log if it carries the salts of its header.
            guard start + frameBytes <= bytes.count, bytes[start + 8..<start + 16] == bytes[16..<24] else { break }
            wal.frames += 1
            if UInt32(bigEndian: bytes.number(at: start + 4)) != 0 { wal.commits.append(wal.frames) }
        }
        wal.moved = min(moved, wal.frames)
        return wal
    }
}

extension [UInt8] {
    fileprivate func number(at offset: Int) -> UInt32 {
        withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
}
