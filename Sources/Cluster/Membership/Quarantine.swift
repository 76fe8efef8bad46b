import Foundation
import Storage

/// Gives up what a data folder holds, because it must not take part any more: moves it into a folder `lost-N` within,
/// where it can be looked at, so that the node begins anew.
///
/// The account of the folder says so first and goes last: an end half-way is gone on with at the next start. What the
/// node remembers of its peers stays.
enum Quarantine {
    /// What is moved, in this order.
    private static let names = [
        "log", "shards", "snapshots", "directory.sqlite", "directory.sqlite-wal", "directory.sqlite-shm",
        "restored.json",
        "node.json",
    ]

    /// Whether the folder must be set aside before its log is opened, and why.
    /// - Throws: `NodeStartError` if the folder's account cannot be read.
    static func reason(of folder: String) throws -> String? {
        let log = folder + "/log"
        let hasLog = try exists(log + "/identity") && listFolder(at: log).contains { $0.hasSuffix(".seg") }
        guard let identity = try NodeFolder.read(folder) else {
            let remains = try remains(in: folder)
            return remains.isEmpty
                ? nil : "\(folder)/node.json is missing, but \(remains.joined(separator: ", ")) are there"
        }
        if let discard = identity.discard { return discard.reason }
        guard identity.hasTakenPart, !hasLog else { return nil }
        return "\(folder)/log is missing, and with it what this node voted and acknowledged"
    }

    /// Moves everything aside.
    /// - Returns: where it is.
    /// - Throws: `NodeStartError` if another process uses the folder, or `DiskError`.
    static func run(_ folder: String, because reason: String, on disk: any LogDisk) throws -> String {
        var lock: FolderLock?
        if exists(folder + "/log") {
            lock = try FolderLock(path: folder + "/log/lock")
            guard lock != nil else {
                throw NodeStartError("another process is using \(folder): stop it first")
            }
        }
        let target = try prepare(folder, because: reason, on: disk)
        let path = "\(folder)/\(target)"
        try makeFolder(at: path)
        for name in names where exists("\(folder)/\(name)") {
            if name == "node.json" {
                try fsyncFolder(at: path)
                try fsyncFolder(at: folder)
            }
            try renameFile(at: "\(folder)/\(name)", to: "\(path)/\(name)")
        }
        try fsyncFolder(at: path)
        try fsyncFolder(at: folder)
        withExtendedLifetime(lock) {}
        return path
    }

    /// The name of the next folder to move things to.
    static func freeName(in folder: String) -> String {
        var number = 1
        while exists("\(folder)/lost-\(number)") { number += 1 }
        return "lost-\(number)"
    }

    /// Writes down that the data are given up, and where to.
    /// - Returns: the name of the folder that they go to.
    private static func prepare(_ folder: String, because reason: String, on disk: any LogDisk) throws -> String {
        let identity = try NodeFolder.read(folder)
        if let discard = identity?.discard { return discard.folder }
        let target = freeName(in: folder)
        if var identity {
            identity.discard = NodeIdentity.Discard(reason: reason, folder: target)
            try NodeFolder.write(identity, to: folder, on: disk)
        }
        return target
    }

    private static func remains(in folder: String) throws -> [String] {
        var remains = ["directory.sqlite"].filter { exists("\(folder)/\($0)") }
        if exists(folder + "/shards") {
            remains += try listFolder(at: folder + "/shards").filter { $0.hasSuffix(".sqlite") }.map { "shards/\($0)" }
        }
        return remains
    }

    private static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}
