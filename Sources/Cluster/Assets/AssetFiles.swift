import Crypto
import Glibc
package import RecordModel
import Storage
import Synchronization

/// The files of assets on this node: `assets/ab/cdef...` by the digits of their SHA-256, and `assets/incoming` for what
/// is being written. `assets/key-check` tells whether a key is the one that they are sealed with.
///
/// A file has its name only when it is whole and durable. Its time says when somebody last asked to keep it
/// (`renew`). Every call blocks; any thread may call any.
final class AssetFiles: Sendable {
    private let folder: String
    private let disk: any LogDisk
    private let key: SymmetricKey?
    private let random: @Sendable () -> UInt64
    /// Marks files that are to be kept while the node does not know the time: it is never past, and is replaced once
    /// the time is known.
    static let unknownMilliseconds: Int64 = 4_102_444_800_000  // 2100.

    /// Held while a file gets its name, durably, and while one is renewed, or judged and removed, so that neither
    /// happens between the other's steps.
    let names = Mutex<Void>(())

    /// Paths of what was being written and is to be removed.
    private let abandoned = Mutex<[String]>([])

    private var keyCheckPath: String { folder + "/key-check" }
    /// Files that are looked at to find out what sealed them, where nothing else tells it.
    private static let probedMax = 1_000

    init(folder: String, disk: any LogDisk, key: [UInt8]?, random: @escaping @Sendable () -> UInt64) {
        self.folder = folder
        self.disk = disk
        self.key = key.map { SymmetricKey(data: $0) }
        self.random = random
    }

    /// The files in a node's data folder, ready for use.
    /// - Throws: `NodeStartError` where they cannot be used, or not with this key.
    static func opened(_ settings: NodeSettings, random: @escaping @Sendable () -> UInt64) throws -> AssetFiles {
        let files = AssetFiles(
            folder: settings.dataPath + "/assets", disk: settings.assets.disk, key: settings.encryptionKey,
            random: random)
        do {
            try files.prepare()
        } catch let error as AssetKeyFault {
            throw NodeStartError("\(error)")
        } catch {
            throw NodeStartError("\(files.folder) cannot be used: \(error)")
        }
        return files
    }

    /// Makes the folders, removes what was being written when the node last ended, and checks the key.
    /// - Throws: `AssetKeyFault` where the key is not that of the files; then nothing was changed. `DiskError`.
    func prepare() throws {
        try makeFolder(at: folder + "/incoming")
        try checkKey()
        for name in try listFolder(at: folder + "/incoming") { try disk.remove("\(folder)/incoming/\(name)") }
        // A name may have been given right before the end.
        for path in try listFolder(at: folder).map({ "\(folder)/\($0)" })
        where path != keyCheckPath && path != scrubPositionPath { try disk.syncFolder(path) }
        try disk.syncFolder(folder)
    }

    /// Makes sure that the node has the key of its files: with another one, all of them would seem damaged.
    private func checkKey() throws {
        let own = key.map(AssetFormat.keyCheck)
        if let known = try knownKeyCheck() {
            guard known == own else { throw AssetKeyFault(folder: folder, isWithoutKey: own == nil) }
        } else if try areSealedOtherwise() {
            throw AssetKeyFault(folder: folder, isWithoutKey: own == nil)
        } else if let own {
            do throws(DiskError) {
                try write(keyCheck: own)
            } catch {
                // On a full disk the next start writes it. Meanwhile the files tell.
                guard error.isDiskFull else { throw error }
            }
        }
    }

    /// What was written when a key was first used here; nil where nothing was, or what was is damaged.
    private func knownKeyCheck() throws(DiskError) -> [UInt8]? {
        guard let file = try file(at: keyCheckPath) else { return nil }
        let bytes = try disk.bytes(of: file, at: 0, count: file.size())
        return AssetFormat.isKeyCheck(bytes) ? bytes : nil
    }

    /// - Returns: nil where there is none.
    private func file(at path: String) throws(DiskError) -> DiskFile? {
        do throws(DiskError) {
            return try disk.open(path, creating: false)
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
    }

    private func write(keyCheck: [UInt8]) throws(DiskError) {
        let path = folder + "/incoming/key-check"
        let file = try disk.open(path, creating: true)
        try disk.writeAll(keyCheck, to: file, at: 0)
        try disk.sync(file)
        try disk.rename(path, to: keyCheckPath)
    }

    /// Whether there are sealed files and the key opens none of them, as far as some files tell.
    private func areSealedOtherwise() throws -> Bool {
        var (looked, sealed) = (0, 0)
        for first in try firstBytes() {
            for hash in try hashes(beginningWith: first) {
                looked += 1
                if looked > Self.probedMax { return sealed > 0 }
                guard try isSealed(hash) else { continue }
                sealed += 1
                guard let file = try? open(sha256: hash), file.reference.size > 0 else { continue }
                if (try? file.bytes(0..<1)) != nil { return false }
            }
        }
        return sealed > 0
    }

    /// Whether a file says of itself that it is sealed, and has content.
    private func isSealed(_ sha256: [UInt8]) throws(DiskError) -> Bool {
        let file = try disk.open(path(of: sha256), creating: false)
        let start = try disk.bytes(of: file, at: 0, count: AssetFormat.headerBytes)
        guard AssetFormat.isSealed(start) else { return false }
        return try file.size() > AssetFormat.headerBytes
    }

    /// Bytes that may still be written to the disk.
    func freeBytes() throws(DiskError) -> Int { try disk.freeBytes(at: folder) }

    /// Begins a file.
    func begin(limit: UInt64) throws(DiskError) -> AssetWriter {
        var salt: [UInt8] = []
        for _ in 0..<2 { withUnsafeBytes(of: random()) { salt += $0 } }
        let path = "\(folder)/incoming/\(Hex.encode(salt))"
        do throws(DiskError) {
            return try AssetWriter(path: path, limit: limit, salt: salt, disk: disk, key: key)
        } catch {
            try? disk.remove(path)
            throw error
        }
    }

    /// Makes what was written a file of its own, durably.
    /// - Parameter expected: what it has to be; anything else is removed.
    /// - Throws: `AssetError.missing` where it is something else; `DiskError`. Then it is not there, unless a copy was
    ///   before.
    func keep(_ writer: inout AssetWriter, time: Int64, as expected: AssetReference? = nil) throws -> AssetReference {
        let reference = try writer.finish(time: time)
        guard expected == nil || expected == reference else { throw AssetError.missing }
        let path = path(of: reference.sha256)
        let place = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        try names.withLock { _ in
            try makeFolder(at: place)
            let replaces = try readable(reference.sha256) != nil
            try disk.rename(writer.path, to: path)
            do throws(DiskError) {
                try disk.syncFolder(place)
                try disk.syncFolder(folder)
            } catch {
                // A reader would take it for durable. Where it replaced another whole copy, one of the two is.
                if !replaces { try? disk.remove(path) }
                throw error
            }
        }
        return reference
    }

    /// Removes what was written.
    func abandon(_ writer: AssetWriter) { try? disk.remove(writer.path) }

    /// Has what was written removed by the next call of `removeAbandoned`, where there is no thread for it now. Does
    /// not block.
    func abandonLater(_ writer: AssetWriter) { abandoned.withLock { $0.append(writer.path) } }

    /// Removes what was left for later.
    func removeAbandoned() {
        let paths = abandoned.withLock { paths in
            defer { paths = [] }
            return paths
        }
        for path in paths { try? disk.remove(path) }
    }

    /// - Returns: nil where there is no such file; one of another length or form is as good as none, and one that
    ///   cannot be read any more.
    /// - Throws: `DiskError`.
    func open(_ reference: AssetReference) throws -> AssetFile? {
        let file = try readable(reference.sha256)
        return file?.reference == reference ? file : nil
    }

    /// The file by a hash; nil also where it is no file of ours, or cannot be read any more.
    private func readable(_ sha256: [UInt8]) throws -> AssetFile? {
        do { return try open(sha256: sha256) } catch AssetError.missing { return nil }
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

    /// Removes a file that was not renewed since a time.
    /// - Returns: whether it is gone.
    func remove(_ sha256: [UInt8], unlessRenewedSince time: Int64) throws(DiskError) -> Bool {
        try names.withLock { _ throws(DiskError) in
            let path = path(of: sha256)
            guard try disk.open(path, creating: false).modified() < time else { return false }
            try disk.remove(path)
            return true
        }
    }

    /// The first bytes that hashes of files here may have, in order.
    func firstBytes() throws(DiskError) -> [UInt8] {
        try listFolder(at: folder).compactMap { Hex.decode($0) }.filter { $0.count == 1 }.map { $0[0] }
    }

    /// The hashes of the files whose hash begins with a byte, in order.
    func hashes(beginningWith first: UInt8) throws(DiskError) -> [[UInt8]] {
        let place = "\(folder)/\(Hex.encode([first]))"
        return try listFolder(at: place).compactMap { Hex.decode($0) }
            .filter { $0.count == AssetReference.hashBytes - 1 }.map { [first] + $0 }
    }

    /// How long a file is on the disk, and when somebody last asked to keep it; nil where it is gone, or cannot be read
    /// any more.
    func status(of sha256: [UInt8]) throws(DiskError) -> (bytes: Int, modified: Int64)? {
        do throws(DiskError) {
            guard let file = try file(at: path(of: sha256)) else { return nil }
            return (try file.size(), try file.modified())
        } catch {
            if error.code == DiskError.ioFailure { return nil }
            throw error
        }
    }

    /// Opens a file by its hash, with the size that its length says; nil where it is gone.
    /// - Throws: `AssetError.missing` where it is no file of ours, or cannot be read any more; `DiskError`.
    func open(sha256: [UInt8]) throws -> AssetFile? {
        try AssetError.seeingDamage {
            guard let file = try file(at: path(of: sha256)) else { return nil }
            return try AssetFile(file, sha256: sha256, disk: disk, key: key)
        }
    }

    /// Moves a file aside that is something else than its name says, unless another copy has come in its place. It is
    /// kept as evidence.
    /// - Parameter found: the file that was read; nil where it could not be opened.
    /// - Returns: whether it was moved.
    func setAside(_ sha256: [UInt8], found: AssetFile?) throws -> Bool {
        try names.withLock { _ in
            let isThere: Bool
            do {
                let present = try open(sha256: sha256)
                isThere = try present.flatMap { present in try found.map { try present.isSame(as: $0) } } ?? false
            } catch AssetError.missing {
                isThere = true
            }
            guard isThere else { return false }
            try makeFolder(at: folder + "/damaged")
            try disk.rename(path(of: sha256), to: "\(folder)/damaged/\(Hex.encode(sha256))")
            return true
        }
    }

    private var scrubPositionPath: String { folder + "/scrub-position" }

    /// The first byte of the hashes with which reading all files goes on; 0 where that is not known.
    func scrubPosition() -> UInt8 {
        guard let file = try? disk.open(scrubPositionPath, creating: false),
            let bytes = try? disk.bytes(of: file, at: 0, count: 1)
        else { return 0 }
        return bytes.first ?? 0
    }

    /// Writes down how far all files were read; not durably.
    func noteScrub(at first: UInt8) throws(DiskError) {
        try disk.writeAll([first], to: disk.open(scrubPositionPath, creating: true), at: 0)
    }

    private func path(of sha256: [UInt8]) -> String {
        let digits = Hex.encode(sha256)
        return "\(folder)/\(digits.prefix(2))/\(digits.dropFirst(2))"
    }
}

/// The key of this node is not the one that its files are sealed with. Nothing was changed.
struct AssetKeyFault: Error, CustomStringConvertible {
    var folder: String
    /// Whether the node has none.
    var isWithoutKey: Bool

    var description: String {
        let what =
            isWithoutKey
            ? "are sealed, and the node was given no encryption.key"
            : "are sealed with another encryption.key than the node was given"
        return "the files in \(folder) \(what): put back the cluster's encryption.key, from another node or a copy of "
            + "it, and start again. Nothing was changed. Without that key the files cannot be read. To start without "
            + "them, move \(folder) away"
    }
}

/// What this node did with files since its start, and what it knows of them.
package struct AssetCounts: Hashable, Sendable {
    /// Files that were here at the last look.
    package var files: UInt64 = 0
    /// Their bytes on the disk.
    package var bytes: UInt64 = 0
    /// Files that were fetched whole from peers.
    package var pulls: UInt64 = 0
    /// Their bytes.
    package var pulledBytes: UInt64 = 0
    /// Those of these files that were fetched while they still came in elsewhere.
    package var earlyPulls: UInt64 = 0
    /// Attempts that brought nothing, or something else.
    package var failedPulls: UInt64 = 0
    /// Files that records name and that are not here yet, at the last look: a node that may have them was not asked,
    /// or did not answer. As many as are noted at a time, where more are missing.
    package var fetching: UInt64 = 0
    /// Files that records name and that no node has whole, at the last look: all were asked. As many as are noted at a
    /// time, where there are more.
    package var missing: UInt64 = 0
    /// The first of these by their hashes, at most `missingFilesMax`.
    package var missingFiles: [AssetReference] = []
    /// The most files that `missingFiles` names; `missing` counts all of them.
    package static let missingFilesMax = 20
    /// Bytes that were read to compare them with their hash.
    package var scrubbedBytes: UInt64 = 0
    /// Files that were found to be something else.
    package var damaged: UInt64 = 0
    /// Files that were deleted because nothing names them.
    package var collected: UInt64 = 0
}

/// The counts of a node; any thread.
final class AssetCounters: Sendable {
    private let counts = Mutex(AssetCounts())

    var current: AssetCounts { counts.withLock(\.self) }

    func update(_ change: (inout AssetCounts) -> Void) { counts.withLock { change(&$0) } }
}
