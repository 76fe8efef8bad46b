import RaftCore

/// Replicas of a counter and a network in memory.
struct CounterGroup {
    var replicas: [CounterReplica]
    var now = MonotonicTime(milliseconds: 1)

    init(voters: UInt64) {
        let members = Configuration(voters: (1...voters).map { ReplicaID($0) })
        replicas = members.voters.map { CounterReplica(id: $0, members: members, now: .zero) }
    }

    /// Adds a replica that knows nothing yet. The leader brings it up to date once it is a learner.
    mutating func join() {
        let id = ReplicaID(UInt64(replicas.count) + 1)
        replicas.append(CounterReplica(id: id, members: Configuration(voters: []), now: now))
    }

    /// Where proposals and reads go.
    var leader: Int? { replicas.firstIndex { $0.raft.role == .leader } }

    /// Lets time go by, with all messages delivered.
    mutating func run(milliseconds: UInt64) throws {
        for _ in 0..<milliseconds {
            now = now.adding(milliseconds: 1)
            for place in replicas.indices where replicas[place].wakeAt <= now { replicas[place].tick(now: now) }
            while let place = replicas.firstIndex(where: { !$0.outbox.isEmpty }) {
                let (receiver, bytes) = replicas[place].outbox.removeFirst()
                try replicas[Int(receiver.rawValue) - 1].receive(bytes, now: now)
            }
        }
    }
}
