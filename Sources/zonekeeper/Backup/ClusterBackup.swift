import Glibc
import Storage

/// Makes a copy of a whole stopped cluster.
struct ClusterBackup {
    var layout: ClusterLayout
    /// The backup's folder; absolute, missing or empty.
    var target: String
    var withSecrets: Bool

    /// Copies every node's folder, then reads the copies again and holds them against what was copied.
    /// - Throws: `CommandFailure`; the target is then no backup, as its manifest is missing.
    func run() throws -> BackupManifest {
        // Held until the copies are done.
        var locks: [FolderLock] = []
        for node in layout.file.nodes { locks.append(try NodeFiles.lock(layout.folder(of: node), node: node.id)) }
        defer { withExtendedLifetime(locks) {} }
        do {
            guard try NodeFiles.isEmpty(target) else {
                throw CommandFailure("\(target) is not empty: name a folder for this backup only")
            }
            try makeFolder(at: target)
            let files = try copy(try sources())
            let manifest = BackupManifest(
                cluster: layout.file.name, nodes: layout.file.nodes.map(\.id), created: Times.now,
                hasSecrets: withSecrets,
                files: files)
            try Self.verify(manifest, in: target)
            try replaceFile(at: "\(target)/\(BackupManifest.fileName)", with: manifest.serialized)
            try fsyncFolder(at: Paths.folder(of: target))
            return manifest
        } catch let error as DiskError {
            throw CommandFailure("the backup is not complete: \(error.operation) of \(error.path): \(error.reason)")
        }
    }

    /// What to copy, and where to below the target.
    private func sources() throws(DiskError) -> [(source: String, path: String)] {
        var sources: [(source: String, path: String)] = []
        for node in layout.file.nodes {
            let folder = layout.folder(of: node)
            sources += try NodeFiles.list(in: folder).map { (folder + "/" + $0, "node-\(node.id)/\($0)") }
        }
        guard withSecrets else { return sources }
        if Paths.exists(layout.administratorToken) { sources.append((layout.administratorToken, "admin.token")) }
        for name in try listFolder(at: layout.certificates) {
            let path = "\(layout.certificates)/\(name)"
            if name.hasPrefix("node-") {
                sources += try listFolder(at: path).map { ("\(path)/\($0)", "certs/\(name)/\($0)") }
            } else {
                sources.append((path, "certs/" + name))
            }
        }
        return sources
    }

    private func copy(_ sources: [(source: String, path: String)]) throws(DiskError) -> [BackupManifest.File] {
        var total: Int64 = 0
        for (source, _) in sources { total += Int64(try DiskFile(path: source, flags: O_RDONLY).size()) }
        var progress = ByteProgress("copied", total: total)
        var files: [BackupManifest.File] = []
        var folders: Set<String> = [target]
        for (source, path) in sources {
            let folder = Paths.folder(of: "\(target)/\(path)")
            if folders.insert(folder).inserted {
                try makeFolder(at: folder)
                folders.insert(Paths.folder(of: folder))
            }
            let sum = try FileCopy.copy(from: source, to: "\(target)/\(path)", mode: 0o600) { progress.add($0) }
            files.append(BackupManifest.File(path: path, size: sum.size, sha256: sum.sha256))
        }
        for folder in folders.sorted() { try fsyncFolder(at: folder) }
        progress.finish()
        return files
    }

    /// Reads every file of a backup and holds it against the manifest.
    static func verify(_ manifest: BackupManifest, in folder: String) throws {
        var progress = ByteProgress("verified", total: manifest.files.reduce(0) { $0 + $1.size })
        for file in manifest.files {
            let sum: FileCopy.Sum
            do throws(DiskError) {
                sum = try FileCopy.sum(of: "\(folder)/\(file.path)") { progress.add($0) }
            } catch {
                throw CommandFailure("\(folder)/\(file.path) cannot be read: \(error.reason). The backup is damaged")
            }
            guard sum == FileCopy.Sum(size: file.size, sha256: file.sha256) else {
                throw CommandFailure(
                    "\(folder)/\(file.path) is not what was copied (\(sum.size) bytes, SHA-256 \(sum.sha256)). The backup is "
                        + "damaged")
            }
        }
        progress.finish()
    }
}
