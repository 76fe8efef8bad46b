import Directory
import Foundation
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordStore
import Storage

/// Opens replicas on this node and gives them up, at the start and while the node runs, so that no replica is ever open
/// under a generation that was given up.
///
/// The order of writes is what makes a crash harmless. *Opening*: what an earlier replica left is gone durably before
/// the generation is in the folder's account, and that is durable before anything of the replica is made; what is
/// missing after a crash was never used. *Giving up*: the account says so before anything is removed; what is left
/// after a crash is removed at the next start.
struct ReplicaKeeper: Sendable {
    var platform: any NodePlatform
    var settings: NodeSettings
    var folder: NodeFolder
    var placement: Placement
    var log: RaftLog
    var lane: Lane
    /// Apply: the first is the directory's, on which every node's lease depends; the others share the shards.
    var workers: [any SerialQueue]
    var holdings: HostedGroups
    var acknowledgements = Acknowledgements()
    var directory: DirectoryMachine
    var vault: FieldVault
    var changes: ChangeBell
    /// What the shards' records come to name.
    var assetNews = AssetNews()
    /// Rings for shards with effects on other groups.
    var effects = Bell<GroupID>()
    var logger: Logger

    /// Opens every replica in the folder's account, and removes the remains of others.
    /// - Returns: those that are damaged and not open, where there may be other copies.
    /// - Throws: what keeps a replica from being opened, if there is no other copy of it.
    func openPresent(_ recovered: [GroupID: RecoveredGroup]) async throws -> [GroupID: ReplicaDamage] {
        var damaged: [GroupID: ReplicaDamage] = [:]
        let held = folder.held
        // Nothing has the log go on yet where it refuses that: the start fails, and may be tried again.
        for group in recovered.keys.sorted() where held[group] == nil { try await removeFromLog(group) }
        try removeStrayDatabases(besides: held)
        // The directory first: it has the map.
        for group in held.keys.sorted() {
            guard let generation = held[group] else { continue }
            do {
                try await start(group, generation: generation, recovered[group] ?? RecoveredGroup(), isNew: false)
            } catch  where DataDamage.isDamage(error) && hasOtherCopies(group) {
                logger.error("group \(group): the replica here cannot be opened: \(error)")
                damaged[group] = ReplicaDamage(error, .opening, generation: generation)
            }
        }
        return damaged
    }

    /// Opens a new, empty replica, which gets the log or a snapshot from its leader.
    /// - Throws: `OldCopy` if a peer knows that it was made before, and what keeps it from being opened.
    func open(_ place: ReplicaPlan.Place) async throws {
        precondition(
            (folder.used[place.group].map { $0 < place.generation }) ?? true,
            "group \(place.group) had generation \(place.generation) here")
        try await forget(place.group)
        let path = ReplicaOpening.databasePath(of: place.group, in: settings.dataPath)
        try remove(Self.files(at: path))
        // After a power cut an earlier replica's data, which may be damaged, would pass for those of this one.
        try settings.log.disk.syncFolder((path as NSString).deletingLastPathComponent)
        try folder.update { $0.hold(place.group, generation: place.generation) }
        try await start(place.group, generation: place.generation, RecoveredGroup(), isNew: true)
        logger.notice("group \(place.group): a new replica of generation \(place.generation) joins on this node")
    }

    /// Opens a replica that is in the folder's account, but could not be opened before: it has done nothing yet.
    func openAgain(_ place: ReplicaPlan.Place) async throws {
        try await start(place.group, generation: place.generation, RecoveredGroup(), isNew: true)
    }

    /// Opens the first replicas of a newly founded cluster, unless they are open.
    func openFirst() async throws {
        for group in folder.held.keys.sorted() where holdings[group] == nil {
            try await start(group, generation: 0, RecoveredGroup(), isNew: true)
        }
    }

    /// Deletes a replica that is no longer in force; does nothing if it is too early.
    /// - Parameter damage: to its data. Its database is kept then, for diagnosis.
    func release(_ group: GroupID, damage: ReplicaDamage?) async throws {
        if holdings[group] == nil {
            try folder.update { $0.giveUp(group, at: lane.clockWatch.knownMilliseconds) }
            try await forget(group)
        } else if try await !takeOut(group) {
            return
        }
        if damage != nil { try keepEvidence(of: group) }
        try remove(Self.files(of: group, in: settings.dataPath))
        logger.notice("group \(group): this node has no replica any more")
    }

    // MARK: Parts

    private func start(
        _ group: GroupID, generation: UInt64, _ recovered: RecoveredGroup, isNew: Bool
    ) async throws {
        let founding = generation == 0 ? folder.founding : nil
        let opening = ReplicaOpening(
            group: group, id: ReplicaID(.init(node: settings.nodeID.rawValue, generation: generation)),
            bootstrap: founding?.configuration(of: group) ?? Configuration(voters: []),
            isPreferred: (placement.map ?? founding)?.preferredLeader(of: group) == settings.nodeID,
            machine: machine(of: group), settings: settings, log: log, recovered: recovered,
            levels: FeatureLevels(supported: settings.featureLevels) { [folder] in try folder.record($0) },
            platform: platform, logger: logger)
        let replica = try await opening.open(worker: worker(of: group))
        holdings.add(replica.applier)
        do {
            try await lane.eventLoop.submit { [lane, acknowledgements] in
                // A peer that speaks later is held against the replica.
                if isNew { try acknowledgements.requireNone(of: replica.raft.id, in: group) }
                lane.replicas.add(replica, for: group)
            }.get()
        } catch {
            holdings.remove(group)
            try? replica.applier.database.close()
            throw error
        }
    }

    private func worker(of group: GroupID) -> any SerialQueue {
        guard let shard = group.shard else { return workers[0] }
        return workers[1 + Int(shard) % (workers.count - 1)]
    }

    private func machine(of group: GroupID) -> any StateMachine {
        if group == .directory { return directory }
        return ShardMachine(
            vault: vault, assets: assetNews, assetGrace: settings.assets.graceMilliseconds,
            effectsWait: { [effects] in effects.ring(group) },
            worked: { [reads = lane.context.pools.reads] in reads.note($0) },
            versionAge: { [directory] in VersionAge(of: $0, in: directory.snapshot) }
        ) { [changes] change in
            switch change {
            case .stores(let stores): changes.ring(.stores(stores, in: group))
            case .all: changes.ring(.everyStore(in: group))
            }
        }
    }

    private func hasOtherCopies(_ group: GroupID) -> Bool {
        (placement.map ?? folder.founding).map { $0.replicas(ofShard: group.shard).count > 1 }
            ?? (settings.nodes.count > 1)
    }

    /// Takes a replica from the lane, the workers and the log.
    /// - Returns: false if it is too early; nothing has changed then.
    private func takeOut(_ group: GroupID) async throws -> Bool {
        // A try before this one may have come no further, as on a full disk.
        let isTaken = try await lane.eventLoop.submit { [lane] in
            lane.replicas[group] == nil || lane.remove(group) != nil
        }.get()
        guard isTaken, let applier = holdings[group] else { return false }
        try folder.update { $0.giveUp(group, at: lane.clockWatch.knownMilliseconds) }
        // What the worker has of it is done or dropped before its database goes.
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            worker(of: group).schedule { done.resume() }
        }
        holdings.remove(group)
        try await forget(group)
        do {
            try applier.database.close()
        } catch {
            logger.debug("group \(group): its database is not closed in order: \(error)")
        }
        return true
    }

    /// Removes the group from the log, if it is there, however long there is no room for that.
    private func forget(_ group: GroupID) async throws {
        while true {
            do throws(RaftLogError) {
                return try await removeFromLog(group)
            } catch {
                switch error {
                case .diskFull, .overloaded, .halted: try await platform.clock.sleep(milliseconds: 500)
                default: throw error
                }
            }
        }
    }

    /// Removes the group from the log, if it is there.
    private func removeFromLog(_ group: GroupID) async throws(RaftLogError) {
        let result = await withCheckedContinuation { continuation in
            log.submit([LogWrite(group: group, removeGroup: true)]) { continuation.resume(returning: $0) }
        }
        try result.get()
    }

    private func removeStrayDatabases(besides held: [GroupID: UInt64]) throws {
        let wanted = held.keys.map { ReplicaOpening.databasePath(of: $0, in: settings.dataPath) }
        let shards = settings.dataPath + "/shards"
        let names = try listFolder(at: shards).filter { $0.hasSuffix(".sqlite") }.map { "\(shards)/\($0)" }
        for path in names + ["\(settings.dataPath)/directory.sqlite"] where !wanted.contains(path) {
            try remove(Self.files(at: path))
        }
    }

    private func keepEvidence(of group: GroupID) throws {
        let target = settings.dataPath + "/damaged"
        try makeFolder(at: target)
        let path = ReplicaOpening.databasePath(of: group, in: settings.dataPath)
        let name = (path as NSString).lastPathComponent
        var number = 1
        while FileManager.default.fileExists(atPath: "\(target)/\(number)-\(name)") { number += 1 }
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
            try renameFile(at: path + suffix, to: "\(target)/\(number)-\(name)\(suffix)")
        }
        logger.notice("group \(group): the damaged database is in \(target), and may be deleted")
    }

    private static func files(of group: GroupID, in folder: String) -> [String] {
        files(at: ReplicaOpening.databasePath(of: group, in: folder))
    }

    private static func files(at path: String) -> [String] { ["", "-wal", "-shm"].map { path + $0 } }

    private func remove(_ paths: [String]) throws {
        for path in paths where FileManager.default.fileExists(atPath: path) { try removeFile(at: path) }
    }
}
