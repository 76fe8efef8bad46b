import Cluster
import Directory
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Telemetry

/// Reads off a node what its rules of alerts are about. What is at hand only: nothing here asks anybody.
struct AlertSigns {
    let service: RecordService
    let directory: DirectorySnapshot
    private var node: ClusterNode { service.node }

    /// How far back requests count, and how few of them say nothing.
    private static let requestMinutes: Int64 = 10
    private static let requestsMin: UInt64 = 20
    private static let dayMilliseconds: Int64 = 86_400_000

    /// What a finding is judged by: the container's own value, or the cluster's.
    func threshold(of finding: AlertFinding) -> Int64 {
        let container = finding.rule.isOfContainers ? finding.container : ""
        return directory.limits(of: container)[finding.rule.limit]
    }

    private func finding(_ rule: AlertRule, _ value: Int64, _ detail: String = "") -> AlertFinding {
        AlertFinding(rule, on: node.settings.nodeID.rawValue, value, detail)
    }

    /// - Parameter elections: that each replica began lately.
    func ofReplicas(
        _ replicas: [ReplicaStatus], elections: [(group: GroupID, count: UInt64)]
    ) -> [AlertFinding] {
        var findings: [AlertFinding] = []
        func each(_ rule: AlertRule, _ wrong: [(group: GroupID, detail: String)]) {
            if wrong.isEmpty { findings.append(finding(rule, 0)) }
            for (group, detail) in wrong {
                findings.append(finding(rule, 1, "group \(group)" + detail))
                findings[findings.count - 1].group = group.rawValue
            }
        }
        each(.groupWithoutLeader, replicas.filter { $0.leader == nil }.map { ($0.group, "") })
        each(
            .replicaFailing,
            replicas.compactMap { replica in replica.applyFailure.map { (replica.group, ": \($0)") } })
        func most(_ rule: AlertRule, _ values: [(group: GroupID, count: UInt64)]) {
            guard let (group, value) = values.max(by: { $0.count < $1.count }) else { return }
            findings.append(finding(rule, Int64(clamping: value), value > 0 ? "group \(group)" : ""))
        }
        most(.replicaBehind, replicas.map { ($0.group, $0.unappliedEntries) })
        most(.waitingEffects, replicas.map { ($0.group, UInt64($0.waitingEffects)) })
        most(.waitingMatches, replicas.map { ($0.group, UInt64($0.waitingMatches)) })
        most(.elections, elections)
        return findings
    }

    /// - Parameter syncs: of the Raft log, lately.
    func ofNode(syncs: HistogramCounts) -> [AlertFinding] {
        let missing = node.assetCounts.missing
        let (requests, reads) = (service.gate.load.waiting, NodeMetrics.waitingReads(of: node))
        var findings = [
            finding(.missingFiles, missing > 0 ? 1 : 0, missing > 0 ? "of \(missing)" : ""),
            finding(.overload, Int64(max(requests, reads)), reads > requests ? "reads of shards" : "requests"),
            finding(.clock, abs(node.clockErrorMilliseconds ?? 0)),
        ]
        if let disk = NodeMetrics.diskSpace(at: node.settings.dataPath), disk.all > 0 {
            let detail = node.isDiskShort ? "it takes only reads and deletions" : ""
            findings.append(finding(.diskSpace, Int64(disk.free / max(disk.all / 100, 1)), detail))
        }
        let expiries = node.settings.certificates.compactMap { file in file.expires.map { (file.name, $0 * 1_000) } }
        if let (name, expires) = expiries.min(by: { $0.1 < $1.1 }) {
            findings.append(finding(.certificate, max(expires - service.now, 0) / Self.dayMilliseconds, name))
        }
        if let milliseconds = syncs.milliseconds(ofHundredths: 99) { findings.append(finding(.slowDisk, milliseconds)) }
        return findings
    }

    /// What clients' requests came to lately, by the containers' environments.
    func ofRequests() -> [AlertFinding] {
        service.requests.recent(minutes: Self.requestMinutes).flatMap { place, cell -> [AlertFinding] in
            guard cell.requests >= Self.requestsMin else { return [] }
            let failed = cell.errors.filter { $0.code.httpStatus >= 500 }
            let count = failed.reduce(0) { $0 + $1.count }
            let codes = failed.sorted { $0.count > $1.count }.map { "\($0.count) \($0.code.rawValue)" }
            return [
                finding(
                    .errors, Int64(count * 100 / cell.requests),
                    "of \(cell.requests) requests: " + (codes.isEmpty ? "none" : codes.joined(separator: ", "))),
                finding(
                    .slowAnswers, Int64(cell.latency.milliseconds(ofPart: 0.95) ?? 0), "of \(cell.requests) requests"),
            ].map { finding in
                var finding = finding
                (finding.container, finding.environment) = (place.container, place.environment)
                return finding
            }
        }
    }

    /// What environments hold and carried, of those whose requests this node counts.
    func ofStorage(_ storage: [SchemaKey: DayUsage.Storage]) -> [AlertFinding] {
        let month = QuotaTransfer.month(of: service.now)
        return storage.flatMap { key, storage -> [AlertFinding] in
            let database = DatabaseKey(publicDataIn: key)
            var findings: [AlertFinding] = []
            func share(_ rule: AlertRule, _ used: Int64, of limit: Int64) {
                guard limit > 0, limit != ContainerLimit.unlimited else { return }
                let share = Int64((Double(used) / Double(limit) * 100).rounded(.down))
                var found = finding(rule, share, "\(used) of \(limit) bytes")
                (found.container, found.environment) = (key.container, key.environment)
                found.time = storage.time
                findings.append(found)
            }
            share(.publicData, storage.publicBytes, of: service.quotas.quota(of: database, in: directory).cap.bytes)
            if service.usage.knows(database, month: month) {
                share(
                    .transfer, service.usage.transfer(of: database, month: month),
                    of: ContainerUsage.transferLimit(of: database, in: directory))
            }
            return findings
        }
    }
}
