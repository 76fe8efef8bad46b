import Glibc
import RecordModel
import ServiceClient
import Storage

/// Puts a backup back as the data of a cluster that has none.
///
/// Each node's folder gets a file `restored.json`, by which the node begins new incarnations of its zones: what clients know of
/// the time after the backup is then answered as expired, never silently wrong.
struct ClusterRestore {
    var layout: ClusterLayout
    /// The backup's folder; absolute.
    var source: String
    /// Whether certificates and the administrator's token are put back as well, where they are missing.
    var withSecrets: Bool

    /// Checks the whole backup first, then copies. A node's folder appears whole or not at all.
    /// - Throws: `CommandFailure`.
    func run() throws -> BackupManifest {
        let manifest = try manifest()
        for node in layout.file.nodes {
            let folder = layout.folder(of: node)
            guard try NodeFiles.isEmpty(folder) else {
                throw CommandFailure(
                    "\(folder) has data already: move it away first; a restore replaces nothing")
            }
        }
        try ClusterBackup.verify(manifest, in: source)
        do throws(DiskError) {
            try copy(manifest)
        } catch {
            throw CommandFailure("the restore is not complete: \(error.operation) of \(error.path): \(error.reason)")
        }
        return manifest
    }

    private func manifest() throws -> BackupManifest {
        let path = "\(source)/\(BackupManifest.fileName)"
        let bytes: [UInt8]
        do throws(DiskError) {
            bytes = try readWholeFile(at: path)
        } catch {
            throw CommandFailure("\(path) cannot be read: \(error.reason). Is this the folder of a finished backup?")
        }
        let manifest = try BackupManifest(parsing: bytes)
        guard manifest.cluster == layout.file.name else {
            throw CommandFailure(
                "the backup is of cluster '\(manifest.cluster)', the configuration names '\(layout.file.name)'")
        }
        let nodes = layout.file.nodes.map(\.id).sorted()
        guard manifest.nodes == nodes else {
            throw CommandFailure(
                "the backup is of nodes \(manifest.nodes), the configuration names \(nodes): give it the nodes it was made of"
            )
        }
        if withSecrets, !manifest.hasSecrets {
            throw CommandFailure(
                "the backup has no certificates and no administrator's token: it was made without --with-secrets")
        }
        return manifest
    }

    private func copy(_ manifest: BackupManifest) throws(DiskError) {
        var progress = ByteProgress("restored", total: manifest.files.reduce(0) { $0 + $1.size })
        let incarnation = JSONValue.members(["incarnation": .integer(Times.now)]).serialized()
        try makeFolder(at: layout.data)
        for node in layout.file.nodes {
            let folder = layout.folder(of: node)
            let temporary = folder + ".restoring"
            try Self.remove(temporary)
            let files = manifest.files.filter { $0.path.hasPrefix("node-\(node.id)/") }
            for file in files {
                let name = file.path.dropFirst("node-\(node.id)/".count)
                try copy(file, to: "\(temporary)/\(name)", progress: &progress)
            }
            try replaceFile(at: temporary + "/restored.json", with: incarnation)
            for folder in [temporary, temporary + "/log", temporary + "/shards"] where Paths.exists(folder) {
                try fsyncFolder(at: folder)
            }
            // An empty folder may be in the place.
            guard rmdir(folder) == 0 || errno == ENOENT else {
                throw DiskError(operation: "rmdir", path: folder, code: errno)
            }
            try renameFile(at: temporary, to: folder)
        }
        if withSecrets { try copySecrets(manifest, progress: &progress) }
        try fsyncFolder(at: layout.data)
        progress.finish()
    }

    private func copySecrets(_ manifest: BackupManifest, progress: inout ByteProgress) throws(DiskError) {
        for file in manifest.files where file.path == "admin.token" || file.path.hasPrefix("certs/") {
            let path = "\(layout.data)/\(file.path)"
            if !Paths.exists(path) { try copy(file, to: path, progress: &progress) }
        }
    }

    private func copy(
        _ file: BackupManifest.File, to path: String, progress: inout ByteProgress
    ) throws(DiskError) {
        try makeFolder(at: Paths.folder(of: path))
        let mode: mode_t = file.path.hasPrefix("certs/") && file.path.hasSuffix(".pem") ? 0o644 : 0o600
        let sum = try FileCopy.copy(from: "\(source)/\(file.path)", to: path, mode: mode) { progress.add($0) }
        guard sum.sha256 == file.sha256 else { throw DiskError(operation: "verify", path: path, code: EIO) }
    }

    /// Removes what an interrupted restore left: a folder of files and one level of folders.
    private static func remove(_ folder: String) throws(DiskError) {
        guard Paths.exists(folder) else { return }
        for name in try listFolder(at: folder) {
            let path = "\(folder)/\(name)"
            if unlink(path) == 0 { continue }
            for inner in try listFolder(at: path) { try removeFile(at: "\(path)/\(inner)") }
            guard rmdir(path) == 0 else { throw DiskError(operation: "rmdir", path: path, code: errno) }
        }
        guard rmdir(folder) == 0 else { throw DiskError(operation: "rmdir", path: folder, code: errno) }
    }
}
