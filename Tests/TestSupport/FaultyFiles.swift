import Foundation
import GRDBSQLite
import Synchronization

/// Fails calls of SQLite on chosen files: syncs, as a disk does that could not write what it was given before, and
/// reads, as one does that lost sectors.
///
/// From the first use on, SQLite opens this process's files through a layer over the system's; it knows the files
/// opened since.
package enum FaultyFiles {
    private typealias Methods = UnsafePointer<sqlite3_io_methods>

    package enum Call: Hashable, Sendable { case sync, read }

    /// All by address.
    private struct Files {
        /// The beginnings of the paths of the files whose calls fail.
        var failing: [Call: Set<String>] = [:]
        var paths: [UInt: String] = [:]
        /// What stands in the place of the system's calls on a file, and the other way round.
        var standIns: [UInt: UInt] = [:]
        var originals: [UInt: UInt] = [:]

        mutating func standIn(for original: UInt) -> UInt? {
            if let known = standIns[original] { return known }
            guard let methods = Methods(bitPattern: original) else { return nil }
            let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            copy.initialize(to: methods.pointee)
            copy.pointee.xSync = { file, flags in FaultyFiles.original(.sync, file)?.xSync(file, flags) ?? failedSync }
            copy.pointee.xRead = { file, buffer, count, offset in
                FaultyFiles.original(.read, file)?.xRead(file, buffer, count, offset) ?? failedRead
            }
            standIns[original] = UInt(bitPattern: copy)
            originals[UInt(bitPattern: copy)] = original
            return UInt(bitPattern: copy)
        }
    }

    /// SQLite's codes for calls that failed, which are macros there.
    private static let failedSync = SQLITE_IOERR | (4 << 8)
    private static let failedRead = SQLITE_IOERR | (1 << 8)
    private static let files = Mutex(Files())
    /// Never written to, and its calls may come from any thread.
    nonisolated(unsafe) private static let system: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil)
    private static let isInstalled: Bool = install()

    /// Makes the layer the one that SQLite opens files with. To be called before the files are opened whose calls shall
    /// fail.
    package static func prepare() throws {
        try require(isInstalled, "SQLite does not take the layer that fails calls")
    }

    /// Whether a call fails on the files whose paths begin with this.
    package static func set(_ call: Call, isFailing: Bool, under path: String) {
        files.withLock { files in
            if isFailing {
                files.failing[call, default: []].insert(path)
            } else {
                files.failing[call]?.remove(path)
            }
        }
    }

    private static func install() -> Bool {
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: system.pointee)
        layer.pointee.zName = UnsafePointer(strdup("faulty-files"))
        layer.pointee.xOpen = { _, path, file, flags, outFlags in FaultyFiles.open(path, file, flags, outFlags) }
        return sqlite3_vfs_register(layer, 1) == SQLITE_OK
    }

    private static func open(
        _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: CInt,
        _ outFlags: UnsafeMutablePointer<CInt>?
    ) -> CInt {
        let code = system.pointee.xOpen(system, path, file, flags, outFlags)
        guard code == SQLITE_OK, let file else { return code }
        let (address, methods) = (UInt(bitPattern: file), UInt(bitPattern: file.pointee.pMethods))
        let name = path.map { String(cString: $0) } ?? ""
        let standIn = files.withLock { files in
            files.paths[address] = name
            return files.standIn(for: methods)
        }
        file.pointee.pMethods = standIn.flatMap { Methods(bitPattern: $0) }
        return code
    }

    /// The system's calls on a file; nil where this one fails.
    private static func original(_ call: Call, _ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods? {
        let (address, methods) = (UInt(bitPattern: file), UInt(bitPattern: file?.pointee.pMethods))
        let original = files.withLock { files -> UInt? in
            guard let path = files.paths[address],
                files.failing[call]?.contains(where: { path.hasPrefix($0) }) != true
            else { return nil }
            return files.originals[methods]
        }
        return original.flatMap { Methods(bitPattern: $0) }?.pointee
    }
}
