import Crypto
import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// The cases of `assets-subscriptions-sharing.md` 1.3, by their numbers. What needs three nodes is in ClusterTests.
    @Suite("17 Assets")
    struct Section17AssetTests {
        private static let photo = Array("not quite a JPEG\r\n".utf8)

        @Test("1: what was uploaded and saved is downloaded", arguments: Door.allCases)
        func downloaded(door: Door) async throws {
            for space in [try await Space(door), try await Space(door).inPublic, try await Space(door).newZone()] {
                let name = "a\(Home.unique())"
                let saved = try await space.save(name, file: Self.photo)
                let record = try await space.lookup(name)
                let file = try #require(record.field("file"))
                #expect(record["fields"]?["file"]?["type"] == "ASSETID")
                #expect(file["size"] == .integer(Int64(Self.photo.count)))
                #expect(Set(file.keys) == ["fileChecksum", "size", "downloadURL"])
                #expect(try await space.download(name) == Self.photo)
                #expect(saved.field("file")?["fileChecksum"] == file["fileChecksum"])
            }
        }

        @Test("1: queries and changes show assets as lookups do", arguments: Door.allCases)
        func everywhere(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await space.save("a", file: Self.photo)
            let found = try await space.query().item()
            let changed = try #require(try await space.changes()["records"]?.array?.first)
            for record in [found, changed] {
                let url = try #require(record.field("file")?["downloadURL"]?.string, "\(record.text)")
                #expect(try await space.send("GET", url: url).body == Self.photo)
            }
            let wide = try await space.changed { $0.zone = nil }.query(["zoneWide": true]).item()
            #expect(wide.field("file")?["downloadURL"] != nil)
        }

        @Test("an upload answers with five members, and the checksum is 21 bytes", arguments: Door.allCases)
        func dictionary(door: Door) async throws {
            let space = try await Space(door)
            let file = try await space.upload(Self.photo)
            let keys: Set = ["fileChecksum", "size", "receipt", "referenceChecksum", "wrappingKey"]
            #expect(Set(file.keys) == keys)
            #expect(file["fileChecksum"]?.string.flatMap(Base64.decode)?.count == 21)
            #expect(file["wrappingKey"]?.string.flatMap(Base64.decode)?.count == 16)
        }

        @Test("2: 200 tokens give 200 URLs, in their order; one more is refused", arguments: Door.allCases)
        func tokens(door: Door) async throws {
            let space = try await Space(door)
            let tokens = (0..<200).map { number -> JSONValue in
                ["recordName": .string("r\(number)"), "recordType": "Item", "fieldName": "file"]
            }
            let answer = try await space.call("assets/upload", ["tokens": .array(tokens)])
            #expect(try answer.items("tokens").map(\.name) == (0..<200).map { "r\($0)" })
            expectFailure(
                try await space.call("assets/upload", ["tokens": .array(tokens + [tokens[0]])]), 400, "BAD_REQUEST",
                "tokens: 201")
        }

        @Test("3: the record may be saved under another name than that of the token", arguments: Door.allCases)
        func otherName(door: Door) async throws {
            let space = try await Space(door)
            let url = try await space.uploadURL(more: ["recordName": "one"])
            let file = try #require(try await space.send("POST", url: url, Self.photo).json["singleFile"])
            try await space.save("another", ["file": ["value": file, "type": "ASSETID"]])
            #expect(try await space.download("another") == Self.photo)
            let unnamed = try await space.call(
                "assets/upload", ["tokens": [["recordType": "Item", "fieldName": "file"]]])
            #expect(try unnamed.item("tokens").name != "")
        }

        @Test("4: a file may be the body, a part of a form, or PUT", arguments: Door.allCases)
        func bodies(door: Door) async throws {
            let space = try await Space(door)
            let form =
                Array("--X\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\n".utf8)
                + Self.photo + Array("\r\n--X--\r\n".utf8)
            let answers = [
                try await space.send("POST", url: try await space.uploadURL(), Self.photo),
                try await space.send("PUT", url: try await space.uploadURL(), Self.photo),
                try await space.send(
                    "POST", url: try await space.uploadURL(), form,
                    headers: [("Content-Type", "multipart/form-data; boundary=X")]),
            ]
            let checksums = Set(answers.map { $0.json["singleFile"]?["fileChecksum"]?.string })
            #expect(checksums.count == 1 && checksums.first != .some(nil), "\(answers)")
            #expect(answers.allSatisfy { $0.json["singleFile"]?["size"] == .integer(Int64(Self.photo.count)) })
        }

        @Test("5: a byte too many is refused with 413, whatever the body's form", arguments: Door.allCases)
        func tooLarge(door: Door) async throws {
            let space = try await Space.own(door, schema: Schemas.standard)
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)",
                ["assetUploadBytes": 1_000, "assetUploadBytesMax": 2_000])
            let url = try await space.uploadURL()
            let (most, more) = ([UInt8](repeating: 1, count: 1_000), [UInt8](repeating: 1, count: 1_001))
            expectFailure(try await space.send("POST", url: url, more), 413, "BAD_REQUEST", "1000 bytes")
            let head = Array("--X\r\nContent-Disposition: form-data; name=\"files\"\r\n\r\n".utf8)
            let form = head + more + Array("\r\n--X--\r\n".utf8)
            let type = [("Content-Type", "multipart/form-data; boundary=X")]
            expectFailure(try await space.send("POST", url: url, form, headers: type), 413, "BAD_REQUEST")
            #expect(try await space.send("POST", url: url, most).status == 200)
            // Larger ones are announced.
            let announced = try await space.uploadURL(more: ["size": 1_001])
            #expect(try await space.send("POST", url: announced, more).status == 200)
            expectFailure(
                try await space.call(
                    "assets/upload", ["tokens": [["recordType": "Item", "fieldName": "file", "size": 2_001]]]),
                400, "BAD_REQUEST", "tokens[0].size")
        }

        @Test("6: an upload that was cut keeps nothing, and its URL can be used again")
        func cut() async throws {
            let space = try await Space(.memory)
            let url = try await space.uploadURL()
            let answer = try await space.send("POST", url: url, Self.photo, headers: [("Content-Length", "1000")])
            expectFailure(answer, 400, "BAD_REQUEST", "before it was whole")
            let form = Array("--X\r\nContent-Disposition: form-data; name=\"files\"\r\n\r\nabc".utf8)
            expectFailure(
                try await space.send(
                    "POST", url: url, form, headers: [("Content-Type", "multipart/form-data; boundary=X")]),
                400, "BAD_REQUEST", "last boundary")
            #expect(try await space.send("POST", url: url, Self.photo).status == 200)
        }

        @Test("7: equal files have equal checksums in a container, and others in another", arguments: Door.allCases)
        func checksums(door: Door) async throws {
            let space = try await Space(door)
            let other = try await space.otherUser()
            let stranger = try await Space.own(door, schema: Schemas.standard)
            let file = try await space.upload(Self.photo)
            #expect(try await other.upload(Self.photo)["fileChecksum"] == file["fileChecksum"])
            #expect(try await stranger.upload(Self.photo)["fileChecksum"] != file["fileChecksum"])
            try await space.save("a", ["file": ["value": file]])
            try await space.save("b", ["file": ["value": file]])
            try await space.delete("a")
            #expect(try await space.download("b") == Self.photo)
        }

        @Test("8: a file that was rereferenced outlives the record that it came from", arguments: Door.allCases)
        func rereference(door: Door) async throws {
            let space = try await Space(door)
            let zone = try await space.newZone()
            try await space.save("a", file: Self.photo)
            let wanted: JSONValue = [["recordName": "a", "fieldName": "file"]]
            let here = try await space.call("assets/rereference", ["assets": wanted]).item("assets")
            let there = try await space.call("assets/rereference", ["assets": wanted, "targetZoneID": zone.zoneID])
                .item("assets")
            try await space.save("b", ["file": ["value": here]])
            try await zone.save("c", ["file": ["value": there]])
            expectError(try await zone.saveItem("d", file: here), "BAD_REQUEST", "another database or zone")
            let checksum = try await space.lookup("a").field("file")?["fileChecksum"]
            #expect(try await space.lookup("b").field("file")?["fileChecksum"] == checksum)
            try await space.delete("a")
            #expect(try await space.download("b") == Self.photo)
            #expect(try await zone.download("c") == Self.photo)
        }

        @Test("8: what has no file is an item's NOT_FOUND", arguments: Door.allCases)
        func rereferenceErrors(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", ["title": ["value": "x"]])
            let items = try await space.call(
                "assets/rereference",
                [
                    "assets": [
                        ["recordName": "none", "fieldName": "file"], ["recordName": "a", "fieldName": "file"],
                        ["recordName": "a", "fieldName": "title"],
                    ]
                ]
            ).items("assets")
            #expect(items.map(\.code) == ["NOT_FOUND", "NOT_FOUND", "NOT_FOUND"])
        }

        @Test("9, 10: a record keeps a file by the dictionary that was read; another one does not get it so")
        func kept() async throws {
            try await Self.kept(.memory)
        }

        @Test("9, 10: likewise over HTTPS")
        func keptInCluster() async throws { try await Self.kept(.cluster) }

        private static func kept(_ door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: photo)
            let read = try #require(try await space.lookup("a").field("file"))
            try await space.save("a", ["file": ["value": read], "title": ["value": "changed"]])
            #expect(try await space.download("a") == photo)
            #expect(try await space.lookup("a").field("title") == "changed")
            try await space.save("b", ["title": ["value": "x"]])
            for name in ["b", "c"] {
                expectError(try await space.saveItem(name, file: read), "BAD_REQUEST", "fields.file.value.receipt")
            }
            expectError(
                try await space.modify(Space.operation("create", "d", ["file": ["value": read]])), "BAD_REQUEST")
            // Not after it was replaced, either.
            try await space.save("a", file: [1])
            expectError(try await space.saveItem("a", file: read), "BAD_REQUEST", "no such file")
        }

        @Test("11: an expired URL answers 410, and the record has another")
        func expired() async throws {
            let space = try await Space(.memory)
            try await space.save("a", file: Self.photo)
            let url = try await space.downloadURL("a")
            let upload = try await space.uploadURL()
            let service = try #require(space.home.service as? MemoryService)
            let (oldURL, oldUpload) = (service.node.expired(url), service.node.expired(upload))
            expectFailure(
                try await space.send("GET", url: try #require(oldURL)), 410, "BAD_REQUEST", "read the record again")
            expectFailure(
                try await space.send("POST", url: try #require(oldUpload), Self.photo), 410, "BAD_REQUEST",
                "assets/upload")
            #expect(try await space.download("a") == Self.photo)
        }

        @Test("12: ranges, and the answer's headers", arguments: Door.allCases)
        func ranges(door: Door) async throws {
            let space = try await Space(door)
            let bytes = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try await space.save("a", file: bytes)
            let url = try await space.downloadURL("a")
            let middle = try await space.send("GET", url: url, headers: [("Range", "bytes=300000-599999")])
            #expect(middle.status == 206 && middle.body == Array(bytes[300_000..<600_000]))
            #expect(middle.header("Content-Range") == "bytes 300000-599999/700000")
            let end = try await space.send("GET", url: url, headers: [("Range", "bytes=-5")])
            #expect(end.status == 206 && end.body == Array(bytes.suffix(5)))
            let none = try await space.send("GET", url: url, headers: [("Range", "bytes=700000-")])
            #expect(none.status == 416 && none.header("Content-Range") == "bytes */700000")
            let whole = try await space.send("GET", url: url)
            #expect(whole.body == bytes && whole.header("Content-Length") == "700000")
            let tag = try #require(whole.header("ETag"))
            for (ifRange, status) in [(tag, 206), ("\"other\"", 200), ("Mon, 01 Jan 2024 00:00:00 GMT", 200)] {
                let answer = try await space.send(
                    "GET", url: url, headers: [("Range", "bytes=0-0"), ("If-Range", ifRange)])
                #expect(answer.status == status)
            }
            let head = try await space.send("HEAD", url: url)
            #expect(head.status == 200 && head.body.isEmpty && head.header("Content-Length") == "700000")
            #expect(head.header("ETag") == tag)
            // RFC 9530: the digest of the whole file, whatever part of it is sent.
            let digest = "sha-256=:\(Base64.encode(Array(SHA256.hash(data: bytes)))):"
            for answer in [whole, middle, end, head] { #expect(answer.header("Repr-Digest") == digest) }
        }

        @Test("a browser saves what users uploaded: it neither shows nor runs it", arguments: Door.allCases)
        func harmless(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: Array("<script>alert(1)</script>".utf8))
            let url = try await space.downloadURL("a")
            let answer = try await space.send("GET", url: url)
            #expect(answer.header("Content-Type") == "application/octet-stream")
            #expect(answer.header("X-Content-Type-Options") == "nosniff")
            #expect(answer.header("Content-Disposition") == "attachment; filename=\"file\"")
            #expect(answer.header("Content-Security-Policy") == "default-src 'none'; sandbox")
            #expect(answer.header("Cache-Control")?.hasPrefix("private, max-age=3") == true)
            #expect(answer.header("Access-Control-Allow-Origin") == "*")
            let base = url.dropLast("/file".count)
            let names = [("my%20cat.jpg", "my cat.jpg"), ("..%2F..%2Fetc", "_.._etc"), ("a%22%0D%0Ab", "a___b")]
            for (name, saved) in names {
                let answer = try await space.send("GET", url: "\(base)/\(name)")
                #expect(answer.header("Content-Disposition") == "attachment; filename=\"\(saved)\"")
            }
        }

        @Test("13: desiredKeys without the field gives neither dictionary nor URL", arguments: Door.allCases)
        func desiredKeys(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: Self.photo)
            #expect(try await space.lookup("a", ["desiredKeys": ["title"]]).field("file") == nil)
        }

        @Test("15: an open URL works to its end, also when the record is gone", arguments: Door.allCases)
        func afterDeletion(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", file: Self.photo)
            let url = try await space.downloadURL("a")
            try await space.delete("a")
            #expect(try await space.send("GET", url: url).body == Self.photo)
        }

        @Test("an empty file is a file", arguments: Door.allCases)
        func empty(door: Door) async throws {
            let space = try await Space(door)
            let file = try await space.upload([])
            #expect(file["size"] == 0 && file["receipt"] != nil)
            try await space.save("a", ["file": ["value": file]])
            #expect(try await space.download("a") == [])
            let answer = try await space.send(
                "GET", url: try await space.downloadURL("a"), headers: [("Range", "bytes=0-")])
            #expect(answer.status == 416)
        }

        @Test("a list has a receipt, or the file that it keeps, for each member", arguments: Door.allCases)
        func lists(door: Door) async throws {
            // In development the first save makes type and field.
            let space = try await Space.own(door)
            let files = [try await space.upload([1], "files"), try await space.upload([2], "files")]
            try await space.save("a", ["files": ["value": .array(files)]])
            let field = try await space.lookup("a")["fields"]?["files"]
            #expect(field?["type"] == "ASSETID_LIST")
            let read = try #require(field?["value"]?.array)
            #expect(read.count == 2)
            let third = try await space.upload([3], "files")
            try await space.save("a", ["files": ["value": [read[1], third]]])
            let shown = try #require(try await space.lookup("a").field("files")?.array)
            var bytes: [[UInt8]] = []
            for file in shown {
                bytes.append(try await space.send("GET", url: file["downloadURL"]?.string ?? "").body)
            }
            #expect(bytes == [[2], [3]])
            let items = try await space.call(
                "assets/rereference", ["assets": [["recordName": "a", "fieldName": "files"]]]
            ).item("assets")
            try await space.save("b", ["files": ["value": items]])
            #expect(try await space.lookup("b").field("files")?.array?.count == 2)
        }

        @Test("records keep more files in one request than one answer of a shard has room for")
        func manyKept() async throws {
            // The zone's name is in each receipt: those of 11,000 files come to 7 MB.
            let space = try await Space.own(.memory).newZone(String(repeating: "z", count: 250))
            let file = try await space.upload([1], "files")
            let receipt: JSONValue = ["receipt": try #require(file["receipt"])]
            let kept: JSONValue = ["fileChecksum": try #require(file["fileChecksum"])]
            func list(_ dictionary: JSONValue) -> JSONValue {
                ["files": ["value": .array(Array(repeating: dictionary, count: 5_500))]]
            }
            for name in ["a", "b", "c", "d"] { try await space.save(name, list(receipt)) }
            try await space.save("e")
            // A lookup ends once so much was rendered, and not only once so much is in the answer.
            let found = try await space.lookup(["a", "b", "c", "d", "e"]).items()
            #expect(found.map(\.code) == [nil] + Array(repeating: "BAD_REQUEST", count: 4))
            #expect(try await space.lookup(["a", "e"]).items().map(\.code) == [nil, nil])
            let operations = ["a", "b"].map { Space.operation("forceUpdate", $0, list(kept)) }
            let items = try await space.modify(operations).items()
            #expect(items.map(\.code) == [nil, nil], "\(items.map(\.reason))")
            // A record by itself is in the answer also where it takes more than there is room for among others.
            let most: JSONValue = ["files": ["value": .array(Array(repeating: kept, count: 10_000))]]
            #expect(try await space.modify([Space.operation("forceUpdate", "a", most)]).items().map(\.code) == [nil])
            #expect(try await space.lookup(["a"]).items().map(\.code) == [nil])
        }
    }
}
