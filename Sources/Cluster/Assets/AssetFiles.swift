import Crypto
import Glibc
import RecordModel
import Storage
import Synchronization

/// The files of assets on this node: `assets/ab/cdef...` by the digits of their SHA-256, and `assets/incoming` for what
/// is being written.
///
/// A file has its name only when it is whole and durable. Its time says when somebody last asked to keep it
/// (`renew`). Every call blocks; any thread may call any.
final class AssetFiles: Sendable {
    private let folder: String
    private let disk: any LogDisk
    private let key: SymmetricKey?
    private let random: @Sendable () -> UInt64
    /// Held while a file is renewed or judged and removed, so that neither happens between the other's steps.
    private let names = Mutex<Void>(())

    init(folder: String, disk: any LogDisk, key: [UInt8]?, random: @escaping @Sendable () -> UInt64) {
        self.folder = folder
        self.disk = disk
        self.key = key.map { SymmetricKey(data: $0) }
        self.random = random
    }

    /// Makes the folders and removes what was being written when the node last ended.
    func prepare() throws(DiskError) {
        try makeFolder(at: folder + "/incoming")
        for name in try listFolder(at: folder + "/incoming") { try disk.remove("\(folder)/incoming/\(name)") }
        // A name may have been given right before the end.
        for name in try listFolder(at: folder) { try disk.syncFolder("\(folder)/\(name)") }
        try disk.syncFolder(folder)
    }

    /// Bytes that may still be written to the disk.
    func freeBytes() throws(DiskError) -> Int { try disk.freeBytes(at: folder) }

    /// Begins a file.
    func begin(limit: UInt64) throws(DiskError) -> AssetWriter {
        var salt: [UInt8] = []
        for _ in 0..<2 { withUnsafeBytes(of: random()) { salt += $0 } }
        return try AssetWriter(
            path: "\(folder)/incoming/\(Self.digits(salt))", limit: limit, salt: salt, disk: disk, key: key)
    }

    /// Makes what was written a file of its own, durably.
    /// - Parameter expected: what it has to be; anything else is removed.
    /// - Throws: `AssetError.missing` where it is something else; `DiskError`. Then it is not there.
    func keep(_ writer: inout AssetWriter, time: Int64, as expected: AssetReference? = nil) throws -> AssetReference {
        let reference = try writer.finish(time: time)
        guard expected == nil || expected == reference else { throw AssetError.missing }
        let path = path(of: reference.sha256)
        let place = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        try names.withLock { _ in
            try makeFolder(at: place)
            try disk.rename(writer.path, to: path)
        }
        do throws(DiskError) {
            try disk.syncFolder(place)
            try disk.syncFolder(folder)
        } catch {
            // Whoever found it would take it for durable.
            try? disk.remove(path)
            throw error
        }
        return reference
    }

    /// Removes what was written.
    func abandon(_ writer: AssetWriter) { try? disk.remove(writer.path) }

    /// - Returns: nil where there is no such file.
    /// - Throws: `AssetError.missing` where there is one of another length or form; `DiskError`.
    func open(_ reference: AssetReference) throws -> AssetFile? {
        let file: DiskFile
        do throws(DiskError) {
            file = try disk.open(path(of: reference.sha256), creating: false)
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
        return try AssetFile(file, of: reference, disk: disk, key: key)
    }

    /// Asks to keep a file that is here, durably. A file that was asked for within `interval` milliseconds is left as
    /// it is.
    /// - Returns: whether it is here.
    func renew(_ reference: AssetReference, time: Int64, interval: Int64) throws -> Bool {
        try names.withLock { _ in
            guard let file = try open(reference) else { return false }
            let last = try file.modified()
            if last > time || last < time - interval { try file.renew(time) }
            return true
        }
    }

    /// Removes a file that nobody asked to keep since a time.
    /// - Returns: whether it is gone.
    func remove(_ sha256: [UInt8], unlessRenewedSince time: Int64) throws(DiskError) -> Bool {
        try names.withLock { _ throws(DiskError) in
            let path = path(of: sha256)
            guard try disk.open(path, creating: false).modified() < time else { return false }
            try disk.remove(path)
            return true
        }
    }

    /// The hashes of the files whose hash begins with a byte, in order.
    func hashes(beginningWith first: UInt8) throws(DiskError) -> [[UInt8]] {
        let place = "\(folder)/\(Self.digits([first]))"
        guard access(place, F_OK) == 0 else { return [] }
        return try listFolder(at: place).compactMap { Self.hash(Self.digits([first]) + $0) }
    }

    private func path(of sha256: [UInt8]) -> String {
        let digits = Self.digits(sha256)
        return "\(folder)/\(digits.prefix(2))/\(digits.dropFirst(2))"
    }

    static func digits(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }

    private static func hash(_ digits: String) -> [UInt8]? {
        let digits = Array(digits.utf8)
        guard digits.count == 2 * AssetReference.hashBytes else { return nil }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[position..<position + 2], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }
}
