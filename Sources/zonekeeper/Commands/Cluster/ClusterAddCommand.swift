import ArgumentParser

/// `zonekeeper cluster add`
struct ClusterAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Take a new node into the cluster, which takes its part of the shards.",
        discussion: """
            The node is started with a configuration file that has all nodes, itself among them, an empty folder, and \
            certificates of its own (`zonekeeper certs create`). It may be started before or after. Its id must never have \
            been another node's.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions
    @OptionGroup var new: NewNodeOptions

    @Argument(help: "The node's id.")
    var node: UInt64

    func run() async throws {
        try await options.withConnection { connection in
            try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
                "POST", "cluster/nodes", new.members(id: node),
                isDone: { $0.isSettled && $0.nodes.contains { $0.id == Int64(node) && $0.hasJoined } },
                progress: \.progress, result: "node \(node) is in the cluster")
        }
    }
}
