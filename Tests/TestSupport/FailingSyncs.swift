import Foundation
import GRDBSQLite
import Synchronization

/// Fails SQLite's syncs in chosen folders, as a disk does that could not write what it was given before.
///
/// From the first use on, SQLite opens this process's files through a layer over the system's; it knows the files opened since.
package enum FailingSyncs {
    private typealias Methods = UnsafePointer<sqlite3_io_methods>

    /// All by address.
    private struct Files {
        var failing: Set<String> = []
        var paths: [UInt: String] = [:]
        /// What stands in the place of the system's calls on a file, and the other way round.
        var standIns: [UInt: UInt] = [:]
        var originals: [UInt: UInt] = [:]

        mutating func standIn(for original: UInt) -> UInt? {
            if let known = standIns[original] { return known }
            guard let methods = Methods(bitPattern: original) else { return nil }
            let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            copy.initialize(to: methods.pointee)
            copy.pointee.xSync = { file, flags in FailingSyncs.sync(file, flags) }
            standIns[original] = UInt(bitPattern: copy)
            originals[UInt(bitPattern: copy)] = original
            return UInt(bitPattern: copy)
        }
    }

    /// SQLite's code for a sync that failed, which is a macro there.
    private static let failedSync = SQLITE_IOERR | (4 << 8)
    private static let files = Mutex(Files())
    /// Never written to, and its calls may come from any thread.
    nonisolated(unsafe) private static let system: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil)
    private static let isInstalled: Bool = install()

    /// Makes the layer the one that SQLite opens files with. To be called before the files are opened whose syncs shall fail.
    package static func prepare() throws {
        try require(isInstalled, "SQLite does not take the layer that fails syncs")
    }

    /// Whether syncs fail of the files whose paths begin with this.
    package static func set(_ isFailing: Bool, under folder: String) {
        files.withLock { files in
            if isFailing { files.failing.insert(folder) } else { files.failing.remove(folder) }
        }
    }

    private static func install() -> Bool {
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: system.pointee)
        layer.pointee.zName = UnsafePointer(strdup("failing-syncs"))
        layer.pointee.xOpen = { _, path, file, flags, outFlags in FailingSyncs.open(path, file, flags, outFlags) }
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

    private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: CInt) -> CInt {
        let (address, methods) = (UInt(bitPattern: file), UInt(bitPattern: file?.pointee.pMethods))
        let original = files.withLock { files -> UInt? in
            guard let path = files.paths[address], !files.failing.contains(where: { path.hasPrefix($0) }) else {
                return nil
            }
            return files.originals[methods]
        }
        return original.flatMap { Methods(bitPattern: $0) }?.pointee.xSync(file, flags) ?? failedSync
    }
}
