import RaftCore

/// Runs a scenario: lines that begin with `>` are commands, the lines after each are what is expected, `#` begins a
/// comment.
struct Scenario {
    private var cluster = TestCluster(voters: 1)

    /// The text with every expectation replaced by what happened.
    static func rewritten(_ text: String) throws -> String {
        var scenario = Scenario()
        var lines: [String] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix(">") {
                lines.append(line)
                lines += try scenario.run(line.dropFirst().split(separator: " ").map(String.init)).map { "    " + $0 }
            } else if line.isEmpty || line.hasPrefix("#") {
                lines.append(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    private mutating func run(_ words: [String]) throws -> [String] {
        cluster.notes = []
        let numbers = words.dropFirst().compactMap(UInt64.init)
        let first = numbers.first ?? 0
        let offset = cluster.offset(ReplicaID(first))
        switch words.first {
        case "cluster": start(words, voters: Int(first), learners: numbers.count > 1 ? Int(numbers[1]) : 0)
        case "advance": cluster.now = cluster.now.adding(milliseconds: first)
        case "tick": try cluster.event(offset) { $0.tick(now: $1) }
        case "elect": try cluster.elect(first, without: numbers.dropFirst().map { ReplicaID($0) })
        case "persist": try cluster.persistAll(offset)
        case "deliver": try deliver(from: first, to: numbers[1])
        case "drop": drop(numbers)
        case "settle": try cluster.settle(without: numbers.map { ReplicaID($0) })
        case "run": try cluster.run(milliseconds: first, without: numbers.dropFirst().map { ReplicaID($0) })
        case "propose": try propose(first, words[2])
        case "read": try cluster.read(first, numbers[1])
        case "crash": cluster.nodes[offset].crash()
        case "restart": cluster.start(offset)
        case "compact": cluster.nodes[offset].compact(through: LogIndex(numbers[1]))
        case "disconnect": try cluster.event(offset) { $0.peerDisconnected(ReplicaID(numbers[1]), now: $1) }
        case "hand": hand(numbers)
        case "join": cluster.join(first)
        case "change": try change(words)
        case "transfer": try cluster.event(offset) { $0.transferLeadership(to: ReplicaID(numbers[1]), now: $1) }
        case "members": return cluster.nodes.map(members)
        case "lease": return [lease(of: cluster[first])]
        case "messages": return cluster.messages.map(describe)
        case "status": return cluster.nodes.flatMap(status)
        default: throw Violation("unknown command: \(words.joined(separator: " "))")
        }
        return words.contains("quietly") ? [] : cluster.notes
    }

    private mutating func start(_ words: [String], voters: Int, learners: Int) {
        var settings = RaftSettings()
        if words.contains("lease") { settings.lease = LeaseSettings(promiseMilliseconds: 1000) }
        cluster = TestCluster(voters: voters, learners: learners, settings: settings)
        cluster.notes = []
    }

    /// `change 1 voters 2 3 learners 4`
    private mutating func change(_ words: [String]) throws {
        let lists = words.split(separator: "voters", maxSplits: 1)[1].split(
            separator: "learners", omittingEmptySubsequences: false)
        let numbers = lists.map { $0.compactMap(UInt64.init) }
        let id = UInt64(words[1]) ?? 0
        do {
            try cluster.change(id, voters: numbers[0], learners: numbers.count > 1 ? numbers[1] : [])
        } catch let error as ConfigurationChangeError {
            cluster.notes.append("\(id) refused: \(error)")
        }
    }

    private func members(_ node: TestNode) -> String {
        guard let raft = node.raft else { return "\(node.id) is down" }
        let configuration = raft.configuration
        func list(_ ids: [ReplicaID]) -> String {
            ids.isEmpty ? "-" : ids.map(\.description).joined(separator: ",")
        }
        let isCommitted = raft.isConfigurationCommitted ? "committed" : "not committed"
        let outgoing = configuration.isJoint ? " outgoing \(list(configuration.outgoing))" : ""
        return "\(node.id) voters \(list(configuration.voters))\(outgoing) learners \(list(configuration.learners)), "
            + isCommitted
    }

    private func lease(of node: TestNode) -> String {
        guard let end = node.raft?.status.leaseEnd else { return "\(node.id) has no lease" }
        return "\(node.id) has a lease to \(end), now is \(cluster.now)"
    }

    private mutating func deliver(from: UInt64, to: UInt64) throws {
        let due = cluster.messages.filter { $0.from.rawValue == from && $0.to.rawValue == to }
        cluster.messages.removeAll { $0.from.rawValue == from && $0.to.rawValue == to }
        for message in due { try cluster.deliver(message) }
    }

    private mutating func drop(_ numbers: [UInt64]) {
        cluster.messages.removeAll {
            numbers.isEmpty || $0.from.rawValue == numbers[0] && $0.to.rawValue == numbers[1]
        }
    }

    private mutating func propose(_ id: UInt64, _ text: String) throws {
        do {
            try cluster.propose(id, text)
        } catch let error as ProposalError {
            cluster.notes.append("\(id) refused: \(error)")
        }
    }

    /// The leader `from` hands over to `to`.
    private mutating func hand(_ numbers: [UInt64]) {
        guard let term = cluster[numbers[0]].raft?.term else { return }
        cluster.messages.append(
            Message(from: ReplicaID(numbers[0]), to: ReplicaID(numbers[1]), term: term, body: .timeoutNow))
    }

    private func status(_ node: TestNode) -> [String] {
        guard let status = node.raft?.status else { return ["\(node.id) is down"] }
        let log = "log \(status.snapshot)..\(status.lastLog) durable \(status.durableIndex)"
        let line = "\(node.id) \(status.role) term \(status.term) \(log) commit \(status.commitIndex)"
        return [line]
            + status.followers.map {
                "    \($0.id) \($0.state) match \($0.match) next \($0.next) inflight \($0.inflightAppends)"
            }
    }
}
