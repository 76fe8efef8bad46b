import Foundation
import RaftCore
import RecordModel
import Synchronization
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("Files are uploaded while nodes are killed")
    struct AssetKillTests {
        private static let files = Soak.count(16, soak: 1_000)
        private static let kills = Soak.count(3, soak: 60)

        /// Uploads, saves and reads files by any node.
        private struct Files: Sendable {
            let client: TestClient
            let uploads: String
            let modify: String
            let lookup: String

            init(_ cluster: ProcessCluster) {
                client = cluster.client
                uploads = cluster.path("assets/upload", database: "public")
                modify = cluster.path("records/modify", database: "public")
                lookup = cluster.path("records/lookup", database: "public")
            }

            /// The bytes of a file, 1 to 5 MB that no other has.
            static func bytes(_ number: Int) -> [UInt8] {
                var random = SplitMix64(seed: UInt64(number))
                let block = Data((0..<1_000).map { _ in UInt8.random(in: 0...255, using: &random) })
                var bytes = Data()
                for _ in 0..<Int.random(in: 1_000...5_000, using: &random) { bytes.append(block) }
                return Array(bytes)
            }

            /// Uploads a file by one node and saves it by the next; false where one of them did not acknowledge it.
            func save(_ number: Int, _ bytes: [UInt8], node: Int) async -> Bool {
                let asked = try? await client.post(
                    uploads, #"{"tokens": [{"recordType": "Note", "fieldName": "photo"}]}"#, node: node)
                guard let url = RebuildingClusterSuites.AssetTests.target(asked?.json["tokens"]?.array?.first?["url"]),
                    let file = try? await client.send("POST", url, body: bytes, node: node).json["singleFile"]
                else { return false }
                let value = String(decoding: file.serialized(), as: UTF8.self)
                let saved = try? await client.post(
                    modify,
                    #"{"operations": [{"operationType": "forceReplace", "record": {"recordName": "\#(number)", "#
                        + #""recordType": "Note", "fields": {"photo": {"value": \#(value)}}}}]}"#,
                    node: (node + 1) % client.nodeCount)
                return saved?.json["records"]?.array?.first?["recordChangeTag"]?.string != nil
            }

            func read(_ number: Int, node: Int) async throws -> [UInt8] {
                // A node that was killed may have no share of the rate for a moment.
                let read = try await awaitState("node \(node) answers") {
                    try await client.post(lookup, #"{"records": [{"recordName": "\#(number)"}]}"#, node: node)
                } until: {
                    $0.json["records"] != nil
                }
                let photo = read.json["records"]?.array?.first?["fields"]?["photo"]?["value"]
                let url = try #require(RebuildingClusterSuites.AssetTests.target(photo?["downloadURL"]), "\(read)")
                let answer = try await client.exchange("GET", url, body: nil, node: node)
                #expect(answer.status == 200)
                return answer.body
            }
        }

        private final class Tally: Sendable {
            let next = Atomic(0)
            let saved = Atomic(0)
            let refused = Atomic(0)
        }

        @Test("every file whose record was acknowledged is served by every node, byte for byte")
        func killed() async throws {
            let cluster = try await ProcessCluster.prepared()
            // The long form carries more in one run than a container may in a month, and leaves more unsaved than a
            // user may in a day: where a node is killed, a file is uploaded and its save fails.
            _ = try await cluster.client.admin(
                "PATCH", "limits?container=\(cluster.container)",
                #"{"transferBytesPerMonth": 1000000000000, "unsavedAssetBytes": 1000000000000}"#)
            let files = Files(cluster)
            let tally = Tally()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for uploader in 0..<4 {
                    group.addTask {
                        while true {
                            let number = tally.next.add(1, ordering: .relaxed).oldValue
                            guard number < Self.files else { return }
                            let bytes = Files.bytes(number)
                            var attempt = uploader
                            while await !files.save(number, bytes, node: attempt % 3) {
                                try Task.checkCancellation()
                                tally.refused.add(1, ordering: .relaxed)
                                attempt += 1
                                try #require(attempt < 1_000, "file \(number) cannot be saved")
                            }
                            tally.saved.add(1, ordering: .relaxed)
                        }
                    }
                }
                for kill in 0..<Self.kills {
                    try await awaitTrue("files are saved", within: .seconds(300)) {
                        tally.saved.load(ordering: .relaxed) >= kill * Self.files / Self.kills
                    }
                    let id = kill % 3 + 1
                    cluster.kill(id)
                    try cluster.start(id)
                    try await cluster.awaitReady(id)
                }
                try await group.waitForAll()
            }
            for number in 0..<Self.files {
                let bytes = Data(Files.bytes(number))
                for node in 0..<3 {
                    let read = try await files.read(number, node: node)
                    #expect(Data(read) == bytes, "file \(number) at node \(node + 1)")
                }
            }
            let refused = tally.refused.load(ordering: .relaxed)
            print("\(Self.files) files, \(Self.kills) kills, \(refused) attempts that had to be repeated")
            #expect(cluster.stop() == [])
        }
    }
}
