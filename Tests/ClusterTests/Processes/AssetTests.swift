import Foundation
import NIOSSL
import RecordModel
import TestSupport
import Testing

extension RebuildingClusterSuites {
    @Suite("Assets, with nodes and connections that go away")
    struct AssetTests {
        private static let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

        /// The path and query of a URL that an answer had.
        static func target(_ url: JSONValue?) -> String? {
            guard let url = url?.string, let place = url.firstRange(of: "/assets/") else { return nil }
            return String(url[place.lowerBound...])
        }

        private func uploadTarget(_ cluster: ProcessCluster, node: Int) async throws -> String {
            let asked = try await cluster.client.post(
                cluster.path("assets/upload", database: "public"),
                #"{"tokens": [{"recordType": "Note", "fieldName": "photo"}]}"#, node: node)
            return try #require(Self.target(asked.json["tokens"]?.array?.first?["url"]))
        }

        private func downloadTarget(_ cluster: ProcessCluster, node: Int) async throws -> String {
            let read = try await cluster.client.post(
                cluster.path("records/lookup", database: "public"), #"{"records": [{"recordName": "a"}]}"#, node: node)
            let url = read.json["records"]?.array?.first?["fields"]?["photo"]?["value"]?["downloadURL"]
            return try #require(Self.target(url), "\(read)")
        }

        /// The answer to a save of the record with a file.
        private func save(
            _ name: String, _ file: JSONValue, _ cluster: ProcessCluster, node: Int
        ) async throws -> TestClient.Answer {
            let file = String(decoding: file.serialized(), as: UTF8.self)
            return try await cluster.client.post(
                cluster.path("records/modify", database: "public"),
                #"{"operations": [{"operationType": "create", "record": {"recordName": "\#(name)", "recordType": "Note", "#
                    + #""fields": {"photo": {"value": \#(file)}}}}]}"#, node: node)
        }

        private func download(_ cluster: ProcessCluster, node: Int) async throws -> [UInt8] {
            let target = try await downloadTarget(cluster, node: node)
            let answer = try await cluster.client.exchange("GET", target, body: nil, node: node)
            #expect(answer.status == 200)
            return answer.body
        }

        /// Whether a node leads the container's public database.
        private func leads(_ cluster: ProcessCluster, _ node: Int) async throws -> Bool {
            try await cluster.client.admin("GET", "leader?container=\(cluster.container)", node: node)["leader"]
                == .bool(true)
        }

        @Test("the leader is killed between upload and save: the next one saves, and all nodes serve the bytes")
        func leaderKilled() async throws {
            let cluster = try await ProcessCluster.prepared()
            var leader: Int?
            for node in 0..<3 {
                if try await leads(cluster, node) { leader = node }
            }
            let killed = try #require(leader)
            let others = (0..<3).filter { $0 != killed }
            let uploaded = try await cluster.client.send(
                "POST", try await uploadTarget(cluster, node: killed), body: Self.bytes, node: killed)
            let file = try #require(uploaded.json["singleFile"], "\(uploaded)")
            cluster.kill(killed + 1)
            try await awaitState("the record is saved") {
                try await save("a", file, cluster, node: others[0])
            } until: { answer in
                let code = answer.json["records"]?.array?.first?["serverErrorCode"]?.string
                return answer.status == 200 && (code == nil || code == "EXISTS")
            }
            for node in others { #expect(try await download(cluster, node: node) == Self.bytes) }
            try cluster.start(killed + 1)
            try await cluster.awaitReady(killed + 1)
            #expect(try await download(cluster, node: killed) == Self.bytes)
            #expect(cluster.stop() == [])
        }

        @Test("a day later URLs and receipts have expired on every node, and the record has another URL")
        func expired() async throws {
            let cluster = try await ProcessCluster.prepared()
            let uploaded = try await cluster.client.send(
                "POST", try await uploadTarget(cluster, node: 0), body: Self.bytes, node: 0)
            let file = try #require(uploaded.json["singleFile"], "\(uploaded)")
            let saved = try await save("a", file, cluster, node: 1)
            #expect(saved.json["records"]?.array?.first?["recordChangeTag"] != nil, "\(saved)")
            let (upload, download) = (
                try await uploadTarget(cluster, node: 0), try await downloadTarget(cluster, node: 0)
            )
            #expect(cluster.stop() == [])
            let later = try ShiftedClock.environment(in: cluster.folder, secondsAhead: 25 * 3_600)
            for id in cluster.ids { try cluster.start(id, environment: later) }
            for id in cluster.ids { try await cluster.awaitReady(id) }
            for node in 0..<3 {
                let read = try await cluster.client.exchange("GET", download, body: nil, node: node)
                #expect(read.status == 410, "\(String(decoding: read.body, as: UTF8.self))")
                let sent = try await cluster.client.send("POST", upload, body: Self.bytes, node: node)
                #expect(sent.status == 410, "\(sent)")
                let refused = try await save("b", file, cluster, node: node).json["records"]?.array?.first
                #expect(refused?["serverErrorCode"]?.string == "BAD_REQUEST")
                #expect(refused?["reason"]?.string?.contains("has expired") == true, "\(String(describing: refused))")
                #expect(try await self.download(cluster, node: node) == Self.bytes)
            }
            #expect(cluster.stop() == [])
        }

        /// An upload that goes on and on, a few bytes at a time, and says that it has many.
        private func slowUpload(
            _ cluster: ProcessCluster, _ target: String, size: Int, drop: Int
        ) async throws -> RawClient {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.certificateVerification = .none
            let head = "POST \(target) HTTP/1.1\r\nHost: a\r\nContent-Length: \(size)\r\n\r\n"
            let client = try await RawClient(port: cluster.clientPorts[0], tls: tls, saying: Array(head.utf8))
            // What is sent before would come before the head.
            try await client.awaitHandshake()
            client.drip([UInt8](repeating: 7, count: drop))
            return client
        }

        @Test("very many uploads of a user at once: as many as may be go on, the others are refused, nothing stays")
        func manyUploads() async throws {
            let cluster = try await ProcessCluster.prepared(nodeCount: 1)
            let incoming = "\(cluster.folder)/data/node-1/assets/incoming"
            func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: incoming) }
            let token = #"{"recordType": "Note", "fieldName": "photo"}"#
            let tokens = #"{"tokens": [\#([String](repeating: token, count: 200).joined(separator: ", "))]}"#
            var targets: [String] = []
            let requests = Soak.count(5, soak: 50)
            for _ in 0..<requests {
                let asked = try await cluster.client.post(
                    cluster.path("assets/upload", database: "public"), tokens, node: 0)
                for token in asked.json["tokens"]?.array ?? [] {
                    targets.append(try #require(Self.target(token["url"])))
                }
            }
            #expect(targets.count == 200 * requests)
            #expect(try files().isEmpty)
            let open = 16
            var clients: [RawClient] = []
            for target in targets.prefix(open) {
                clients.append(try await slowUpload(cluster, target, size: 40 << 20, drop: 5_000))
            }
            try await awaitState("they are under way") {
                try files().count
            } until: {
                $0 == open
            }
            let explained = try await cluster.client.admin(
                "GET", "limits/explain?container=\(cluster.container)&action=assets/upload&user=\(cluster.user)")
            #expect(explained["verdict"]?.string?.hasPrefix("refused by userUploads") == true, "\(explained)")
            let used = explained["rules"]?.array?.first { $0["name"]?.string == "containerUploads" }?["used"]
            #expect(used == .integer(Int64(open)), "\(explained)")
            let refused = try await withThrowingTaskGroup(of: Bool.self) { group in
                var refused = 0
                for (place, target) in targets.enumerated() {
                    if place >= 50, try await group.next() == true { refused += 1 }
                    group.addTask { [client = cluster.client] in
                        let answer = try await client.send("POST", target, body: [1], node: 0)
                        return answer.status == 429 && answer.json["serverErrorCode"]?.string == "THROTTLED"
                    }
                }
                for try await isRefused in group where isRefused { refused += 1 }
                return refused
            }
            #expect(refused == targets.count)
            #expect(try files().count == open)
            for client in clients { client.close() }
            try await awaitState("nothing is left") {
                try files()
            } until: {
                $0.isEmpty
            }
            let again = try await cluster.client.send("POST", targets[0], body: Self.bytes, node: 0)
            #expect(again.json["singleFile"]?["size"] == .integer(Int64(Self.bytes.count)), "\(again)")
            #expect(cluster.stop() == [])
        }

        @Test(
            "a disk that becomes full in the middle of an upload: it is refused, leaves nothing, and may be repeated",
            .enabled(if: SmallDisk.isPossible, "a disk that can be filled needs the right to mount one"))
        func fullDisk() async throws {
            let cluster = try ProcessCluster(nodeCount: 1)
            let data = cluster.folder + "/data/node-1"
            let disk = try SmallDisk(at: data, megabytes: 400)
            try await cluster.startAll()
            try await cluster.prepare()
            let target = try await uploadTarget(cluster, node: 0)
            func size() -> Int {
                let names = (try? FileManager.default.contentsOfDirectory(atPath: data + "/assets/incoming")) ?? []
                return names.compactMap { name in
                    let values = try? FileManager.default.attributesOfItem(atPath: "\(data)/assets/incoming/\(name)")
                    return values?[.size] as? Int
                }.reduce(0, +)
            }
            let client = try await slowUpload(cluster, target, size: 40 << 20, drop: 50_000)
            try await awaitState("a part of it is on the disk") {
                size()
            } until: {
                $0 > 500_000
            }
            try disk.fill()
            let answer = String(decoding: try await client.untilClosed(), as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 503") && answer.contains("TRY_AGAIN_LATER"), "\(answer)")
            #expect(answer.contains("the disk of this node has no room for files"), "\(answer)")
            #expect(size() == 0)
            try disk.empty()
            try await awaitState("it is taken") {
                try await cluster.client.send("POST", target, body: Self.bytes, node: 0)
            } until: {
                $0.status == 200
            }
            #expect(cluster.stop() == [])
        }

        @Test("an upload whose connection is cut leaves nothing, with a length and in chunks")
        func cut() async throws {
            let cluster = try await ProcessCluster.prepared()
            let target = try await uploadTarget(cluster, node: 0)
            let incoming = "\(cluster.folder)/data/node-1/assets/incoming"
            func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: incoming) }
            let size = String(Self.bytes.count, radix: 16)
            let chunk = Array("\(size)\r\n".utf8) + Self.bytes + Array("\r\n".utf8)
            for (header, body) in [
                ("Content-Length: 1000000", Self.bytes), ("Transfer-Encoding: chunked", chunk),
            ] {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.certificateVerification = .none
                let head = "POST \(target) HTTP/1.1\r\nHost: a\r\n\(header)\r\n\r\n"
                let client = try await RawClient(
                    port: cluster.clientPorts[0], tls: tls, saying: Array(head.utf8) + body)
                try await awaitState("the upload has begun") {
                    try files()
                } until: {
                    $0.count == 1
                }
                client.close()
                try await awaitState("the upload is gone") {
                    try files()
                } until: {
                    $0.isEmpty
                }
            }
            let again = try await cluster.client.send("POST", target, body: Self.bytes, node: 0)
            #expect(again.json["singleFile"]?["size"] == .integer(Int64(Self.bytes.count)), "\(again)")
            #expect(cluster.stop() == [])
        }
    }
}
