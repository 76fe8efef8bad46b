import ArgumentParser
import RecordModel

/// `zonekeeper cluster replace`
struct ClusterReplaceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replace",
        abstract: "Let a new node take the place of another, replica by replica.",
        discussion: """
            The old node may be running or lost. A node that only lost its folder needs no command: it is started again, and \
            fetches its data from the others.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions
    @OptionGroup var new: NewNodeOptions

    @Argument(help: "The id of the node that leaves.")
    var old: UInt64

    @Argument(help: "The id of the node that comes.")
    var node: UInt64

    func run() async throws {
        try await options.withConnection { connection in
            try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
                "POST", "cluster/replace", [("old", .integer(Int64(clamping: old)))] + new.members(id: node),
                isDone: { $0.isSettled && $0.removed.contains(Int64(old)) },
                progress: \.progress,
                result: "node \(node) has taken the place of node \(old), whose folder can be deleted")
        }
    }
}
