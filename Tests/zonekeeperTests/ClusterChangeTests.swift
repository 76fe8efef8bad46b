import ArgumentParser
import RecordModel
import ServiceClient
import Synchronization
import TestSupport
import Testing

@testable import zonekeeper

@Suite("Commands for nodes that come and go")
struct ClusterChangeTests {
    private static let addresses = ["--host", "db4", "--client-port", "24000", "--peer-port", "24100"]

    @Test(
        "are found by their names",
        arguments: [
            (["cluster", "add", "4"] + addresses, "ClusterAddCommand"),
            (["cluster", "add", "4", "--no-wait"] + addresses, "ClusterAddCommand"),
            (["cluster", "remove", "4", "--wait", "10m"], "ClusterRemoveCommand"),
            (["cluster", "replace", "3", "4"] + addresses, "ClusterReplaceCommand"),
            (["cluster", "transfer", "3", "--to", "2"], "ClusterTransferCommand"),
            (["cluster", "transfer", "directory", "--to", "2"], "ClusterTransferCommand"),
            (["cluster", "transfer", "--all-from", "1"], "ClusterTransferCommand"),
            (["cluster", "transfer", "--all-from", "1", "--to", "2"], "ClusterTransferCommand"),
        ])
    func known(arguments: [String], type: String) throws {
        #expect("\(Swift.type(of: try Zonekeeper.parseAsRoot(arguments)))" == type)
    }

    @Test(
        "refuse what is missing or does not go together before anything is sent",
        arguments: [
            ["cluster", "add", "4"], ["cluster", "add"] + addresses,
            ["cluster", "add", "4", "--host", "0.0.0.0", "--client-port", "1", "--peer-port", "2"],
            ["cluster", "add", "4", "--host", "h", "--client-port", "0", "--peer-port", "2"],
            ["cluster", "remove"], ["cluster", "remove", "x"], ["cluster", "replace", "3"] + addresses,
            ["cluster", "transfer"], ["cluster", "transfer", "3"], ["cluster", "transfer", "x", "--to", "2"],
            ["cluster", "transfer", "3", "--to", "2", "--all-from", "1"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: (any Error).self) { try Zonekeeper.parseAsRoot(arguments) }
    }

    private static func overview(_ groups: String, nodes: String = "", settled: Bool = false) throws -> ClusterOverview
    {
        let text =
            #"{"clusterID": "c", "epoch": 4, "replicasPerShard": 3, "settled": \#(settled), "nodes": [\#(nodes)], "#
            + #""removed": [9], "groups": [\#(groups)]}"#
        return try ClusterOverview(JSONParser.parse(Array(text.utf8)))
    }

    private static let settled = #"{"group": 0, "preferredLeader": 1, "leader": 1, "settled": true, "lag": []}"#

    @Test("Progress says how many groups are done, and what the next one waits for")
    func progress() throws {
        let open =
            #"{"group": 3, "shard": 2, "preferredLeader": 4, "leader": 1, "settled": false, "#
            + #""waitsFor": "1 of 1 new replicas have not caught up yet", "lag": [{"node": 2, "missingEntries": 1}, "#
            + #"{"node": 4, "missingEntries": 70}]}"#
        let overview = try Self.overview("\(Self.settled), \(open)")
        #expect(
            overview.progress
                == "1 of 2 groups have their members; shard 2: 1 of 1 new replicas have not caught up yet, node 4 "
                + "lacks 70 entries")
        #expect(
            overview.leaderProgress { $0.leader != $0.preferredLeader }
                == "1 of 2 groups are led as asked; shard 2 is still led by node 1")
        #expect(overview.removed == [9])
        let none = try Self.overview(#"{"group": 1, "shard": 0, "preferredLeader": 4, "settled": false}"#)
        #expect(none.progress.hasSuffix("shard 0 has no leader"))
    }

    @Test("A node that has not come, and one that is about to go, are named")
    func nodes() throws {
        func node(_ id: Int, leaving: Bool, joined: Bool) -> String {
            #"{"id": \#(id), "peerAddress": "h:1", "clientURL": "u\#(id)", "leaving": \#(leaving), "joined": \#(joined), "#
                + #""replicas": 2, "leads": 1}"#
        }
        let nodes = node(1, leaving: true, joined: true) + "," + node(4, leaving: false, joined: false)
        let overview = try Self.overview(Self.settled, nodes: nodes)
        #expect(
            overview.progress
                == "1 of 1 groups have their members; node 4 has not come yet; node 1 is about to go")
        let text = ClusterTable.text(overview, besides: [])
        #expect(text.contains("node 4 at u4 is in the cluster too") && text.contains("node 1 is being removed"))
        #expect(throws: CommandFailure.self) { try ClusterOverview(.object([])) }
    }

    @Test("a member that is not ready is a problem, and one that was removed is none")
    func problem() throws {
        let statuses = ([1, 2, 9] as [UInt64]).map { id in
            var status = NodeStatus(id: id, clientURL: "u\(id)", peerAddress: "h:\(id)")
            status.state = id == 1 ? .ready : .stopped
            return status
        }
        let led = try Self.overview(Self.settled)
        #expect(ClusterTable.problem(statuses, led) == "1 of 2 nodes is not ready; every group still has a leader")
        let leaderless = try Self.overview(#"{"group": 1, "shard": 0, "preferredLeader": 4, "settled": false}"#)
        #expect(
            ClusterTable.problem(statuses, leaderless) == "1 of 2 nodes is not ready; 1 of 1 groups have no leader")
        #expect(ClusterTable.problem(statuses, nil) == "2 of 3 nodes are not ready")
        #expect(ClusterTable.problem(Array(statuses.prefix(1)), nil) == nil)
    }

    /// Runs `cluster transfer` against a cluster whose groups are led as the text says, and does not change that.
    private func transfer(_ arguments: [String], _ groups: String) async throws {
        let answer: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { _, _ in
            ScriptedAnswer(body: #"{"epoch":4,"settled":true,"nodes":[],"removed":[],"groups":[\#(groups)]}"#)
        }
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            try await ScriptedServer.running(answer) { server in
                let more = ["--url", server.url, "--admin-token-file", secret, "--wait", "0.5"]
                try await ClusterTransferCommand.parse(arguments + more).run()
            }
        }
    }

    private static func group(_ shard: Int, leader: Int?, preferred: Int) -> String {
        #"{"group": \#(shard + 1), "shard": \#(shard), "preferredLeader": \#(preferred), "settled": true"#
            + (leader.map { #", "leader": \#($0)}"# } ?? "}")
    }

    @Test("a transfer waits for the groups that it is about, and not for those whose leader is away")
    func transferred() async throws {
        let away = [Self.settled, Self.group(1, leader: 1, preferred: 1), Self.group(2, leader: 1, preferred: 3)]
            .joined(separator: ", ")
        try await transfer(["1", "--to", "1"], away)
        try await transfer(["directory", "--to", "1"], away)
        try await transfer(["--all-from", "3"], away)
        try await transfer(["--all-from", "3", "--to", "1"], Self.group(2, leader: nil, preferred: 3))
        let unknown = await #expect(throws: CommandFailure.self) {
            try await transfer(["--all-from", "3"], Self.group(2, leader: nil, preferred: 1))
        }
        #expect(unknown?.message.contains("shard 2 is still led by nobody") == true, "\(unknown?.message ?? "")")
        for arguments in [["2", "--to", "3"], ["--all-from", "1", "--to", "3"]] {
            let error = await #expect(throws: CommandFailure.self) { try await transfer(arguments, away) }
            #expect(error?.message.contains("shard 2 is still led by node 1") == true, "\(error?.message ?? "")")
        }
    }

    @Test("a new node is asked whether it is there, and an id that is taken is answered with the way out")
    func check() async throws {
        let node = #"{"id":4,"peerAddress":"wrong:24100","clientURL":"https://wrong:24000","joined":false}"#
        let answer: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { _, _ in
            ScriptedAnswer(body: #"{"epoch":4,"settled":true,"nodes":[\#(node)],"removed":[9],"groups":[]}"#)
        }
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            try await ScriptedServer.running(answer) { server in
                let options = try ClientOptions.parse(
                    ["--url", server.url, "--admin-token-file", secret, "--timeout", "0"])
                func check(_ id: UInt64, _ more: String...) async throws {
                    let new = try NewNodeOptions.parse(
                        ["--host", "127.0.0.1", "--client-port", "1", "--peer-port", "2"] + more)
                    try await options.withConnection { try await new.check(id, by: $0) }
                }
                let taken = await #expect(throws: CommandFailure.self) { try await check(4) }
                #expect(taken?.message.contains("`zonekeeper cluster replace 4 NEWID") == true)
                let absent = await #expect(throws: CommandFailure.self) { try await check(5) }
                #expect(absent?.message.contains("Nothing was changed: start node 5") == true)
                try await check(5, "--unasked")
                try await check(9)
            }
        }
    }

    @Test("without a configuration file the nodes that the cluster names are asked")
    func statusWithoutFile() async throws {
        #expect(try Zonekeeper.parseAsRoot(["cluster", "status"]) is ClusterStatusCommand)
        let url = Mutex("")
        let answer: @Sendable (ScriptedRequest, Int) -> ScriptedAnswer = { request, _ in
            if request.target.hasPrefix("/health/ready") { return ScriptedAnswer(body: #"{"ready":true}"#) }
            if request.target.hasPrefix("/admin/1/status") {
                return ScriptedAnswer(
                    body:
                        #"{"replicas":[{"group":3,"role":"leader","waitingEffects":12,"waitingMatches":7,"#
                        + #""featureLevel":8,"appliedIndex":9},"#
                        + #"{"group":0,"role":"leader","featureLevel":8,"appliedIndex":7},"#
                        + #"{"group":5,"role":"learner","featureLevel":1,"appliedIndex":0},"#
                        + #"{"group":4,"role":"follower","waitingEffects":5,"featureLevel":8,"appliedIndex":1}],"#
                        + #""assets":{"fetching":1,"missing":4,"missingFiles":["aa","bb","cc","dd"]}}"#)
            }
            let node = #"{"id":7,"peerAddress":"h:1","clientURL":"\#(url.withLock { $0 })","joined":true}"#
            return ScriptedAnswer(
                body: #"{"epoch":4,"settled":true,"nodes":[\#(node)],"removed":[],"groups":[\#(Self.settled)]}"#)
        }
        try await TemporaryFolder.with { folder in
            let secret = folder + "/admin.token"
            try PrivateFile.create(secret, "s\n")
            try await ScriptedServer.running(answer) { server in
                url.withLock { $0 = server.url }
                let options = try ClientOptions.parse(["--url", server.url, "--admin-token-file", secret])
                let (statuses, overview) = try await options.withConnection(ClusterStatusCommand.state(on:))
                #expect(statuses.map(\.state) == [.ready] && statuses.map(\.leads) == [[2]])
                // A replica that is on its way there has no level yet.
                #expect(statuses.map(\.featureLevel) == [8])
                #expect(ClusterTable.problem(statuses, overview) == nil)
                #expect(ClusterTable.text(statuses).contains("7     ready  -    \(server.url)"))
                #expect(overview?.progress == "1 of 1 groups have their members")
                let text = ClusterTable.text(statuses)
                #expect(text.contains("node 7: 1 of its assets' files is on the way from other nodes"))
                #expect(text.contains("node 7: 12 effects on other shards wait to be delivered"), "\(text)")
                #expect(text.contains("node 7: 7 changes wait to be matched with subscriptions"), "\(text)")
                #expect(
                    text.contains("node 7: no node has 4 files that records name; SHA-256 aa, bb, cc, ..."), "\(text)")
                let json = try JSONParser.parse(ClusterTable.json(statuses))["nodes"]?.array?.first?["assets"]
                #expect(json?["missing"] == .integer(4) && json?["missingFiles"]?.array?.count == 4)
            }
        }
    }
}
