import RecordModel

// Who is in the cluster, and where replicas are.
extension OpenAPIDocument {
    static let clusterOperations: [APIOperation] = [
        admin(.get, "cluster", "The cluster's nodes, and how far its groups are as they shall be", answer: overview),
        admin(.post, "cluster/nodes", "Add a node", request: .reference("NodeInput"), answer: overview),
        admin(
            .delete, "cluster/nodes", "Move everything away from a node, and then let it go", answer: overview,
            [APIParameter("id", .query, .integer(minimum: 1), "The node's id.", isRequired: true)]),
        admin(
            .post, "cluster/replace", "Let a new node take the place of another",
            request: .reference("ReplacementInput"), answer: overview),
        admin(
            .post, "cluster/leaders", "Say which node shall lead", request: .reference("LeadersInput"), answer: overview
        ),
    ]

    private static let overview = Shape.reference("ClusterOverview")

    private static let nodeMembers: [ShapeMember] = [
        .need("id", .integer(minimum: 1)), .need("peerHost", .text), .need("peerPort", .integer(minimum: 1)),
        .need("clientURL", .text, "Where clients reach it, such as https://db4.example.com:24000."),
    ]

    static let clusterShapes: [(name: String, description: String, shape: Shape)] = [
        ("NodeInput", "A node that is not in the cluster yet.", .request(nodeMembers)),
        (
            "ReplacementInput", "A node that leaves, and the new one that takes its place.",
            .request([.need("old", .integer(minimum: 1))] + nodeMembers)
        ),
        (
            "LeadersInput",
            "`node`, and `shard` unless it is to lead the directory; or `from`, and `to` unless it is all others.",
            .request([
                .may("node", .integer(minimum: 1)), .may("shard", .integer(minimum: 0)),
                .may("from", .integer(minimum: 1)), .may("to", .integer(minimum: 1)),
            ])
        ),
        (
            "ClusterOverview", "The map, and what of it is in force.",
            .answer([
                .need("clusterID", .text), .need("epoch", .integer(), "Grows with every change of the map."),
                .need("replicasPerShard", .integer()),
                .need("settled", .boolean, "Whether every group is as the map has it, and nobody is leaving."),
                .need("groupsToSettle", .integer()), .need("leadersToMove", .integer()),
                .need("nodes", .array(.reference("ClusterMember"))),
                .need("removed", .array(.integer()), "Ids that were in the cluster, and are not given again."),
                .need("groups", .array(.reference("GroupOverview"))),
            ])
        ),
        (
            "ClusterMember", "A node of the cluster.",
            .answer([
                .need("id", .integer()), .need("peerAddress", .text), .need("clientURL", .text),
                .need("leaving", .boolean), .need("joined", .boolean, "Whether it has come since it was added."),
                .need("replicas", .integer(), "Of shards, as they shall be."),
                .need("leads", .integer(), "Shards, now."),
            ])
        ),
        (
            "GroupOverview", "A shard, or the directory: who shall be in it, and who is.",
            .answer([
                .need("group", .integer()), .may("shard", .integer()), .need("preferredLeader", .integer()),
                .need("desired", .reference("GroupMembers")),
                .may("leader", .integer(), "Missing while there is none."),
                .may("present", .reference("GroupMembers")), .need("settled", .boolean),
                .may("waitsFor", .text, "What a change of members waits for."),
                .may(
                    "lag", .array(.answer([.need("node", .integer()), .need("missingEntries", .integer())])),
                    "Members that lack entries of the log."),
            ])
        ),
        (
            "GroupMembers",
            "Replicas; learners do not vote. `outgoing` are the voters before a change that is under way.",
            .answer([
                .need("voters", .array(.reference("ReplicaName"))), .may("outgoing", .array(.reference("ReplicaName"))),
                .need("learners", .array(.reference("ReplicaName"))),
            ])
        ),
        (
            "ReplicaName", "",
            .answer([
                .need("node", .integer()), .need("generation", .integer(), "Grows with each replica a node gets."),
            ])
        ),
    ]
}
