import Glibc
import RaftCore
import Storage

/// What a crash leaves of a SQLite database in WAL mode: the file as it is, and its write-ahead log up to some commit.
///
/// Of SQLite's promises with `synchronous=NORMAL` this relies on: a checkpoint syncs the log before it moves anything,
/// and the file before it counts as moved; a commit that is not synced may be lost, with everything after it.
///
/// What a crash left is on the disk, so the next one cannot take it back; and a part of it may have been moved before,
/// which SQLite does not know any more once it has read the log again. So the file `-kept` beside an image says how far
/// its log went.
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
    /// - Returns: Whether commits were lost.
    @discardableResult
    static func write(
        of path: String, to newPath: String, after crash: SimulatedDisk.Crash, using generator: inout SplitMix64
    ) throws(DiskError) -> Bool {
        try copyFile(path, to: newPath)
        guard access(path + "-wal", F_OK) == 0 else { return false }
        var isLoss = false
        var bytes = try readWholeFile(at: path + "-wal")
        // Where nobody has opened the database since the last crash, what was durable then still is.
        var durable = bytes.count > walHeaderBytes ? bytesKept(of: path, salts: bytes[salts]) : 0
        if let wal = try wal(of: path, bytes: bytes) {
            durable = walHeaderBytes + wal.moved * wal.frameBytes
            if crash == .power {
                let end = chooseEnd(wal, using: &generator)
                isLoss = wal.commits.last.map { end < $0 } ?? false
                bytes.removeSubrange(min(bytes.count, walHeaderBytes + end * wal.frameBytes)...)
            }
        }
        if crash == .power || isMovedWhole(path, bytes: bytes) { durable = bytes.count }
        try write(log: bytes, of: newPath, durable: durable)
        return isLoss
    }

    /// Copies the database of a node that is down so that all of the copy is on the disk.
    static func copy(_ path: String, to newPath: String) throws(DiskError) {
        try copyFile(path, to: newPath)
        guard access(path + "-wal", F_OK) == 0 else { return }
        let bytes = try readWholeFile(at: path + "-wal")
        try write(log: bytes, of: newPath, durable: bytes.count)
    }

    /// Writes a database's log, and how far it is on the disk.
    private static func write(log bytes: [UInt8], of path: String, durable end: Int) throws(DiskError) {
        try writeWhole(bytes, to: try DiskFile(path: path + "-wal", flags: O_WRONLY | O_CREAT | O_TRUNC))
        guard bytes.count > walHeaderBytes else { return }
        let kept = try DiskFile(path: path + keptSuffix, flags: O_WRONLY | O_CREAT | O_TRUNC)
        let length = UInt32(end)
        try writeWhole(bytes[salts] + withUnsafeBytes(of: length.littleEndian) { Array($0) }, to: kept)
    }

    /// The least that a power failure leaves now of a database that its owner has open.
    static func writeLeast(of path: String, to newPath: String) throws(DiskError) {
        try copyFile(path, to: newPath)
        guard access(path + "-wal", F_OK) == 0 else { return }
        var bytes = try readWholeFile(at: path + "-wal")
        if let wal = try wal(of: path, bytes: bytes) {
            bytes.removeSubrange(min(bytes.count, walHeaderBytes + wal.moved * wal.frameBytes)...)
        }
        try writeWhole(bytes, to: try DiskFile(path: newPath + "-wal", flags: O_WRONLY | O_CREAT | O_TRUNC))
    }

    static let keptSuffix = "-kept"
    /// Where the header of a log has the number that tells it from the logs before it.
    private static let salts = 16..<24

    /// Bytes of the log, of the one with these salts, that were on the disk when the database was opened.
    private static func bytesKept(of path: String, salts: ArraySlice<UInt8>) -> Int {
        guard let kept = try? readWholeFile(at: path + keptSuffix), kept.count == 12, kept[0..<8] == salts else {
            return 0
        }
        return Int(UInt32(littleEndian: kept.number(at: 8)))
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

    /// Whether the log is to begin anew, because the database file has all of it.
    private static func isMovedWhole(_ path: String, bytes: [UInt8]) -> Bool {
        guard bytes.count > walHeaderBytes, let index = try? index(of: path) else { return false }
        return index[32..<40] != bytes[salts]
    }

    /// The first bytes of the log's index: two copies of a header of 48 bytes, then what was moved; in the machine's
    /// byte order.
    private static func index(of path: String) throws(DiskError) -> [UInt8]? {
        guard access(path + "-shm", F_OK) == 0 else { return nil }
        let index = try DiskFile(path: path + "-shm", flags: O_RDONLY).bytes(at: 0, count: 100)
        return index.count == 100 && index[12] == 1 ? index : nil
    }

    /// What the WAL and its index say; nil where no connection has looked at the log yet, or it is empty.
    static func wal(of path: String, bytes: [UInt8]) throws(DiskError) -> WAL? {
        guard bytes.count > walHeaderBytes, let index = try index(of: path) else { return nil }
        let valid = Int(UInt32(littleEndian: index.number(at: 16)))
        let moved = Int(UInt32(littleEndian: index.number(at: 96)))
        let pageBytes = Int(UInt32(bigEndian: bytes.number(at: 8)))
        let frameBytes = frameHeaderBytes + pageBytes
        var wal = WAL(frames: 0, moved: 0, commits: [], frameBytes: frameBytes)
        while wal.frames < valid {
            let start = walHeaderBytes + wal.frames * frameBytes
            // A frame belongs to the log if it carries the salts of its header.
            guard start + frameBytes <= bytes.count, bytes[start + 8..<start + 16] == bytes[salts] else { break }
            wal.frames += 1
            if UInt32(bigEndian: bytes.number(at: start + 4)) != 0 { wal.commits.append(wal.frames) }
        }
        let kept = max(0, bytesKept(of: path, salts: bytes[salts]) - walHeaderBytes) / frameBytes
        // The log may have been cut in the middle of nothing but frames that are not valid any more.
        wal.moved = min(max(moved, wal.commits.last { $0 <= kept } ?? 0), wal.frames)
        return wal
    }
}

extension [UInt8] {
    fileprivate func number(at offset: Int) -> UInt32 {
        withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
}
