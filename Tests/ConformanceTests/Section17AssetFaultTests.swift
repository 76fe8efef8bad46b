import Crypto
import Foundation
import RecordModel
import TestSupport
import Testing

extension Conformance {
    @Suite("17 Assets: rights and faults")
    struct Section17AssetFaultTests {
        private static let bytes = Array("some bytes".utf8)

        @Test("what is wrong with a dictionary is said, with the field", arguments: Door.allCases)
        func dictionaries(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            let file = try await space.upload(Self.bytes)
            let cases: [(JSONValue, String)] = [
                (file.with(["size": 9]), "fields.file.value.size: is 9"),
                (file.with(["fileChecksum": "AQAA"]), "fields.file.value.fileChecksum"),
                (file.with(["receipt": "AAAA"]), "not one that this server gave"),
                (file.with(["receipt": .string(String((file["receipt"]?.string ?? "").reversed()))]), "not one that"),
                (["size": 10], "a receipt is missing"), ("text", "expected type ASSETID"), (7, "expected type ASSETID"),
                (["fileChecksum": file["fileChecksum"] ?? .null, "size": 10], "no such file"),
            ]
            for (dictionary, reason) in cases {
                expectError(try await space.saveItem("a", file: dictionary), "BAD_REQUEST", reason)
            }
            expectError(try await zone.saveItem("a", file: file), "BAD_REQUEST", "another database or zone")
            expectError(try await space.inPublic.saveItem("a", file: file), "BAD_REQUEST", "another database or zone")
            expectError(
                try await space.otherUser().inPublic.saveItem("a", file: try await space.inPublic.upload(Self.bytes)),
                "BAD_REQUEST", "another user")
            try await space.save("a", ["file": ["value": file]])
            try await space.save("b", ["file": ["value": file]])
        }

        @Test("a receipt is for the type and the field that it was asked for", arguments: Door.allCases)
        func bound(door: Door) async throws {
            let space = try await Space.own(door)
            let file = try await space.upload(Self.bytes, "photo", type: "Place")
            let operations = [
                Space.operation("create", "a", ["photo": ["value": file]], type: "Person"),
                Space.operation("create", "b", ["cover": ["value": file]], type: "Place"),
                Space.operation("create", "c", ["photo": ["value": file]], type: "Place"),
            ]
            let items = try await space.modify(operations).items()
            #expect(items.map(\.code) == ["BAD_REQUEST", "BAD_REQUEST", nil], "\(items.map(\.text))")
            #expect(items[0].reason.contains("records of type 'Place'"))
            #expect(items[1].reason.contains("the field 'photo'"))
        }

        @Test("a receipt that has expired is refused")
        func oldReceipt() async throws {
            let space = try await Space(.memory)
            let service = try #require(space.home.service as? MemoryService)
            let text = try #require(try await space.upload(Self.bytes)["receipt"]?.string)
            let old = try #require(service.node.receipt(text))
            expectError(try await space.saveItem("a", file: ["receipt": .string(old)]), "BAD_REQUEST", "has expired")
            try await space.save("a", ["file": ["value": ["receipt": .string(text)]]])
        }

        @Test("a file that is sent back and that no node has any more is said to be gone, as one with a receipt is")
        func lost() async throws {
            let space = try await Space(.memory)
            let service = try #require(space.home.service as? MemoryService)
            let bytes = Array("bytes that will be lost".utf8)
            let file = try await space.upload(bytes)
            try await space.save("a", ["file": ["value": file]])
            let digits = SHA256.hash(data: bytes).map { String(UInt16($0) + 256, radix: 16).dropFirst() }
            let path = "\(service.node.dataPath)/assets/\(digits[0])/\(digits.dropFirst().joined())"
            try FileManager.default.removeItem(atPath: path)
            let kept: JSONValue = ["fileChecksum": file["fileChecksum"] ?? .null, "size": file["size"] ?? .null]
            for dictionary in [kept, file] {
                expectError(try await space.saveItem("a", file: dictionary), "BAD_REQUEST", "not there any more")
            }
        }

        @Test("51 MB are refused by their announced length, before they are read")
        func announcedLength() async throws {
            let space = try await Space(.memory)
            let length = [("Content-Length", "\(51 << 20)")]
            expectFailure(
                try await space.send("POST", url: try await space.uploadURL(), [1], headers: length), 413,
                "BAD_REQUEST", "larger than")
        }

        @Test("names that look like paths are names", arguments: Door.allCases)
        func paths(door: Door) async throws {
            let space = try await Space(door)
            for name in ["../../etc", "a/b", "a\0b", "..", ""] {
                let tokens: JSONValue = ["tokens": [["recordType": "Item", "fieldName": .string(name)]]]
                expectFailure(try await space.call("assets/upload", tokens), 400, "BAD_REQUEST", "fieldName")
                let types: JSONValue = ["tokens": [["recordType": .string(name), "fieldName": "file"]]]
                expectFailure(try await space.call("assets/upload", types), 400, "BAD_REQUEST", "recordType")
            }
            let file = "../../../x"
            let form = Array(
                "--X\r\nContent-Disposition: form-data; name=\"files\"; filename=\"\(file)\"\r\n\r\nabc\r\n--X--\r\n"
                    .utf8)
            let answer = try await space.send(
                "POST", url: try await space.uploadURL(more: ["recordName": .string(file)]), form,
                headers: [("Content-Type", "multipart/form-data; boundary=X")])
            let dictionary = try #require(answer.json["singleFile"], "\(answer)")
            try await space.save(file, ["file": ["value": dictionary]])
            #expect(try await space.download(file) == Array("abc".utf8))
        }

        @Test("a forged URL is refused, and one kind of URL is no other", arguments: Door.allCases)
        func forged(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: Self.bytes)
            let download = try await space.downloadURL("a")
            let upload = try await space.uploadURL()
            func ticket(_ url: String) -> String { String(url.split(separator: "/")[5]) }
            let changed = String(ticket(download).dropLast(3)) + "AAA"
            for path in [changed, ticket(upload), "AAAA", "..", "%00", String(repeating: "A", count: 6_000)] {
                let answer = try await space.send(Call("GET", "/assets/1/download/\(path)/file"))
                #expect([403, 404].contains(answer.status) && answer.code != nil, "\(path): \(answer)")
            }
            expectFailure(
                try await space.send(Call("GET", "/assets/1/download/\(ticket(upload))/x")), 403, "ACCESS_DENIED")
            var post = Call("POST", "/assets/1/upload/\(ticket(download))")
            post.body = Self.bytes
            expectFailure(try await space.send(post), 403, "ACCESS_DENIED")
            expectFailure(try await space.send("GET", url: upload), 405, "BAD_REQUEST")
            expectFailure(try await space.send("POST", url: download), 405, "BAD_REQUEST")
        }

        @Test("credentials of others on a URL neither help nor harm", arguments: Door.allCases)
        func credentials(door: Door) async throws {
            let space = try await Space(door)
            let headers = [("Authorization", "Bearer nonsense"), ("X-Apple-CloudKit-Request-KeyID", "x")]
            let answer = try await space.send("POST", url: try await space.uploadURL(), Self.bytes, headers: headers)
            let file = try #require(answer.json["singleFile"], "\(answer)")
            try await space.save("a", ["file": ["value": file]])
            let url = try await space.downloadURL("a")
            #expect(try await space.send("GET", url: url, headers: headers).body == Self.bytes)
            #expect(try await space.send("GET", url: url + "?ckAPIToken=nonsense").body == Self.bytes)
        }

        @Test("a URL is asked for a field of type ASSET by who may save such records", arguments: Door.allCases)
        func asking(door: Door) async throws {
            let space = try await Space(door)
            func ask(_ space: Space, _ type: String, _ field: String) async throws -> Answer {
                try await space.call(
                    "assets/upload", ["tokens": [["recordType": .string(type), "fieldName": .string(field)]]])
            }
            expectFailure(try await ask(space, "Item", "title"), 400, "BAD_REQUEST", "of type STRING")
            expectFailure(try await ask(space.inProduction, "Item", "none"), 400, "BAD_REQUEST", "no field 'none'")
            expectFailure(try await ask(space.inProduction, "None", "x"), 400, "BAD_REQUEST", "record type not found")
            expectFailure(try await ask(space.inPublic.anonymous, "Item", "file"), 403, "ACCESS_DENIED")
            expectFailure(
                try await space.call(
                    "assets/upload", ["zoneID": ["zoneName": "none"], "tokens": []]), 404, "ZONE_NOT_FOUND")
            expectFailure(try await space.call("assets/upload", [:]), 400, "BAD_REQUEST", "tokens")
            expectFailure(try await space.call("assets/rereference", [:]), 400, "BAD_REQUEST", "assets")
            let shared = space.changed { $0.database = "shared" }
            expectFailure(try await ask(shared, "Item", "file"), 501, "BAD_REQUEST")
        }

        private static let roles = """
            DEFINE SCHEMA
                RECORD TYPE Open (
                    file ASSET,
                    GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
                );
                RECORD TYPE Dropbox (
                    file ASSET,
                    GRANT CREATE TO "_icloud"
                );
            """

        @Test("who may read a record gets its URLs, and nobody else", arguments: Door.allCases)
        func roles(door: Door) async throws {
            let space = try await Space.own(door, schema: Self.roles).inPublic
            let other = try await space.otherUser()
            try await space.save("open", file: Self.bytes, type: "Open")
            for reader in [space, other, space.anonymous] { #expect(try await reader.download("open") == Self.bytes) }
            let dropped = try await space.modify(
                Space.operation(
                    "create", "dropped", ["file": ["value": try await space.upload(Self.bytes, type: "Dropbox")]],
                    type: "Dropbox"))
            #expect(dropped.code == nil && dropped.field("file")?["fileChecksum"] != nil, "\(dropped.text)")
            #expect(dropped.field("file")?["downloadURL"] == nil)
            let wanted: JSONValue = ["assets": [["recordName": "dropped", "fieldName": "file"]]]
            expectError(try await space.call("assets/rereference", wanted).item("assets"), "ACCESS_DENIED")
            // Somebody who knows the checksum has no file by that.
            let known = try #require(dropped.field("file"))
            expectError(
                try await other.modify(Space.operation("create", "mine", ["file": ["value": known]], type: "Open")),
                "BAD_REQUEST", "receipt")
        }

        @Test("a role that is revoked between read and download: the URL works to its end, and there is no other")
        func revoked() async throws { try await Self.revoked(.memory) }

        @Test("likewise over HTTPS")
        func revokedInCluster() async throws { try await Self.revoked(.cluster) }

        private static func revoked(_ door: Door) async throws {
            let schema = """
                DEFINE SCHEMA CREATE ROLE Reader;
                RECORD TYPE Kept (file ASSET, GRANT READ TO Reader, GRANT CREATE, READ TO "_creator", GRANT CREATE TO "_icloud");
                """
            let space = try await Space(in: Home.make(door, schema: schema)).inPublic
            try await space.save("a", file: bytes, type: "Kept")
            let user = try await space.home.makeUser()
            let reader = space.changed { $0.session = user.session }
            let member: JSONValue = [
                "container": .string(space.container), "environment": "development", "role": "Reader",
                "user": .string(user.name),
            ]
            expectError(try await reader.lookup("a"), "ACCESS_DENIED")
            _ = try await space.home.admin("POST", "roles/members", member)
            let url = try await reader.downloadURL("a")
            _ = try await space.home.admin(
                "DELETE",
                "roles/members?container=\(space.container)&environment=development&role=Reader&user=\(user.name)")
            #expect(try await reader.send("GET", url: url).body == bytes)
            expectError(try await reader.lookup("a"), "ACCESS_DENIED")
            let wanted: JSONValue = ["assets": [["recordName": "a", "fieldName": "file"]]]
            expectError(try await reader.call("assets/rereference", wanted).item("assets"), "ACCESS_DENIED")
            #expect(try await space.download("a") == bytes)
        }

        @Test("a conflict shows the server's record with its assets", arguments: Door.allCases)
        func conflict(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: Self.bytes)
            let item = try await space.modify(Space.operation("create", "a", ["title": ["value": "x"]]))
            expectError(item, "EXISTS")
            #expect(item["serverRecord"]?.field("file")?["downloadURL"] != nil)
        }

        @Test("a stale save that keeps a file is judged by its tag, then by the file", arguments: Door.allCases)
        func stale(door: Door) async throws {
            let space = try await Space(door)
            let first = try await space.save("a", file: Self.bytes)
            let read = try #require(try await space.lookup("a").field("file"))
            let fields: JSONValue = ["file": ["value": read], "title": ["value": "x"]]
            let second = try await space.save("a", file: [1])
            for kind in ["update", "replace"] {
                let item = try await space.modify(Space.operation(kind, "a", fields, tag: first.tag))
                expectError(item, "CONFLICT")
                #expect(item["serverRecord"]?.tag == second.tag, "\(item.text)")
                #expect(item["serverRecord"]?.field("file")?["size"] == 1, "\(item.text)")
                let current = Space.operation(kind, "a", fields, tag: second.tag)
                expectError(try await space.modify(current), "BAD_REQUEST", "no such file")
            }
            expectError(try await space.modify(Space.operation("forceUpdate", "a", fields)), "BAD_REQUEST")
            #expect(try await space.lookup("a").tag == second.tag)
            #expect(try await space.modify(Space.operation("forceDelete", "a")).code == nil)
            let late = Space.operation("update", "a", fields, tag: second.tag)
            expectError(try await space.modify(late), "NOT_FOUND")
        }

        @Test("a request with an Idempotency-Key that is repeated is answered as before", arguments: Door.allCases)
        func repeated(door: Door) async throws {
            let space = try await Space(door)
            let file = try await space.upload(Self.bytes)
            var call = space.request(
                "records/modify", ["operations": [Space.operation("create", "a", ["file": ["value": file]])]])
            call.headers.append(("Idempotency-Key", IdempotencyKeys.next()))
            let first = try await space.send(call).item()
            let second = try await space.send(call).item()
            #expect(first.code == nil && first.tag == second.tag && second.code == nil, "\(second.text)")
        }

        @Test("what a user uploads to a node and does not save is limited")
        func unsaved() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard)
            // The smallest file counts for 64 KiB.
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)", ["unsavedAssetBytes": 65_536])
            let file = try await space.upload(Self.bytes)
            let url = try await space.uploadURL()
            expectFailure(try await space.send("POST", url: url, [1]), 413, "QUOTA_EXCEEDED", "unsavedAssetBytes")
            #expect(try await space.otherUser().upload([1])["receipt"] != nil)
            // What is saved counts no more.
            try await space.save("a", ["file": ["value": file]])
            #expect(try await space.send("POST", url: url, [1]).status == 200)
        }

        @Test("a save that fails leaves its file unsaved, and so does a receipt of somebody else's in a save")
        func stillUnsaved() async throws {
            let space = try await Space.own(.memory, schema: Schemas.standard).inPublic
            let other = try await space.otherUser()
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)", ["unsavedAssetBytes": 65_536])
            try await space.save("taken")
            let file = try await space.upload(Self.bytes)
            let url = try await space.uploadURL()
            func expectFull() async throws {
                expectFailure(try await space.send("POST", url: url, [1]), 413, "QUOTA_EXCEEDED", "unsavedAssetBytes")
            }
            func operations(_ name: String) -> [JSONValue] {
                [Space.operation("create", name, ["file": ["value": file]]), Space.operation("create", nil)]
            }
            #expect(try await space.modify(operations("taken")).items().map(\.code) == ["EXISTS", nil])
            try await expectFull()
            #expect(try await other.modify(operations("new")).items().map(\.code) == ["BAD_REQUEST", nil])
            try await expectFull()
            #expect(try await space.modify(operations("new")).items().map(\.code) == [nil, nil])
            #expect(try await space.send("POST", url: url, [1]).status == 200)
        }
    }
}
