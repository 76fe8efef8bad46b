/// What a node of a cluster is at.
struct NodeStatus: Hashable, Sendable {
    enum State: String, Hashable, Sendable {
        /// It serves: every group that it holds has a leader.
        case ready
        /// It runs, and cannot serve yet.
        case starting
        /// It does not run.
        case stopped
        /// It should be there and does not answer.
        case unreachable
    }

    var node: ClusterFile.Node
    /// The process on this machine that `cluster up` started.
    var pid: Int32?
    var state: State
    /// The shards that it leads, ascending.
    var leads: [Int]

    /// What to make of an answer to `/health/ready`.
    static func state(health: Health, isRunning: Bool, isLocal: Bool) -> State {
        switch health {
        case .ready: .ready
        case .notReady: .starting
        case .refused: isRunning ? .starting : isLocal ? .stopped : .unreachable
        case .silent: .unreachable
        }
    }

    /// How a node answered when asked whether it is ready.
    enum Health: Hashable, Sendable {
        case ready
        case notReady
        /// Nobody listens.
        case refused
        /// No answer, or none that can be trusted.
        case silent
    }
}
