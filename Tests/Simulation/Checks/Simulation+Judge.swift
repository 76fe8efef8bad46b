import Cluster
import Directory
import HistoryChecks
import RaftCore
import RecordModel
import Service

// How a simulation ends: what must hold once nothing goes wrong any more, and what must have held all the while.
extension Simulation {
    /// Mends the world and waits for what a cluster is for: every client has its answer, and every replica the same
    /// state.
    func finish() {
        heal()
        for client in clients { client.isEnding = true }
        guard wait(seconds: 90, "a client gets no answer after everything was mended", until: clientsHaveEnded) else {
            return
        }
        guard wait(seconds: 120, "a node does not come back after everything was mended", until: { isUpgraded }) else {
            return
        }
        for node in nodes where !node.isRetired && !node.mayLeave {
            guard let reason = node.mustBeginAnew else { continue }
            violated("node \(node.number) goes on with its data, though \(reason)")
        }
        if hasAlteredValue { awaitMending() }
        guard requireOneState() else { return }
        for client in clients { readBack(by: client) { await $0.repeatEarly() } }
        readBackAll()
        for client in clients { readBack(by: client) { await $0.readBackNotebook() } }
        for client in clients { readBack(by: client) { await $0.readBackWorkbook() } }
        for client in clients { readBack(by: client) { await $0.readBackKeyring() } }
        for client in clients { readBack(by: client) { await $0.readBackOffice() } }
        for client in clients { readBack(by: client) { await $0.readBackPurged() } }
        if world.chance(30) { restartForTokens() }
        readBack { await $0.tryKeptTokens() }
        readBack { await $0.tryReusedSessions() }
        readBack { await $0.tryEndedSessions() }
        if world.chance(40) { readBack { await $0.shareSession() } }
        breakEffects()
        for client in clients { readBack(by: client) { await $0.readBackWatchbook() } }
        if let receiver { readBack { await $0.readBack(receiver) } }
        for client in clients { readBack(by: client) { await $0.readBackDeletedUsers() } }
        for client in clients.prefix(2) { readBack(by: client) { await $0.readBackHoard() } }
        readBack { await $0.recountUsage() }
        readBack { await $0.verifyAudit() }
        checkFiles()
        if world.chance(25) { restoreBackup() }
    }

    /// Reads all zones and stores in every way there is.
    func readBackAll() {
        for zone in recorder.zones.indices { readBack { await $0.readBack(zone: zone) } }
        for store in recorder.stores.indices { readBack { await $0.readBack(store: store) } }
    }

    /// Starts a node again, which asks the others for the tokens that were replaced.
    private func restartForTokens() {
        let present = nodes.filter { $0.running != nil }
        guard present.count > 2, !recorder.keptTokens.isEmpty else { return }
        let node = world.pick(present)
        node.stop { node.start() }
        guard wait(seconds: 60, "a node does not come back at the end", until: { node.running != nil }) else { return }
        world.run(until: world.now + World.second)
    }

    var clientsHaveEnded: () -> Bool {
        { [unowned self] in clients.allSatisfy(\.hasEnded) && manager.hasEnded }
    }

    func readBack(by client: Client? = nil, _ body: @escaping @Sendable (Client) async -> Void) {
        (client ?? clients[0]).perform(body)
        // A node that waits to be added answers nothing, and takes the time of a request to say so.
        _ = wait(seconds: 180, "reading everything back gets no answer", until: clientsHaveEnded)
    }

    /// Lets time pass until something holds.
    /// - Returns: whether it did in time; if not, that is a violation.
    func wait(seconds: UInt64, _ complaint: String, until condition: () -> Bool) -> Bool {
        let end = world.now + seconds * World.second
        while !condition() {
            guard world.now < end else {
                let waiting = (clients + [manager]).filter { !$0.hasEnded }.map { "client \($0.number), \($0.trouble)" }
                violated("\(complaint): \((waiting + [summary()]).joined(separator: "; "))")
                return false
            }
            world.run(until: min(end, world.now + 100 * World.millisecond))
        }
        return true
    }

    // MARK: Replicas

    /// What a replica says of itself.
    private struct Finding: Sendable {
        var node: Int
        var status: ReplicaStatus
        var hashes: [(index: LogIndex, hash: [UInt8])]
    }

    private final class Findings: @unchecked Sendable {
        // Touched on the simulation's thread only.
        var all: [Finding] = []
        var waiting = 0
    }

    /// A value that a disk altered is found by comparing parts, now and then, and the replica is made anew.
    private func awaitMending() {
        let end = world.now + 180 * World.second
        while world.now < end {
            let before = look()
            hashStates(with: manager)
            guard wait(seconds: 60, "the groups do not answer while one has an altered value", until: clientsHaveEnded)
            else { return }
            // Applying may lag behind by seconds.
            for _ in 0..<20 {
                if haveOneState(look(), since: before) { return }
            }
        }
        violated("nobody finds the value that a disk altered: \(summary())")
    }

    /// Whether all replicas of each group have the hash of the whole state that the group answered, at an index that is
    /// newer than anything found before. Other hashes are of parts, and say nothing of the rest.
    private func haveOneState(_ findings: [Finding], since before: [Finding]) -> Bool {
        groups.allSatisfy { group in
            let old = before.filter { $0.status.group == group }.map(\.status.commitIndex).max() ?? .zero
            let known = findings.filter { $0.status.group == group }.map { finding in
                finding.hashes.filter { $0.index > old }
            }
            return known.first?.contains { index, hash in
                hash == recorder.stateHashes[group]
                    && known.allSatisfy { $0.contains { $0.index == index && $0.hash == hash } }
            } ?? false
        }
    }

    /// Has the states of all groups hashed, and compares them.
    /// - Returns: whether the groups answered.
    func requireOneState() -> Bool {
        let before = look()
        hashStates(with: manager)
        guard wait(seconds: 60, "the groups do not answer after everything was mended", until: clientsHaveEnded) else {
            return false
        }
        compareReplicas(since: before)
        return true
    }

    /// Every replica comes to know the same leader and to have the same state, and has the same hash at every index at
    /// which two made one. They need not be at the same index at the same moment: groups have work of their own, and
    /// applying may lag behind by seconds.
    /// - Parameter before: what was found before the states were hashed.
    private func compareReplicas(since before: [Finding]) {
        var findings: [Finding] = []
        let end = world.now + 90 * World.second
        repeat {
            findings = look()
            if areAtOne(findings), haveOneState(findings, since: before) { return compareHashes(findings) }
        } while world.now < end
        violated("the replicas do not come together after everything was mended: \(summary(findings))")
        compareHashes(findings)
    }

    private func look() -> [Finding] {
        let findings = Findings()
        for node in nodes {
            guard let (service, _, executor) = node.running else { continue }
            findings.waiting += 1
            let (number, groups) = (node.number, groups)
            executor.start {
                let statuses = await service.node.status()
                for group in groups {
                    guard let status = statuses.first(where: { $0.group == group }) else { continue }
                    let hashes = (try? await service.node.stateHashes(of: group)) ?? []
                    findings.all.append(Finding(node: number, status: status, hashes: hashes))
                }
                findings.waiting -= 1
            }
        }
        let end = world.now + 5 * World.second
        while findings.waiting > 0, world.now < end { world.run(until: world.now + 20 * World.millisecond) }
        world.run(until: world.now + 500 * World.millisecond)
        return findings.all
    }

    /// Whether each group has the replicas that the map wants, and they agree on who leads in which term.
    private func areAtOne(_ findings: [Finding]) -> Bool {
        groups.allSatisfy { group in
            guard let map = newestMap else { return false }
            let replicas = findings.filter { $0.status.group == group }
            let wanted = map.replicas(ofShard: group.shard).map { ReplicaID($0) }.sorted()
            guard replicas.map(\.status.id).sorted() == wanted, let first = replicas.first else { return false }
            return replicas.allSatisfy {
                $0.status.leader != nil && $0.status.leader == first.status.leader
                    && $0.status.term == first.status.term && $0.status.applyFailure == nil
                    && $0.status.level == FeatureLevel.supported.upperBound
            }
        }
    }

    private func compareHashes(_ findings: [Finding]) {
        for group in groups {
            var known: [LogIndex: (hash: [UInt8], node: Int)] = [:]
            for finding in findings where finding.status.group == group {
                for (index, hash) in finding.hashes {
                    if let other = known[index] {
                        if other.hash != hash {
                            violated(
                                "group \(group): nodes \(other.node) and \(finding.node) hold different states at \(index)"
                            )
                        }
                    } else {
                        known[index] = (hash, finding.node)
                    }
                }
            }
        }
    }

    private func summary(_ findings: [Finding]? = nil) -> String {
        (findings ?? look()).map { finding in
            let status = finding.status
            return
                "\(finding.node)/\(status.group): \(status.role) term \(status.term) level \(status.level) applied \(status.appliedIndex), committed \(status.commitIndex)"
                + " of \(status.lastLog), leader \(status.leader?.description ?? "-")"
                + (status.applyFailure.map { " fails: \($0)" } ?? "")
        }.joined(separator: "; ")
    }

    // MARK: Histories

    /// Whether one machine could have answered as the cluster did.
    func judge() {
        report.seconds = Double(world.now) / Double(World.second)
        report.events = world.events
        report.messages = network.messages
        // Builds that do not fit refuse each other, and nothing else is wrong with what nodes send.
        if !options.isUpgraded, network.refusals > 0 {
            violated("\(network.refusals) connections between nodes were refused for what was sent over them")
        }
        report.elections = raftWatch.elections
        report.transfers = raftWatch.transfers
        report.operations = recorder.answers
        for (situation, count) in world.situations { report.situations[situation.rawValue] = count }
        for node in nodes { for complaint in node.complaints { violated(complaint) } }
        for violation in recorder.violations { violated(violation) }
        for zone in recorder.zones {
            report.unknown += zone.history.unknownCount
            let model = ZoneModel(.unwritten(isDefault: zone.key.isDefault))
            judge(model.verdict(on: zone.history), "zone \(zone.key.name)")
        }
        let model = KeyValueModel { PropertyValue.string($0).sizeBytes }
        for store in recorder.stores {
            report.unknown += store.history.unknownCount
            judge(model.verdict(on: store.history), "store \(store.account)")
        }
    }

    private func judge(_ verdict: HistoryVerdict, _ what: String) {
        if !verdict.isLinearizable { violated("\(what): \(verdict)") }
    }
}

extension Client {
    /// Reads a zone in every way there is.
    func readBack(zone: Int) async {
        await lookUpAll(in: zone)
        await queryAll(in: zone)
        await readFeed(of: zone)
    }

    /// Reads a store in every way there is.
    func readBack(store: Int) async {
        await listKeys(of: store)
        await readFeed(ofStore: store)
    }
}
