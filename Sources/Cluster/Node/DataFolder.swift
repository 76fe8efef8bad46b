import Directory
import Foundation
import Logging
import RaftCore
import Storage

/// Opens a node's data folder, after giving up what must not be used.
struct DataFolder {
    private let settings: NodeSettings
    private let platform: any NodePlatform
    private let logger: Logger
    private var path: String { settings.dataPath }

    init(_ settings: NodeSettings, _ platform: any NodePlatform, _ logger: Logger) {
        self.settings = settings
        self.platform = platform
        self.logger = logger
    }

    /// The log, and the folder's account.
    func open(configured: ClusterMap) throws -> (NodeFolder, RaftLog, [GroupID: RecoveredGroup]) {
        try NodeFolder.check(settings)
        if let reason = try Quarantine.reason(of: path) {
            try setAside(because: reason)
        }
        try prepare()
        func openAfterAll(_ reason: String) throws -> (RaftLog, [GroupID: RecoveredGroup]) {
            try setAside(because: reason)
            try prepare()
            return try openLog()
        }
        var opened: (log: RaftLog, groups: [GroupID: RecoveredGroup])
        do throws(RaftLogError) {
            opened = try openLog()
        } catch {
            guard case .corrupt = error, settings.nodes.count > 1 else {
                throw startError(error)
            }
            opened = try openAfterAll("its raft log is damaged below what was durable (\(error))")
        }
        // A first start that was cut short leaves an empty log.
        if !opened.groups.isEmpty, try NodeFolder.read(path) == nil {
            opened.log.close()
            opened = try openAfterAll("\(path)/node.json is missing, but its raft log holds replicas")
        }
        // The log's lock makes these our own: the remains of a stopped transfer are useless.
        try clearSnapshots()
        let folder = try NodeFolder(settings, configured: configured, random: platform.random)
        return (folder, opened.log, opened.groups)
    }

    /// Gives up what the folder holds, if there are others to fetch it from.
    private func setAside(because reason: String) throws {
        guard settings.nodes.count > 1 else {
            throw NodeStartError(
                "\(reason). The configuration file names no other node to fetch a copy from: name the cluster's other nodes there, or, "
                    + "where there are none, put back what is missing")
        }
        let place = try Quarantine.run(path, because: reason, on: settings.log.disk)
        logger.error(
            "node \(settings.nodeID) begins anew and fetches its data from its peers, because \(reason). What was there is in \(place), and may be deleted once the other nodes are ready"
        )
    }

    private func prepare() throws {
        do {
            for folder in ["", "/shards", "/snapshots"] {
                try FileManager.default.createDirectory(
                    atPath: path + folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
        } catch {
            throw NodeStartError(
                "the data folder \(path) cannot be used: \(error.localizedDescription). Name a folder that this user may write to"
            )
        }
        // It may have been made beforehand, open to others. Where it is another user's, `umask` closes new files.
        if chmod(path, 0o700) != 0 {
            logger.warning(
                "the data folder \(path) cannot be closed to other users: \(String(cString: strerror(errno))). Run as its owner"
            )
        }
    }

    private func clearSnapshots() throws {
        do {
            for file in try FileManager.default.contentsOfDirectory(atPath: path + "/snapshots") {
                try FileManager.default.removeItem(atPath: "\(path)/snapshots/\(file)")
            }
        } catch {
            throw NodeStartError("\(path)/snapshots cannot be cleared: \(error.localizedDescription)")
        }
    }

    private func openLog() throws(RaftLogError) -> (RaftLog, [GroupID: RecoveredGroup]) {
        var options = settings.log
        options.haltsAfterRefusal = true
        options.scheduling = platform.logScheduling
        options.random = platform.random
        let (log, groups) = try RaftLog.open(directory: path + "/log", options: options)
        return (log, groups)
    }

    private func startError(_ error: RaftLogError) -> NodeStartError {
        switch error {
        case .locked: NodeStartError("another process is using \(path): stop it first")
        case .corrupt(let segment, let position, let detail):
            NodeStartError(
                "the raft log is damaged below what was durable: \(segment) at byte \(position): \(detail). Nothing was "
                    + "changed. There is no other node to fetch a copy from: restore a backup with `zonekeeper restore`"
            )
        case .diskFull:
            NodeStartError("the disk that holds \(path) is full: make space and start again")
        default: NodeStartError("the raft log in \(path)/log cannot be opened: \(error)")
        }
    }
}
