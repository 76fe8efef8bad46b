import Cluster
import Glibc
import RaftCore
import Storage

/// The disk under a node's log, its files of assets, and the databases that come as snapshots: real files in memory,
/// and a memory of what was not synced, so that a crash can take it back.
///
/// One for each life of a node. What the one before left in the system's memory is still there, and is not on the disk.
///
/// A sync that fails may have written a part, and later ones leave the rest alone: it is read back until the power
/// fails.
final class SimulatedDisk: LogDisk, @unchecked Sendable {
    // Touched on the simulation's thread only.

    /// What the disk does wrong.
    struct Faults: Sendable {
        /// Of each million calls, how many fail with EIO.
        var failuresPerMillion = 0
        /// Of each million reads, how many fail with EIO.
        var readFailuresPerMillion = 0
        /// No file may grow.
        var isFull = false
        /// How many bytes files of assets may still grow by; nil for any. The log has room of its own.
        var roomForAssets: Int?

        /// - Returns: whether the disk has room for a file to grow.
        mutating func takeRoom(_ bytes: Int, for path: String) -> Bool {
            guard bytes > 0 else { return true }
            if isFull { return false }
            guard let room = roomForAssets, path.contains("/assets/") else { return true }
            roomForAssets = max(0, room - bytes)
            return bytes <= room
        }
    }

    /// What is asked of the disk.
    enum Call {
        case sync
        /// Has names last.
        case folderSync
        case other
    }

    /// A file, whatever its name.
    final class File {
        /// Since the last sync, oldest first.
        var unsynced: [Write] = []
        /// What the disk holds where the system takes something else for written, by place.
        var lost: [Int: UInt8] = [:]
        /// What it held when its name was removed; nil while it has one.
        var removedContent: [UInt8]?
        /// When it was last stamped before that.
        var removedTime: Int64 = 0
        /// Whether the node may speak before it is synced.
        var mayWait = false
    }

    /// One write that is not synced.
    struct Write {
        var offset: Int
        var bytes: [UInt8]
        /// What the disk had there before; shorter than `bytes` where the file grew.
        var before: [UInt8]
        var sizeBefore: Int
    }

    /// A change of names that is not synced.
    enum NameChange {
        case created(String, File)
        case renamed(String, to: String, File, replaced: File?)
        case removed(String, File)

        /// The path that only a sync of its folder makes durable.
        var path: String {
            switch self {
            case .created(let path, _), .renamed(_, to: let path, _, _), .removed(let path, _): path
            }
        }

        /// Whether this removes what was being made when a process ended: where it comes back, each start removes it.
        var isOfLeftover: Bool { if case .removed(let path, _) = self { path.hasSuffix(".tmp") } else { false } }
    }

    private let world: World
    var faults = Faults()
    /// Called before each call, which is when the power may fail.
    var beforeCall: ((Call) -> Void)?
    private var opened: [Int32: File] = [:]
    private(set) var names: [String: File] = [:]
    private(set) var nameChanges: [NameChange] = []
    /// Folders within others whose own names were not synced.
    private(set) var unsyncedFolders: Set<String> = []
    /// The files of which something is not synced, beside those that may wait for that.
    private var unsyncedFiles: Set<ObjectIdentifier> = []
    /// A database of which something was not synced when it took another one's place.
    private var unsyncedDatabase: String?
    private(set) var calls: UInt64 = 0
    private(set) var failures: UInt64 = 0

    /// - Parameter unsynced: what the life before left.
    init(world: World, _ unsynced: Unsynced = Unsynced()) {
        self.world = world
        (names, nameChanges, unsyncedFolders) = (unsynced.names, unsynced.nameChanges, unsynced.folders)
        for file in names.values where !file.unsynced.isEmpty && !file.mayWait {
            unsyncedFiles.insert(ObjectIdentifier(file))
        }
    }

    /// A file or a name that is not synced, and may not wait for that.
    var unsyncedPath: String? {
        if let unsyncedDatabase { return unsyncedDatabase }
        if !unsyncedFiles.isEmpty {
            let paths = names.filter { unsyncedFiles.contains(ObjectIdentifier($0.value)) }.keys
            return paths.min() ?? "a file without a name"
        }
        return nameChanges.first { !$0.isOfLeftover && !Self.mayWait($0.path) }?.path
    }

    /// Files of assets wait to be synced, and so do snapshots, which a start throws away.
    private static func mayWait(_ path: String) -> Bool { isOfAsset(path) || isSnapshot(path) }
    static func isOfAsset(_ path: String) -> Bool { path.contains("/assets/") }
    private static func isSnapshot(_ path: String) -> Bool { path.contains("/snapshots/") }

    /// What is not on the disk when a process ends.
    struct Unsynced {
        var names: [String: File] = [:]
        var nameChanges: [NameChange] = []
        var folders: Set<String> = []
    }

    var generator: SplitMix64 {
        get { world.generator }
        set { world.generator = newValue }
    }

    func open(_ path: String, creating: Bool) throws(DiskError) -> DiskFile {
        try call("open", path)
        let file = try DiskFile(path: path, flags: O_RDWR | (creating ? O_CREAT | O_TRUNC : 0))
        let known: File
        if creating || names[path] == nil {
            known = File()
            known.mayWait = Self.mayWait(path)
            if creating, !Self.isSnapshot(path) { nameChanges.append(.created(path, known)) }
            names[path] = known
        } else {
            known = names[path] ?? File()
        }
        opened[file.descriptor] = known
        return file
    }

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        try call("pwrite", file.path)
        let known = self.file(file)
        let size = try file.size()
        guard faults.takeRoom(offset + bytes.count - size, for: file.path) else {
            throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC)
        }
        var before = try file.bytes(at: offset, count: min(bytes.count, max(0, size - offset)))
        if !known.lost.isEmpty {
            for place in before.indices {
                if let byte = known.lost.removeValue(forKey: offset + place) { before[place] = byte }
            }
        }
        let count = try file.write(bytes, at: offset)
        if !known.mayWait { unsyncedFiles.insert(ObjectIdentifier(known)) }
        known.unsynced.append(
            Write(offset: offset, bytes: Array(bytes.prefix(count)), before: before, sizeBefore: size))
        return count
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, of file: DiskFile, at offset: Int
    ) throws(DiskError) -> Int {
        if faults.readFailuresPerMillion > 0,
            Int.random(in: 0..<1_000_000, using: &world.generator) < faults.readFailuresPerMillion
        {
            world.met(.failedRead)
            throw DiskError(operation: "pread", path: file.path, code: EIO)
        }
        return try file.read(into: buffer, at: offset)
    }

    func met(_ situation: Situation) { world.met(situation) }

    func sync(_ file: DiskFile) throws(DiskError) {
        do throws(DiskError) { try call("fdatasync", file.path) } catch {
            if world.chance(70) { loseWrites(of: self.file(file)) }
            throw error
        }
        isSynced(self.file(file))
    }

    private func isSynced(_ file: File) {
        file.unsynced = []
        unsyncedFiles.remove(ObjectIdentifier(file))
    }

    /// The system takes all for written, and some is not.
    private func loseWrites(of file: File) {
        var (onDisk, inMemory): ([Int: UInt8], [Int: UInt8]) = ([:], [:])
        for write in file.unsynced {
            let arrives = world.chance(30)
            for (place, byte) in write.bytes.enumerated() {
                let old = place < write.before.count ? write.before[place] : 0
                let place = write.offset + place
                if arrives { onDisk[place] = byte }
                if onDisk[place] == nil { onDisk[place] = old }
                inMemory[place] = byte
            }
        }
        for (place, byte) in onDisk where inMemory[place] != byte { file.lost[place] = byte }
        isSynced(file)
    }

    func stamp(_ file: DiskFile, _ time: Int64) throws(DiskError) {
        try call("fdatasync", file.path)
        try file.stamp(time)
        isSynced(self.file(file))
    }

    func rename(_ path: String, to newPath: String) throws(DiskError) {
        try call("rename", path)
        let moved = names.removeValue(forKey: path) ?? File()
        if Self.isSnapshot(path) {
            // From here on it is a database, of which `DatabaseImage` and `DatabaseNames` know what a crash leaves.
            if !moved.unsynced.isEmpty { unsyncedDatabase = newPath }
            return try renameFile(at: path, to: newPath)
        }
        var replaced: File?
        // The whole folder may have been moved aside, with what had the name; and what came through a power failure is
        // known by its first change.
        if access(newPath, F_OK) == 0 {
            let known = names[newPath] ?? File()
            known.removedContent = try readWholeFile(at: newPath)
            known.removedTime = try DiskFile(path: newPath, flags: O_RDONLY).modified()
            replaced = known
        }
        // A folder that nothing was in was made for this name.
        let place = Self.folder(of: newPath)
        if (try? listFolder(at: place).isEmpty) == true { unsyncedFolders.insert(place) }
        try renameFile(at: path, to: newPath)
        names[newPath] = moved
        nameChanges.append(.renamed(path, to: newPath, moved, replaced: replaced))
    }

    func remove(_ path: String) throws(DiskError) {
        try call("unlink", path)
        guard access(path, F_OK) == 0 else { return }
        let removed = names.removeValue(forKey: path) ?? File()
        unsyncedFiles.remove(ObjectIdentifier(removed))
        removed.removedContent = try readWholeFile(at: path)
        removed.removedTime = try DiskFile(path: path, flags: O_RDONLY).modified()
        try removeFile(at: path)
        nameChanges.append(.removed(path, removed))
    }

    func syncFolder(_ path: String) throws(DiskError) {
        try call("fsync", path)
        nameChanges.removeAll { Self.folder(of: $0.path) == path }
        unsyncedFolders = unsyncedFolders.filter { Self.folder(of: $0) != path }
        DatabaseNames.synced(in: path)
    }

    static func folder(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    func freeBytes(at folder: String) throws(DiskError) -> Int {
        if faults.isFull { return 0 }
        // What is left to others is not for files.
        return faults.roomForAssets.map { $0 + AssetSettings().spareBytes } ?? 1 << 30
    }

    private func file(_ file: DiskFile) -> File {
        guard let known = opened[file.descriptor] else { preconditionFailure("\(file.path) was not opened here") }
        return known
    }

    private func call(_ operation: String, _ path: String) throws(DiskError) {
        calls += 1
        beforeCall?(operation == "fdatasync" ? .sync : operation == "fsync" ? .folderSync : .other)
        guard faults.failuresPerMillion > 0,
            Int.random(in: 0..<1_000_000, using: &world.generator) < faults.failuresPerMillion
        else { return }
        failures += 1
        throw DiskError(operation: operation, path: path, code: EIO)
    }
}
