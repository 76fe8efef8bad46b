import Foundation
import RecordModel
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite(
        "Real nodes whose disk is full",
        .enabled(if: SmallDisk.isPossible, "a disk that can be filled needs the right to mount one"))
    struct FullDiskProcessTests {
        private static let zones = (0..<12).map { "zone-\($0)" }

        /// What came back from one request for one record of a zone.
        private struct Outcome {
            var isDone: Bool
            var text: String
        }

        private static func makeZones(in cluster: ProcessCluster) async throws {
            let operations = zones.map { #"{"operationType": "create", "zone": {"zoneID": {"zoneName": "\#($0)"}}}"# }
            let answer = try await cluster.client.post(
                cluster.path("zones/modify"), #"{"operations": [\#(operations.joined(separator: ", "))]}"#, node: 0)
            try require(answer.status == 200, "\(answer.json)")
        }

        private static func modify(
            _ operation: String, _ zone: String, in cluster: ProcessCluster, node: Int
        ) async -> Outcome {
            let body = #"{"zoneID": {"zoneName": "\#(zone)"}, "operations": [\#(operation)]}"#
            guard let answer = try? await cluster.client.post(cluster.path("records/modify"), body, node: node) else {
                return Outcome(isDone: false, text: "no answer")
            }
            let failed = answer.json["records"]?.array?.contains { $0["serverErrorCode"] != nil } ?? true
            return Outcome(isDone: answer.status == 200 && !failed, text: "\(answer.json)")
        }

        private static func save(_ name: String, in zone: String, _ cluster: ProcessCluster, node: Int) async -> Outcome
        {
            let operation =
                #"{"operationType": "forceReplace", "record": {"recordName": "\#(name)", "recordType": "Note", "fields": "#
                + #"{"number": {"value": 1}, "text": {"value": "\#(String(repeating: "x", count: 20_000))"}}}}"#
            return await modify(operation, zone, in: cluster, node: node)
        }

        private static func delete(_ name: String, in zone: String, _ cluster: ProcessCluster, node: Int) async
            -> Outcome
        {
            let operation = #"{"operationType": "forceDelete", "record": {"recordName": "\#(name)"}}"#
            return await modify(operation, zone, in: cluster, node: node)
        }

        private static func isThere(_ name: String, in zone: String, _ cluster: ProcessCluster, node: Int) async -> Bool
        {
            let body = #"{"zoneID": {"zoneName": "\#(zone)"}, "records": [{"recordName": "\#(name)"}]}"#
            let answer = try? await cluster.client.post(cluster.path("records/lookup"), body, node: node)
            return answer?.status == 200 && answer?.json["records"]?.array?.first?["recordChangeTag"] != nil
        }

        @Test("one node alone refuses what grows and says why, reads and deletes, starts again, and is well by itself")
        func alone() async throws {
            let cluster = try ProcessCluster(nodeCount: 1)
            let disk = try SmallDisk(at: cluster.folder + "/data/node-1", megabytes: 200)
            try await cluster.startAll()
            try await cluster.prepare()
            try await Self.makeZones(in: cluster)
            for zone in Self.zones { #expect(await Self.save("kept", in: zone, cluster, node: 0).isDone) }
            let zone = Self.zones[0]
            #expect(await Self.save("unwanted", in: zone, cluster, node: 0).isDone)

            try disk.fill()
            var refusal = ""
            try await awaitTrue("the full disk is told") {
                refusal = await Self.save("refused", in: zone, cluster, node: 0).text
                return refusal.contains("the disk of node 1")
            }
            #expect(refusal.contains("nothing was done") && refusal.contains("TRY_AGAIN_LATER"), "\(refusal)")
            #expect(await Self.isThere("kept", in: zone, cluster, node: 0))
            try await awaitTrue("a record is deleted") {
                await Self.delete("unwanted", in: zone, cluster, node: 0).isDone
            }
            let status = try await cluster.client.admin("GET", "status")
            #expect(status["ready"] == .bool(false) && status["diskShort"] == .bool(true), "\(status)")
            let node = try await cluster.client.admin("GET", "cluster/health")["nodes"]?.array?.first
            #expect(node?["ready"] == .bool(false) && node?["diskShort"] == .bool(true))

            cluster.kill(1)
            try cluster.start(1)
            try await awaitTrue("the record is read") { await Self.isThere("kept", in: zone, cluster, node: 0) }
            #expect(await !Self.isThere("unwanted", in: zone, cluster, node: 0))
            #expect(await !Self.save("refused", in: zone, cluster, node: 0).isDone)

            // Killed and started with not a byte left, not even of what was kept back, it waits for some.
            try disk.fill()
            cluster.kill(1)
            try cluster.start(1)
            try await awaitState("a save is refused") {
                await Self.save("refused", in: zone, cluster, node: 0).text
            } until: {
                $0.contains("serverErrorCode")
            }

            try disk.empty()
            try await awaitState("a save is taken") {
                await Self.save("again", in: zone, cluster, node: 0)
            } until: {
                $0.isDone
            }
            try await cluster.awaitReady(1)
            for zone in Self.zones { #expect(await Self.isThere("kept", in: zone, cluster, node: 0)) }
        }

        @Test("of three nodes the others take over what the full one leads, and it follows again once there is space")
        func oneOfThree() async throws {
            let cluster = try ProcessCluster()
            let disk = try SmallDisk(at: cluster.folder + "/data/node-1", megabytes: 200)
            try await cluster.startAll()
            try await cluster.prepare()
            try await Self.makeZones(in: cluster)
            for zone in Self.zones { #expect(await Self.save("before", in: zone, cluster, node: 0).isDone) }

            try disk.fill()
            for round in 0..<3 {
                for zone in Self.zones {
                    try await awaitState("a save in \(zone) goes through node 2") {
                        await Self.save("during-\(round)", in: zone, cluster, node: 1)
                    } until: {
                        $0.isDone
                    }
                }
            }
            try await cluster.awaitLog(of: 1, "the disk is full")
            #expect(await Self.isThere("before", in: Self.zones[0], cluster, node: 0))

            try disk.empty()
            try await cluster.awaitReady(1)
            // It counts again: with another one gone, it is half of the majority.
            cluster.kill(3)
            for zone in Self.zones {
                try await awaitState("a save in \(zone) goes through node 1") {
                    await Self.save("after", in: zone, cluster, node: 0)
                } until: {
                    $0.isDone
                }
                #expect(await Self.isThere("during-2", in: zone, cluster, node: 0))
            }
        }
    }
}
