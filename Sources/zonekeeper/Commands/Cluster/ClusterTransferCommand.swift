import ArgumentParser
import RecordModel

/// `zonekeeper cluster transfer`
struct ClusterTransferCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfer",
        abstract: "Say which node leads a shard or the directory, or take the lead from a node.",
        discussion: """
            zonekeeper cluster transfer 3 --to 2              node 2 leads shard 3
            zonekeeper cluster transfer directory --to 2      node 2 leads the directory
            zonekeeper cluster transfer --all-from 1          node 1 leads nothing, the others do
            zonekeeper cluster transfer --all-from 1 --to 2   node 2 leads what node 1 led, where it has a replica

            It holds until it is said otherwise: a node that was away gets its lead back.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var follow: FollowOptions

    @Argument(help: "The number of a shard, or `directory`.")
    var group: GroupArgument?

    @Option(help: ArgumentHelp("The node that shall lead nothing.", valueName: "node"))
    var allFrom: UInt64?

    @Option(help: ArgumentHelp("The node that shall lead.", valueName: "node"))
    var to: UInt64?

    func validate() throws {
        if (group == nil) == (allFrom == nil) {
            throw ValidationError("a shard or `directory` is expected, or --all-from with a node, and not both")
        }
        if group != nil, to == nil { throw ValidationError("--to is missing: the node that shall lead") }
    }

    private var members: [(String, JSONValue)] {
        var members: [(String, JSONValue)] = []
        if let shard = group?.shard { members.append(("shard", .integer(Int64(shard)))) }
        if let allFrom { members.append(("from", .integer(Int64(clamping: allFrom)))) }
        if let to { members.append((allFrom == nil ? "node" : "to", .integer(Int64(clamping: to)))) }
        return members
    }

    private var result: String {
        let heir = to.map { "node \($0)" } ?? "the other nodes"
        if let allFrom { return "what node \(allFrom) led is led by \(heir) where they have a replica" }
        return "\(group?.shard.map { "shard \($0)" } ?? "the directory") is led by \(heir)"
    }

    func run() async throws {
        try await options.withConnection { connection in
            try await ClusterChange(connection: connection, follow: follow, isJSON: options.json).run(
                "POST", "cluster/leaders", members, isDone: \.areLeadersSettled, progress: \.leaderProgress,
                result: result)
        }
    }
}

/// A shard by its number, or the directory.
struct GroupArgument: ExpressibleByArgument, Hashable {
    /// Nil for the directory.
    var shard: Int?

    init?(argument: String) {
        if argument == "directory" { return }
        guard let number = Int(argument), number >= 0 else { return nil }
        shard = number
    }
}
