import RecordModel
import TestSupport
import Testing

extension RebuildingClusterSuites {
    @Suite("Jobs, with nodes that are lost meanwhile")
    struct JobTests {
        private static let notes = 600

        /// Three nodes with notes in the public database, and which of them leads it.
        private static func prepared() async throws -> (cluster: ProcessCluster, leader: Int) {
            let cluster = try await ProcessCluster.prepared()
            for start in stride(from: 0, to: notes, by: 200) {
                let operations = (start..<start + 200).map { number in
                    #"{"operationType": "create", "record": {"recordType": "Note", "recordName": "n\#(number)", "#
                        + #""fields": {"number": {"value": \#(number)}}}}"#
                }
                let saved = try await cluster.client.post(
                    cluster.path("records/modify", database: "public"),
                    #"{"operations": [\#(operations.joined(separator: ","))]}"#, node: 0)
                try require(saved.status == 200, "\(saved)")
            }
            var leader: Int?
            try await awaitTrue("a node leads the public database") {
                for node in 0..<3 {
                    let asked = try await cluster.client.admin(
                        "GET", "leader?container=\(cluster.container)", node: node)
                    if asked["leader"] == .bool(true) { leader = node }
                }
                return leader != nil
            }
            return (cluster, try require(leader, "no leader"))
        }

        private static func begin(_ kind: String, _ cluster: ProcessCluster, node: Int) async throws -> JSONValue {
            try await cluster.client.admin(
                "POST", "jobs/\(kind)",
                #"{"container": "\#(cluster.container)", "query": {"recordType": "Note"}}"#, node: node)
        }

        /// A job at its end, as a node tells of it.
        private static func ended(
            _ job: JSONValue, _ cluster: ProcessCluster, node: Int
        ) async throws -> JSONValue {
            let id = try require(job["id"]?.string, "\(job)")
            return try await awaitState("the job ends") {
                try await cluster.client.admin("GET", "jobs/state?id=\(id)&wait=true", node: node)
            } until: {
                $0["state"]?.string != "running"
            }
        }

        @Test("the leader of the records is killed while a job deletes them on another node: it waits, and deletes all")
        func leaderKilled() async throws {
            let (cluster, leader) = try await Self.prepared()
            let (own, third) = ((leader + 1) % 3, (leader + 2) % 3)
            let begun = try await Self.begin("delete", cluster, node: own)
            cluster.kill(leader + 1)
            let job = try await Self.ended(begun, cluster, node: third)
            #expect(
                job["state"]?.string == "done" && job["records"] == .integer(Int64(Self.notes))
                    && job["left"] == .integer(0), "\(job)")
            let counted = try await Self.ended(Self.begin("count", cluster, node: third), cluster, node: own)
            #expect(counted["state"]?.string == "done" && counted["records"] == .integer(0), "\(counted)")
            #expect(cluster.stop() == [])
        }

        @Test("the job's own node is killed: the job is lost, and a second one deletes what the first one left")
        func ownNodeKilled() async throws {
            let (cluster, leader) = try await Self.prepared()
            let (own, third) = ((leader + 1) % 3, (leader + 2) % 3)
            let begun = try await Self.begin("delete", cluster, node: own)
            let id = try require(begun["id"]?.string, "\(begun)")
            cluster.kill(own + 1)
            let silent = try await cluster.client.send(
                "GET", "/admin/1/jobs/state?id=\(id)", body: nil, node: third,
                headers: [("Authorization", "Bearer \(ProcessCluster.administratorToken)")])
            #expect(silent.status == 503 && silent.json["serverErrorCode"]?.string == "TRY_AGAIN_LATER", "\(silent)")
            try cluster.start(own + 1)
            try await cluster.awaitReady(own + 1)
            let lost = try await Self.ended(begun, cluster, node: third)
            #expect(lost["state"]?.string == "lost", "\(lost)")
            let counted = try await Self.ended(Self.begin("count", cluster, node: third), cluster, node: own)
            let second = try await Self.ended(Self.begin("delete", cluster, node: own), cluster, node: leader)
            #expect(second["state"]?.string == "done", "\(second)")
            #expect(second["records"] == counted["records"], "\(counted), \(second)")
            let rest = try await Self.ended(Self.begin("count", cluster, node: own), cluster, node: third)
            #expect(rest["records"] == .integer(0), "\(rest)")
            #expect(cluster.stop() == [])
        }
    }
}
