import Directory
import Foundation
import Glibc
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Synchronization
import Wire

/// The data folder's account of itself, which is durable whenever a change of it returns.
final class NodeFolder: Sendable {
    let path: String
    private let disk: any LogDisk
    private let state: Mutex<NodeIdentity>

    var identity: NodeIdentity { state.withLock(\.self) }

    /// Opens the folder for the node: creates its account if it is new, checks that it is this node's, and counts the
    /// start. The folder's log is open, so that no other process uses it.
    /// - Throws: `NodeStartError` that says what does not fit and what to do.
    init(_ settings: NodeSettings, configured: ClusterMap, random: () -> UInt64) throws {
        path = settings.dataPath
        disk = settings.log.disk
        var identity: NodeIdentity
        if let present = try Self.read(path) {
            identity = try Self.checked(present, settings)
        } else {
            identity = NodeIdentity(
                clusterID: settings.clusterID, nodeID: settings.nodeID.rawValue,
                formatVersion: NodeIdentity.currentFormatVersion,
                incarnation: random() >> 1 | 1, bootCounter: 0)
        }
        if identity.formatVersion == NodeIdentity.formatBeforeGenerations {
            identity.found(by: configured)
        }
        // Durable before a database is opened: an older program must not write to what this one has changed.
        identity.formatVersion = NodeIdentity.currentFormatVersion
        // The low half is random, so that two starts with the same count, one of them from an old image, are told
        // apart.
        identity.bootCounter = ((identity.bootCounter >> 32) + 1) << 32 | random() >> 32
        state = Mutex(identity)
        try update { _ in }
    }

    /// Notes that something here comes to a feature level, durably.
    /// - Throws: `DiskError`; then nothing has changed.
    func record(_ level: FeatureLevel) throws {
        guard level.rawValue > identity.featureLevel ?? FeatureLevel.first.rawValue else { return }
        try update { $0.featureLevel = max($0.featureLevel ?? 0, level.rawValue) }
    }

    /// Looks whether this build may open a folder, before anything in it is touched.
    /// - Throws: `NodeStartError` that says what to do.
    static func check(_ settings: NodeSettings) throws {
        guard let present = try read(settings.dataPath) else { return }
        _ = try checked(present, settings)
    }

    /// Changes the account; it is durable on return.
    /// - Throws: `DiskError`; then nothing has changed.
    func update(_ change: (inout NodeIdentity) -> Void) throws {
        try state.withLock { identity in
            var new = identity
            change(&new)
            try Self.write(new, to: path, on: disk)
            identity = new
        }
    }

    var promise: ClusterMap? { identity.promise.flatMap { try? ClusterMap(decoding: [UInt8]($0)) } }

    var founding: ClusterMap? { identity.founding.flatMap { try? ClusterMap(decoding: [UInt8]($0)) } }

    /// The generation of each replica that is here.
    var held: [GroupID: UInt64] { identity.generations { $0.isGone != true } }

    /// The last generation of each group that was ever here.
    var used: [GroupID: UInt64] { identity.generations { _ in true } }

    // MARK: The file

    private static func file(in folder: String) -> String { folder + "/node.json" }

    /// A folder's account, if any.
    static func read(_ folder: String) throws -> NodeIdentity? {
        let path = file(in: folder)
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try JSONDecoder().decode(NodeIdentity.self, from: Data(contentsOf: URL(filePath: path)))
        } catch {
            throw NodeStartError(
                "\(path) cannot be read: \(error). It says which node the folder belongs to; restore it from a backup, or move "
                    + "the folder away, and the node fetches its data from its peers")
        }
    }

    static func write(_ identity: NodeIdentity, to folder: String, on disk: any LogDisk) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try replaceFile(at: file(in: folder), with: [UInt8](try encoder.encode(identity)), on: disk)
    }

    private static func checked(_ identity: NodeIdentity, _ settings: NodeSettings) throws -> NodeIdentity {
        let known = NodeIdentity.formatBeforeGenerations...NodeIdentity.currentFormatVersion
        guard known.contains(identity.formatVersion) else {
            throw NodeStartError(
                "\(settings.dataPath) has format \(identity.formatVersion), this program reads "
                    + "\(NodeIdentity.currentFormatVersion): use the version that wrote it")
        }
        let level = FeatureLevel(identity.featureLevel ?? FeatureLevel.first.rawValue)
        if let refusal = FeatureLevels.refusal(of: level, in: settings.dataPath, supported: settings.featureLevels) {
            throw NodeStartError(refusal)
        }
        guard identity.clusterID == settings.clusterID, identity.nodeID == settings.nodeID.rawValue else {
            throw NodeStartError(
                "\(settings.dataPath) belongs to node \(identity.nodeID) of cluster \(identity.clusterID), not to node "
                    + "\(settings.nodeID) of \(settings.clusterID): name the right folder, or another one for a new node"
            )
        }
        return identity
    }
}

extension NodeIdentity {
    /// The cluster is founded: this node holds the first replicas that the map has for it.
    mutating func found(by map: ClusterMap) {
        founding = Data(map.encoded())
        promise = nil
        replicas = [:]
        for group in map.groups where map.replicas(ofShard: group.shard).contains(.init(node: nodeID)) {
            hold(group, generation: 0)
        }
    }

    mutating func hold(_ group: GroupID, generation: UInt64) {
        replicas = (replicas ?? [:]).merging(["\(group)": HeldReplica(generation: generation)]) { $1 }
    }

    /// - Parameter time: in milliseconds since 1970; nil where it is not known.
    mutating func giveUp(_ group: GroupID, at time: Int64?) {
        replicas?["\(group)"]?.isGone = true
        gaveUpAt = time ?? .max
    }

    fileprivate func generations(_ isWanted: (HeldReplica) -> Bool) -> [GroupID: UInt64] {
        var generations: [GroupID: UInt64] = [:]
        for (number, replica) in replicas ?? [:] where isWanted(replica) {
            if let group = UInt64(number) { generations[GroupID(group)] = replica.generation }
        }
        return generations
    }
}

/// What a data folder says of itself, in `node.json`.
///
/// The incarnation is random and made with the folder; the boot counter grows with every start. Both are durable before
/// the node speaks to anyone, so that its peers can tell a folder that was lost, or an old image of it, from the one
/// they know.
package struct NodeIdentity: Codable, Hashable, Sendable {
    /// The format that this build writes; it reads all from `formatBeforeGenerations` on.
    package static let currentFormatVersion = 6
    /// The last format without generations: its replicas are those that the cluster was made with.
    static let formatBeforeGenerations = 3

    /// The cluster that the folder belongs to; a node of any other cluster does not start on it.
    package var clusterID: String
    /// The node that the folder belongs to; no other node starts on it.
    package var nodeID: UInt64
    /// The format of the folder as a whole; each start raises it to `currentFormatVersion` before it opens a database.
    package var formatVersion: Int
    /// Random, below 2^63 and never 0; made with the folder.
    package var incarnation: UInt64
    /// The number of starts in the upper 32 bits, and a random number for each start in the lower.
    package var bootCounter: UInt64
    /// The map that this node last promised to found a cluster by, encoded; it goes when the cluster is founded.
    var promise: Data?
    /// The map by which this node founded the cluster, encoded; nil if it joined later.
    var founding: Data?
    /// The replicas that are here, or were, by the group's number.
    var replicas: [String: HeldReplica]?
    /// The highest feature level of anything here; nil in a folder from before there were levels. No build that cannot
    /// follow it may open anything.
    package var featureLevel: UInt64?
    /// When a replica was last given up here, in milliseconds since 1970, or in the future where the time was not
    /// known: its files may still be on their way to where it is now.
    var gaveUpAt: Int64?
    /// Set when the data must be set aside: the next start moves them, and begins with an empty folder.
    var discard: Discard?

    /// The last replica of a group on this folder.
    struct HeldReplica: Codable, Hashable, Sendable {
        var generation: UInt64
        /// It was given up; nothing is opened under its generation again.
        var isGone: Bool?
    }

    /// Why the data are given up, and the folder that they are moved to.
    struct Discard: Codable, Hashable, Sendable {
        var reason: String
        var folder: String
    }

    /// Whether the folder has taken part in anything, so that its loss counts.
    package var hasTakenPart: Bool {
        formatVersion == Self.formatBeforeGenerations || founding != nil || replicas?.isEmpty == false
    }
}

/// Why a node cannot start, in words for its operator.
package struct NodeStartError: Error, CustomStringConvertible, Sendable {
    /// What is wrong, where, and what to do about it.
    package var description: String
    package init(_ description: String) { self.description = description }
}

/// A file of a node that has no name: the system removes it with the last reference to it, also where the node is
/// killed. Nothing of it is synced.
package final class ScratchFile: Sendable {
    private let file: DiskFile
    private let pool: BlockingPool

    /// - Parameter freeBytes: what the node's disk must have free.
    /// - Throws: `unavailable` where it has less, or too much to do; `failed` where no file can be made.
    package init(of node: ClusterNode, freeBytes: UInt64) async throws(ClusterError) {
        let (folder, pool) = (node.settings.dataPath, node.pools.assets)
        if let free = NodeMetrics.diskSpace(at: folder)?.free, free < freeBytes {
            throw .unavailable(
                "the node's disk has \(free >> 20) MB free, and this begins where there are \(freeBytes >> 20) MB")
        }
        self.pool = pool
        file = try await Self.run(on: pool) {
            let path = "\(folder)/scratch-\(UInt64.random(in: 0 ... .max)).tmp"
            let file = try DiskFile(path: path, flags: O_RDWR | O_CREAT | O_EXCL)
            try removeFile(at: path)
            return file
        }
    }

    /// Writes bytes at an offset.
    /// - Throws: `failed` where the disk cannot; `unavailable` where the node is stopping or has too much to do.
    package func write(_ bytes: [UInt8], at offset: Int) async throws(ClusterError) {
        try await Self.run(on: pool) { [file] in try file.writeAll(bytes, at: offset) }
    }

    /// Reads bytes at an offset; fewer only at the end.
    /// - Throws: as `write`.
    package func read(at offset: Int, count: Int) async throws(ClusterError) -> [UInt8] {
        try await Self.run(on: pool) { [file] in try file.bytes(at: offset, count: count) }
    }

    private static func run<Value: Sendable>(
        on pool: BlockingPool, _ work: @escaping @Sendable () throws -> Value
    ) async throws(ClusterError) -> Value {
        do {
            return try await pool.run(work)
        } catch let error as DiskError {
            throw .failed("a file for a while cannot be kept: \(error)")
        } catch {
            throw .unavailable("the node is stopping, or its disk has too much to do")
        }
    }
}
