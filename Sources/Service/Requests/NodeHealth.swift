import Cluster
import Foundation
import Glibc
import PeerTransport
import RaftCore
package import Wire

/// What a node is at, as it tells any other one.
package struct NodeHealth: Hashable, Sendable, WireMessage {
    /// Of the program.
    package var version = ""
    /// Why the node takes no clients; nil: it does.
    package var obstacle: String?
    /// How long ago it was started.
    package var uptimeSeconds: UInt64 = 0
    /// User and system time of the process since then; the difference of two answers is the load.
    package var cpuSeconds: Double = 0
    /// How many processors it may use.
    package var processors: UInt64 = 0
    /// What the process holds in memory.
    package var memoryBytes: UInt64 = 0
    /// Of the disk that holds its data; 0 where it cannot be asked.
    package var diskBytes: UInt64 = 0
    /// What of that is free for this user.
    package var diskFreeBytes: UInt64 = 0
    /// How far the clock is off in milliseconds; nil: it is right, as far as is known.
    package var clockErrorMilliseconds: Int64?
    /// When the first of its certificates expires, in milliseconds since 1970; nil where none can be read.
    package var certificateExpires: Int64?
    /// Groups that it leads.
    package var leads: UInt64 = 0
    /// Those that it holds.
    package var replicas: UInt64 = 0
    /// Entries that are committed and not applied here yet, of all groups.
    package var unappliedEntries: UInt64 = 0

    package init() {}

    package static var blank: Self { NodeHealth() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &version)
        try wire.field(2, &obstacle)
        try wire.field(3, &uptimeSeconds)
        try wire.field(4, &cpuSeconds)
        try wire.field(5, &processors)
        try wire.field(6, &memoryBytes)
        try wire.field(7, &diskBytes)
        try wire.field(8, &diskFreeBytes)
        try wire.field(9, &clockErrorMilliseconds)
        try wire.field(10, &certificateExpires)
        try wire.field(11, &leads)
        try wire.field(12, &replicas)
        try wire.field(13, &unappliedEntries)
    }
}

extension NodeHealth {
    /// What this node is at. Reads small files of the system, and its certificates.
    static func present(of node: ClusterNode, since start: MonotonicTime) async -> NodeHealth {
        let (settings, replicas) = (node.settings, await node.status())
        var health = NodeHealth()
        health.version = settings.version
        health.obstacle = node.obstacle(replicas)
        health.uptimeSeconds = (node.platform.clock.now.nanoseconds - start.nanoseconds) / 1_000_000_000
        health.cpuSeconds = NodeMetrics.cpuSeconds()
        health.processors = UInt64(node.processors)
        health.memoryBytes = residentBytes()
        if let disk = NodeMetrics.diskSpace(at: settings.dataPath) { (health.diskBytes, health.diskFreeBytes) = disk }
        health.clockErrorMilliseconds = node.clockErrorMilliseconds
        health.certificateExpires = settings.certificates.compactMap(\.expires).min().map { $0 * 1_000 }
        health.leads = UInt64(replicas.count { $0.role == .leader })
        health.replicas = UInt64(replicas.count)
        health.unappliedEntries = replicas.reduce(0) { $0 + $1.unappliedEntries }
        return health
    }

    /// What the kernel says that the process holds in memory.
    static func residentBytes() -> UInt64 {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { UInt64($0) } ?? 0
        return pages * UInt64(sysconf(Int32(_SC_PAGESIZE)))
    }
}
