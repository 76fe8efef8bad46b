import RecordModel
import Testing

extension Conformance {
    /// Decision 0022: an extension, so the same cases for both doors say what it is.
    @Suite("Earlier versions of records")
    struct VersionTests {
        /// A user of a container of its own that keeps versions.
        private func space(_ door: Door, days: Int64 = 30, most: Int64 = 10) async throws -> Space {
            let space = try await Space.own(door, schema: Schemas.standard)
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)",
                ["recordVersionDays": .integer(days), "recordVersionsMax": .integer(most)])
            return space
        }

        private func titles(_ answer: Answer) -> [JSONValue?] {
            answer.json["versions"]?.array?.map { $0["record"]?.field("title") } ?? []
        }

        @Test(
            "a change and a deletion leave versions, the newest first, that tell who and when", arguments: Door.allCases
        )
        func versions(door: Door) async throws {
            for space in [try await space(door), try await space(door).inPublic, try await space(door).newZone()] {
                for title in ["one", "two", "three"] as [JSONValue] {
                    try await space.save("a", ["title": ["value": title]])
                }
                let newest = try await space.lookup("a")
                try await space.delete("a")
                let answer = try await space.versions("a")
                #expect(titles(answer) == ["three", "two", "one"])
                let first = try #require(answer.json["versions"]?.array?.first)
                #expect(first["isDeletion"] == true)
                #expect(first["record"] == newest)
                #expect(first["replaced"]?["userRecordName"]?.string == space.user)
                #expect(answer.json["moreComing"] == false)
                let page = try await space.versions("a", ["resultsLimit": 2])
                #expect(titles(page) == ["three", "two"])
                #expect(page.json["moreComing"] == true)
                let tag = try #require(page.json["versions"]?.array?.last?["record"]?["recordChangeTag"])
                #expect(titles(try await space.versions("a", ["before": tag])) == ["one"])
            }
        }

        @Test(
            "without the limit there are none, and lowering it takes effect for the next change",
            arguments: Door.allCases)
        func limits(door: Door) async throws {
            let space = try await space(door, most: 2)
            for title in ["one", "two", "three", "four"] as [JSONValue] {
                try await space.save("a", ["title": ["value": title]])
            }
            #expect(titles(try await space.versions("a")) == ["three", "two"])
            _ = try await space.home.admin(
                "PATCH", "limits?container=\(space.container)", ["recordVersionDays": .null])
            try await space.save("b", ["title": ["value": "one"]])
            try await space.save("b", ["title": ["value": "two"]])
            #expect(titles(try await space.versions("b")).isEmpty)
            expectFailure(try await space.versions("nothing"), 404, "NOT_FOUND", "no earlier versions")
            expectFailure(try await space.versions("a", ["before": "x"]), 400, "BAD_REQUEST", "before")
            expectFailure(try await space.versions("a", ["resultsLimit": 0]), 400, "BAD_REQUEST", "resultsLimit")
        }

        @Test("a refused batch leaves no version", arguments: Door.allCases)
        func atomic(door: Door) async throws {
            let space = try await space(door).newZone()
            try await space.save("a", ["title": ["value": "one"]])
            let answer = try await space.modify(
                [
                    Space.operation("forceUpdate", "a", ["title": ["value": "two"]]),
                    Space.operation("create", "a", ["title": ["value": "two"]]),
                ], ["atomic": true])
            #expect(answer.status == 400)
            #expect(titles(try await space.versions("a")).isEmpty)
        }

        @Test(
            "a version is saved again as any record is, its file with it, and conflicts as one",
            arguments: Door.allCases)
        func restored(door: Door) async throws {
            let space = try await space(door)
            try await space.save("a", file: Array("first".utf8))
            try await space.save("a", ["title": ["value": "two"]])
            let version = try #require(try await space.versions("a").json["versions"]?.array?.first?["record"])
            let tag = try #require(try await space.lookup("a")["recordChangeTag"]?.string)
            let fields = try #require(version["fields"]).with(["title": .null])
            try await space.save("a", ["title": ["value": "three"]])
            let late = try await space.modify(Space.operation("update", "a", fields, tag: tag))
            #expect(late.code == "CONFLICT")
            let now = try #require(try await space.lookup("a")["recordChangeTag"]?.string)
            let saved = try await space.modify(Space.operation("update", "a", fields, tag: now))
            #expect(saved.code == nil, "\(saved.text)")
            #expect(try await space.download("a") == Array("first".utf8))
            #expect(try await space.lookup("a").field("title") == nil)
            #expect(titles(try await space.versions("a")) == ["three", "two", nil])
            let usage = try await space.home.admin("GET", "usage?container=\(space.container)&verify=true")
            #expect(
                usage["databases"]?.array?.allSatisfy { $0["recount"]?["isEqual"] == true } == true, "\(usage.text)")
        }

        @Test("who may not read the record, or another's private data, sees no version", arguments: Door.allCases)
        func permissions(door: Door) async throws {
            let space = try await space(door)
            try await space.save("a", ["title": ["value": "one"]])
            try await space.save("a", ["title": ["value": "two"]])
            let other = try await space.otherUser()
            expectFailure(try await other.versions("a"), 404, "NOT_FOUND")
            expectFailure(
                try await other.changed { $0.zone = "none" }.versions("a"), 404, "ZONE_NOT_FOUND")
        }
    }
}

extension Space {
    /// Earlier versions of a record.
    func versions(_ name: String, _ more: JSONValue = [:]) async throws -> Answer {
        let zoned: JSONValue = zone == nil ? [:] : ["zoneID": zoneID]
        return try await call(
            "records/versions", JSONValue.object([.init("recordName", .string(name))]).with(zoned).with(more))
    }
}
