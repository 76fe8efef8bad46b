import ArgumentParser
import Cluster
import Directory
import Glibc
import RecordModel
import ServiceClient
import Storage

struct BackupOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The cluster's configuration file. Its `data` folder is relative to the file's own folder.",
            valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The data folder of a single node, which has no configuration file.", valueName: "folder"))
    var data: String?

    func validate() throws {
        if (config == nil) == (data == nil) { throw ValidationError("either --config or --data is expected") }
        try Paths.checkNotEmpty(["--config": config, "--data": data])
    }

    func layout() throws -> ClusterLayout {
        if let data { ClusterLayout(single: data) } else { try ClusterLayout.read(config ?? "") }
    }
}

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copy a whole stopped cluster, or a stopped single node, into a folder.",
        discussion: """
            zonekeeper backup --config cluster.json --to backup-1
            zonekeeper backup --data zonekeeper-data --to backup-1

            Every node of the configuration must have its data on this machine, and be stopped. The copies are \
            read again and verified before the backup counts as one. Encrypted fields are sealed in it: without \
            the cluster's encryption key they cannot be read again.
            """)

    @OptionGroup var options: BackupOptions

    @Option(help: ArgumentHelp("The backup's folder, missing or empty.", valueName: "folder"))
    var to: String

    @Flag(help: "Copy certificates, their keys, the encryption key and the administrator's token as well.")
    var withSecrets = false

    func validate() throws { try Paths.checkNotEmpty(["--to": to]) }

    func run() async throws {
        let target = Paths.absolute(to)
        let manifest = try ClusterBackup(layout: try options.layout(), target: target, withSecrets: withSecrets).run()
        let bytes = manifest.files.reduce(0) { $0 + $1.size }
        print(
            "backed up node \(manifest.nodes.listed), \(manifest.files.count) files, \(ByteProgress.size(bytes)) in "
                + "\(target)")
        if !withSecrets {
            print("keep a copy of the encryption key elsewhere: encrypted fields of this backup open with no other")
        }
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup back as the data of a cluster, or of a single node, that has none.",
        discussion: """
            zonekeeper restore --config cluster.json --from backup-1
            zonekeeper restore --data zonekeeper-data --from backup-1

            The configuration must have the backup's cluster name and nodes, and no node may have data. The data \
            folder of a single node must be missing or empty. Zones \
            get new incarnations at the next start: change tags and sync tokens that clients hold are then \
            answered as expired. A node that joined after the backup was made must be stopped and its folder deleted \
            before: it would hold the restored data for an old copy, and have the others fetch its own.
            """)

    @OptionGroup var options: BackupOptions

    @Option(help: ArgumentHelp("The backup's folder.", valueName: "folder"))
    var from: String

    @Flag(
        help: "Put certificates, the encryption key and the administrator's token back as well, where they are missing."
    )
    var withSecrets = false

    func run() async throws {
        let layout = try options.layout()
        let manifest = try ClusterRestore(layout: layout, source: Paths.absolute(from), withSecrets: withSecrets).run()
        print("restored node \(manifest.nodes.listed) as of \(Times.text(manifest.created)) in \(layout.data)")
        if !Paths.exists(layout.encryptionKey) {
            print(
                "put the cluster's encryption key back as \(layout.encryptionKey) first: encrypted fields open with "
                    + "no other")
        }
        guard let config = options.config else {
            return print("start it with `zonekeeper serve --data \(layout.data)`")
        }
        print("stop all nodes that joined later, and delete their folders: they would take this for an old copy")
        print("start them with `zonekeeper cluster up --config \(config)`")
    }
}

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
        try checkMembers()
        do {
            guard try NodeFiles.isEmpty(target) else {
                throw CommandFailure("\(target) is not empty: name a folder for this backup only")
            }
            try makeFolder(at: target)
            let files = try copy(try sources())
            let manifest = BackupManifest(
                cluster: layout.file.name, nodes: layout.file.nodes.map(\.id), created: WallClock.now,
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

    /// Whether the configuration names all members, as the nodes themselves have them.
    private func checkMembers() throws(CommandFailure) {
        // A database that cannot be read says nothing; its copy is a part of the backup as it is.
        let maps = layout.file.nodes.compactMap { node in
            (try? ClusterMap.ofStopped(layout.folder(of: node) + "/directory.sqlite")) ?? nil
        }
        let members = maps.max { $0.epoch < $1.epoch }?.nodes.map(\.id) ?? []
        let lacking = members.filter { id in !layout.file.nodes.contains { $0.id == id } }
        guard !lacking.isEmpty else { return }
        throw CommandFailure(
            "node \(lacking.listed) is in the cluster and not in \(layout.path): a backup needs the data of every node "
                + "on this machine, and --config with a file that names them all")
    }

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
                    "\(folder)/\(file.path) is not what was copied (\(sum.size) bytes, SHA-256 \(sum.sha256)). The "
                        + "backup is damaged")
            }
        }
        progress.finish()
    }
}

/// Puts a backup back as the data of a cluster that has none.
///
/// Each node's folder gets a file `restored.json`, by which the node begins new incarnations of its zones: what clients
/// know of the time after the backup is then answered as expired, never silently wrong.
struct ClusterRestore {
    var layout: ClusterLayout
    /// The backup's folder; absolute.
    var source: String
    /// Whether certificates and the administrator's token are put back as well, where they are missing.
    var withSecrets: Bool

    /// Checks the whole backup first, then copies. A node's folder appears whole or not at all.
    func run() throws -> BackupManifest {
        let manifest = try manifest()
        for node in layout.file.nodes {
            let folder = layout.folder(of: node)
            guard try NodeFiles.isEmpty(folder) else {
                throw CommandFailure("\(folder) has data already: move it away first; a restore replaces nothing")
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
        let bytes = try Result { () throws(DiskError) in try readWholeFile(at: path) }
            .mapError {
                CommandFailure("\(path) cannot be read: \($0.reason). Is this the folder of a finished backup?")
            }.get()
        let manifest = try BackupManifest(parsing: bytes)
        guard manifest.cluster == layout.file.name else {
            throw CommandFailure("the backup is of cluster '\(manifest.cluster)', and not of '\(layout.file.name)'")
        }
        let nodes = layout.file.nodes.map(\.id).sorted()
        guard manifest.nodes == nodes else {
            throw CommandFailure(
                "the backup is of nodes \(manifest.nodes.listed), the configuration names \(nodes.listed): give it the nodes it "
                    + "was made of")
        }
        if withSecrets, !manifest.hasSecrets {
            throw CommandFailure(
                "the backup has no certificates and no administrator's token: it was made without --with-secrets")
        }
        return manifest
    }

    private func copy(_ manifest: BackupManifest) throws(DiskError) {
        var progress = ByteProgress("restored", total: manifest.files.reduce(0) { $0 + $1.size })
        try makeFolder(at: layout.data)
        for node in layout.file.nodes {
            let temporary = temporary(of: node)
            try Self.remove(temporary)
            for file in manifest.files where file.path.hasPrefix("node-\(node.id)/") {
                let name = file.path.dropFirst("node-\(node.id)/".count)
                try copy(file, to: "\(temporary)/\(name)", progress: &progress)
            }
        }
        let incarnation = try incarnation()
        for node in layout.file.nodes { try place(node, beginning: incarnation) }
        if withSecrets { try copySecrets(manifest, progress: &progress) }
        try fsyncFolder(at: layout.data)
        progress.finish()
    }

    /// Where a node's folder is until it is whole.
    private func temporary(of node: ClusterFile.Node) -> String { layout.folder(of: node) + ".restoring" }

    /// What zones begin: the time, or what is greater than everything that the data had before, as where an earlier
    /// restore was done by a clock that was ahead.
    private func incarnation() throws(DiskError) -> UInt64 {
        var newest: UInt64 = 0
        for node in layout.file.nodes {
            newest = max(newest, try NewIncarnation.newest(inStopped: temporary(of: node)))
        }
        return max(UInt64(clamping: WallClock.now), newest &+ 1)
    }

    /// Puts a node's folder in its place, whole and durable.
    private func place(_ node: ClusterFile.Node, beginning incarnation: UInt64) throws(DiskError) {
        let (folder, temporary) = (layout.folder(of: node), temporary(of: node))
        try NewIncarnation.mark(temporary, with: incarnation)
        try Self.sync(temporary)
        // An empty folder may be in the place.
        guard rmdir(folder) == 0 || errno == ENOENT else {
            throw DiskError(operation: "rmdir", path: folder, code: errno)
        }
        try renameFile(at: temporary, to: folder)
        try fsyncFolder(at: Paths.folder(of: folder))
    }

    private func copySecrets(_ manifest: BackupManifest, progress: inout ByteProgress) throws(DiskError) {
        for file in manifest.files where file.path == "admin.token" || file.path.hasPrefix("certs/") {
            let path = "\(layout.data)/\(file.path)"
            if !Paths.exists(path) { try copy(file, to: path, progress: &progress) }
        }
    }

    private func copy(_ file: BackupManifest.File, to path: String, progress: inout ByteProgress) throws(DiskError) {
        try makeFolder(at: Paths.folder(of: path))
        let mode: mode_t = file.path.hasPrefix("certs/") && file.path.hasSuffix(".pem") ? 0o644 : 0o600
        let sum = try FileCopy.copy(from: "\(source)/\(file.path)", to: path, mode: mode) { progress.add($0) }
        guard sum.sha256 == file.sha256 else { throw DiskError(operation: "verify", path: path, code: EIO) }
    }

    /// Makes the names in a folder, and in those below it, durable.
    private static func sync(_ folder: String) throws(DiskError) {
        for name in try listFolder(at: folder) where isSpecialFile(at: "\(folder)/\(name)") {
            try sync("\(folder)/\(name)")
        }
        try fsyncFolder(at: folder)
    }

    private static func remove(_ folder: String) throws(DiskError) {
        guard Paths.exists(folder) else { return }
        for name in try listFolder(at: folder) where unlink("\(folder)/\(name)") != 0 {
            try remove("\(folder)/\(name)")
        }
        guard rmdir(folder) == 0 else { throw DiskError(operation: "rmdir", path: folder, code: errno) }
    }
}
