import Foundation
import Glibc
import PeerTransport
import RaftCore
import RecordModel
import Storage

/// What a node counted since its start, as lines of Prometheus's text form. `Telemetry` has the rest.
package enum NodeMetrics {
    /// What the node and its replicas are at.
    package static func lines(of node: ClusterNode) async -> [String] {
        let (log, replicas) = (node.logCounters, await node.status())
        var lines = [
            "# TYPE zonekeeper_log_syncs_total counter", "zonekeeper_log_syncs_total \(log.syncs)",
            "# TYPE zonekeeper_log_written_bytes_total counter",
            "zonekeeper_log_written_bytes_total \(log.bytesWritten)",
            "# TYPE zonekeeper_log_appends_total counter", "zonekeeper_log_appends_total \(log.appends)",
            "# TYPE zonekeeper_disk_written_bytes_total counter",
            "zonekeeper_disk_written_bytes_total \(diskBytesWritten())",
            "# TYPE zonekeeper_cpu_seconds_total counter", "zonekeeper_cpu_seconds_total \(cpuSeconds())",
            "# TYPE zonekeeper_clock_error_milliseconds gauge",
            "zonekeeper_clock_error_milliseconds \(node.clockErrorMilliseconds ?? 0)",
            "# TYPE zonekeeper_disk_short gauge", "zonekeeper_disk_short \(node.isDiskShort ? 1 : 0)",
        ]
        // One that does not fit a frame stalls its group: this stays 0, or something is wrong with the limits.
        let dropped = node.droppedMessages
        for (reason, count) in [("too_large", dropped.tooLarge), ("full", dropped.full)] {
            lines += [
                "# TYPE zonekeeper_peer_messages_dropped_\(reason)_total counter",
                "zonekeeper_peer_messages_dropped_\(reason)_total \(count)",
            ]
        }
        let reads = node.pools.reads.load
        for (name, count) in [("working_reads", reads.running), ("waiting_reads", reads.waiting)] {
            lines += ["# TYPE zonekeeper_\(name) gauge", "zonekeeper_\(name) \(count)"]
        }
        if let disk = diskSpace(at: node.settings.dataPath) {
            lines += [
                "# TYPE zonekeeper_data_disk_bytes gauge", "zonekeeper_data_disk_bytes \(disk.all)",
                "# TYPE zonekeeper_data_disk_free_bytes gauge", "zonekeeper_data_disk_free_bytes \(disk.free)",
            ]
        }
        let certificates = node.settings.certificates.compactMap { file in
            file.expires.map { "zonekeeper_certificate_expires_timestamp_seconds{file=\"\(file.name)\"} \($0)" }
        }
        lines += ["# TYPE zonekeeper_certificate_expires_timestamp_seconds gauge"] + certificates
        return lines + Self.lines(of: node.assetCounts) + Self.lines(of: replicas)
    }

    private static func lines(of assets: AssetCounts) -> [String] {
        func line(_ name: String, _ kind: String, _ value: UInt64) -> [String] {
            ["# TYPE zonekeeper_asset_\(name) \(kind)", "zonekeeper_asset_\(name) \(value)"]
        }
        return line("files", "gauge", assets.files) + line("bytes", "gauge", assets.bytes)
            + line("fetching", "gauge", assets.fetching) + line("missing", "gauge", assets.missing)
            + line("pulls_total", "counter", assets.pulls)
            + line("early_pulls_total", "counter", assets.earlyPulls)
            + line("pulled_bytes_total", "counter", assets.pulledBytes)
            + line("failed_pulls_total", "counter", assets.failedPulls)
            + line("scrubbed_bytes_total", "counter", assets.scrubbedBytes)
            + line("damaged_total", "counter", assets.damaged)
            + line("collected_total", "counter", assets.collected)
    }

    private static func lines(of replicas: [ReplicaStatus]) -> [String] {
        func gauge(_ name: String, _ kind: String = "gauge", _ value: (ReplicaStatus) -> UInt64) -> [String] {
            ["# TYPE zonekeeper_\(name) \(kind)"]
                + replicas.map { "zonekeeper_\(name){group=\"\($0.group)\"} \(value($0))" }
        }
        return gauge("replica_failing") { $0.applyFailure == nil ? 0 : 1 }
            + gauge("replica_feature_level") { $0.level.rawValue }
            + gauge("replica_leads") { $0.role == .leader ? 1 : 0 }
            + gauge("replica_has_leader") { $0.leader == nil ? 0 : 1 }
            + gauge("replica_term") { $0.term.rawValue }
            + gauge("replica_commit_index") { $0.commitIndex.rawValue }
            + gauge("replica_unapplied_entries") { $0.unappliedEntries }
            + gauge("replica_uncommitted_entries") {
                $0.lastLog.index > $0.commitIndex ? $0.lastLog.index.rawValue - $0.commitIndex.rawValue : 0
            }
            + gauge("replica_waiting_effects") { UInt64($0.waitingEffects) }
            + gauge("replica_waiting_matches") { UInt64($0.waitingMatches) }
            + gauge("replica_elections_total", "counter") { $0.elections }
    }

    /// What this process had the kernel write to disks so far, the databases included.
    private static func diskBytesWritten() -> UInt64 {
        let text = (try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("write_bytes:") }
        return line?.split(separator: " ").last.flatMap { UInt64($0) } ?? 0
    }

    /// How large the disk is that holds a folder, and what of it is free, in bytes; nil where it cannot be asked.
    package static func diskSpace(at path: String) -> (all: UInt64, free: UInt64)? { try? Storage.diskSpace(at: path) }

    /// Reads of shards that wait for a thread of a node.
    package static func waitingReads(of node: ClusterNode) -> Int { node.pools.reads.load.waiting }

    /// User and system time of this process so far.
    package static func cpuSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1_000_000
    }
}
