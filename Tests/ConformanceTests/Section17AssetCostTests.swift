import Crypto
import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("17 Assets: what they take, and what they cost")
    struct Section17AssetCostTests {
        private static func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
        }

        private static func set(_ limits: JSONValue, in space: Space) async throws {
            _ = try await space.home.admin("PATCH", "limits?container=\(space.container)", limits)
        }

        /// Bytes of assets of a database, which equal a recount.
        private static func assetBytes(_ space: Space) async throws -> Int64? {
            let usage = try await space.home.admin("GET", "usage?container=\(space.container)&verify=true")
            let database = try #require(
                usage["databases"]?.array?.first { $0["scope"]?.string == space.database }, "\(usage.text)")
            #expect(database["recount"]?["isEqual"] == true, "\(database.text)")
            return database["assetBytes"]?.integer
        }

        /// Tries to save a record with a file; the code of what was wrong.
        private static func code(_ name: String, _ file: JSONValue, in space: Space) async throws -> String? {
            try await space.modify(Space.operation("create", name, ["file": ["value": file]])).code
        }

        @Test(
            "a quota is exact to the byte, each reference counts, and a deletion makes room", arguments: Door.allCases)
        func quota(door: Door) async throws {
            let own = try await Space.own(door, schema: Schemas.standard)
            try await Self.set(
                ["assetBytes": 1_000, "assetBytesPerUser": 0, "assetBytesMax": 1_000, "userAssetBytes": 1_000], in: own)
            for space in [own, own.inPublic] {
                let (large, small) = (try await space.upload(Self.bytes(600)), try await space.upload(Self.bytes(200)))
                let one = try await space.upload([1])
                #expect(try await Self.code("a", large, in: space) == nil)
                #expect(try await Self.code("b", small, in: space) == nil)
                #expect(try await Self.code("c", small, in: space) == nil)
                #expect(try await Self.assetBytes(space) == 1_000)
                #expect(try await Self.code("d", one, in: space) == "QUOTA_EXCEEDED")
                // What stays as large is not growth.
                #expect(try await Self.code("e", try await space.upload([]), in: space) == nil)
                try await space.delete("b")
                let over = try await space.upload(Self.bytes(201, 1))
                #expect(try await Self.code("f", over, in: space) == "QUOTA_EXCEEDED")
                #expect(try await Self.code("g", small, in: space) == nil)
                #expect(try await Self.code("h", one, in: space) == "QUOTA_EXCEEDED")
                #expect(try await Self.assetBytes(space) == 1_000)
            }
        }

        @Test("uploads and downloads count as the month's transfer")
        func transfer() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard).inPublic
            func carried() async throws -> Int64 {
                let answer = try await space.home.admin("GET", "limits/explain?container=\(space.container)")
                let rule = answer["rules"]?.array?.first { $0["name"] == "transferBytesPerMonth" }
                return try #require(rule?["used"]?.integer)
            }
            let url = try await space.uploadURL()
            let start = try await carried()
            let file = try #require(
                try await space.send("POST", url: url, Self.bytes(500_000)).json["singleFile"])
            let uploaded = try await carried()
            #expect((500_000..<510_000).contains(uploaded - start), "\(uploaded - start)")
            try await space.save("a", ["file": ["value": file]])
            let download = try await space.downloadURL("a")
            let before = try await carried()
            _ = try await space.send("GET", url: download, headers: [("Range", "bytes=100000-399999")])
            let after = try await carried()
            #expect((300_000..<310_000).contains(after - before), "\(after - before)")
            _ = try await space.send("HEAD", url: download)
            #expect(try await carried() - after < 10_000)
            // What a user's private records carry is not held to it.
            let own = try await space.changed { $0.database = "private" }.upload(Self.bytes(400_000))
            #expect(own["receipt"] != nil)
            #expect(try await carried() - after < 10_000)
        }

        @Test("uploads spend the container's rate")
        func rate() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard)
            let url = try await space.uploadURL()
            try await Self.set(
                ["requestsPerSecond": 1, "requestsPer100kUsers": 0, "requestsPerSecondMax": 1], in: space)
            // All at once, so that little is let through for the time that they take.
            let refused = try await withThrowingTaskGroup(of: Answer.self) { uploads in
                for _ in 0..<40 { uploads.addTask { try await space.send("POST", url: url, [1]) } }
                return try await uploads.reduce(into: [Answer]()) { if $1.status != 200 { $0.append($1) } }
            }
            #expect(refused.count >= 10)
            for answer in refused { expectFailure(answer, 429, "THROTTLED") }
        }

        @Test("5, 7: of a file that is too large nothing remains, and equal files are one on the disk")
        func disk() async throws {
            let node = try await SingleNode.start(shards: 1)
            let home = try await Home.make(on: MemoryService(node: node), schema: Schemas.standard)
            let space = try await Space(in: home).inPublic
            try await Self.set(["assetUploadBytes": 1_000_000, "assetUploadBytesMax": 1_000_000], in: space)
            let url = try await space.uploadURL()
            expectFailure(try await space.send("POST", url: url, Self.bytes(1_000_001)), 413, "BAD_REQUEST")
            let cut = [("Content-Length", "900000")]
            expectFailure(try await space.send("POST", url: url, Self.bytes(800_000), headers: cut), 400, "BAD_REQUEST")
            #expect(try node.assetFiles().isEmpty)
            let bytes = Self.bytes(1_000_000)
            for name in ["a", "b"] { try await space.save(name, file: bytes) }
            let files = try node.assetFiles()
            #expect(files.count == 1, "\(files)")
            #expect(try #require(files.first).size >= 1_000_000)
            let digest = SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            #expect(try #require(files.first).path.hasSuffix("/\(digest.prefix(2))/\(digest.dropFirst(2))"))
            #expect(try await Self.assetBytes(space) == 2_000_000)
            try await node.stop()
        }
    }
}
