import ArgumentParser

/// `zonekeeper cluster remove`
struct ClusterRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Move everything away from a node, and let it go.",
        discussion: """
            The node may be running or lost. When nothing is left on it, it ends by itself, and its folder can be deleted. Its \
            id is not given again. A node that every shard needs cannot go before another has come.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions

    @Argument(help: "The node's id.")
    var node: UInt64

    func run() async throws {
        try await options.withConnection { connection in
            try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
                "DELETE", "cluster/nodes", parameters: [("id", "\(node)")],
                isDone: { $0.isSettled && $0.removed.contains(Int64(node)) },
                progress: \.progress, result: "node \(node) is not in the cluster any more; its folder can be deleted")
        }
    }
}
