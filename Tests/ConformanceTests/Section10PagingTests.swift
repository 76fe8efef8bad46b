import RecordModel
import Testing

extension Conformance {
    @Suite("10 records/query: pages, zones and plans")
    struct Section10PagingTests {
        /// All pages of a query.
        private static func pages(
            _ space: Space, size: Int, _ filters: [JSONValue] = [], sort: [JSONValue] = [], _ more: JSONValue = [:]
        ) async throws -> [[String]] {
            var pages: [[String]] = []
            var marker: String?
            repeat {
                let limit: JSONValue = ["resultsLimit": .integer(Int64(size))]
                let answer = try await space.query(
                    filters, sort: sort,
                    limit.with(more).with(marker.map { ["continuationMarker": .string($0)] } ?? [:]))
                try #require(answer.status == 200, "\(answer)")
                pages.append(answer.names)
                marker = answer.json["continuationMarker"]?.string
                try #require(pages.count < 100, "the pages do not end")
            } while marker != nil
            return pages
        }

        private static func filled(_ space: Space) async throws {
            try await space.save("count", (0..<20).map { ("r\($0)", .integer(Int64($0 % 7))) })
        }

        @Test(
            "pages of every size hold each record once, and the last has no marker",
            arguments: Door.cases([1, 3, 7, 19, 20, 21]))
        func sizes(door: Door, size: Int) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let all = (0..<20).map { "r\($0)" }.sorted()
            for sort in [[], [["fieldName": "count"]], [["fieldName": "count", "ascending": false]]] as [[JSONValue]] {
                let pages = try await Self.pages(space, size: size, sort: sort)
                #expect(pages.flatMap { $0 }.sorted() == all, "\(sort.map(\.text))")
                #expect(pages.allSatisfy { $0.count <= size })
            }
        }

        @Test("pages follow the order of the sort keys", arguments: Door.allCases)
        func order(door: Door) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let names = try await Self.pages(space, size: 3, sort: [["fieldName": "count"]]).flatMap { $0 }
            let numbers = names.map { (Int($0.dropFirst()) ?? 0) % 7 }
            #expect(numbers == numbers.sorted())
        }

        @Test(
            "a record not written meanwhile is on exactly one page, though others come and go", arguments: Door.allCases
        )
        func whileWriting(door: Door) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let sort: JSONValue = ["fieldName": "count"]
            let first = try await space.query(sort: [sort], ["resultsLimit": 5])
            try await space.delete(first.names[0])
            try await space.save("before", ["count": ["value": -1]])
            var rest: [String] = []
            var marker = first.json["continuationMarker"]?.string
            while let next = marker {
                let page = try await space.query(
                    sort: [sort], ["resultsLimit": 5, "continuationMarker": .string(next)])
                rest += page.names
                marker = page.json["continuationMarker"]?.string
            }
            #expect((first.names + rest).sorted() == (0..<20).map { "r\($0)" }.sorted())
        }

        @Test("a marker is padded base64", arguments: Door.allCases)
        func base64(door: Door) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let marker = try #require(try await space.query(["resultsLimit": 1]).json["continuationMarker"]?.string)
            #expect(Base64.decode(marker) != nil && marker.utf8.count % 4 == 0)
        }

        @Test(
            "a marker that is not one is BAD_REQUEST", arguments: Door.cases(["bm90IG91cnM=", "not base64!", "AAAA"]))
        func badMarker(door: Door, marker: String) async throws {
            let answer = try await Space(door).query(["continuationMarker": .string(marker)])
            expectFailure(answer, 400, "BAD_REQUEST", "continuationMarker")
        }

        @Test("an empty or null marker is the first page", arguments: Door.cases([.null, ""] as [JSONValue]))
        func emptyMarker(door: Door, marker: JSONValue) async throws {
            let space = try await Space(door, with: "a")
            #expect(try await space.query(["continuationMarker": marker]).names == ["a"])
        }

        @Test("a marker of another query is BAD_REQUEST", arguments: Door.allCases)
        func otherQuery(door: Door) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let marker = try #require(try await space.query(["resultsLimit": 1]).json["continuationMarker"])
            let answer = try await space.query(
                [Space.filter("count", "EQUALS", 1)], ["continuationMarker": marker])
            expectFailure(answer, 400, "BAD_REQUEST", "continuationMarker")
        }

        @Test("zoneWide searches all zones of the private database", arguments: Door.allCases)
        func zoneWide(door: Door) async throws {
            let space = try await Space(door)
            try await space.save("a", ["count": ["value": 2]])
            try await space.newZone("z1").save("b", ["count": ["value": 3]])
            try await space.newZone("z2").save("c", ["count": ["value": 1]])
            #expect(try await space.query(["zoneWide": true]).names.sorted() == ["a", "b", "c"])
            #expect(try await space.query(["zoneWide": false]).names == ["a"])
            #expect(try await space.query(sort: [["fieldName": "count"]], ["zoneWide": true]).names == ["c", "a", "b"])
        }

        @Test("zoneWide is ignored when a zone is named", arguments: Door.allCases)
        func zoneWideWithZone(door: Door) async throws {
            let space = try await Space(door, with: "a")
            let zone = try await space.newZone("z1")
            try await zone.save("b")
            #expect(try await zone.query(["zoneWide": true]).names == ["b"])
        }

        @Test(
            "zone-wide order is merged over all zones, by pages of every size", arguments: Door.cases([1, 2, 5, 30]))
        func zoneWidePages(door: Door, size: Int) async throws {
            let space = try await Space(door)
            for number in 0..<4 {
                let zone = try await space.newZone("z\(number)")
                try await zone.save("count", (0..<5).map { ("r\(number)-\($0)", .integer(Int64($0 * 4 + number))) })
            }
            let names = try await Self.pages(
                space, size: size, sort: [["fieldName": "count", "ascending": false]], ["zoneWide": true]
            ).flatMap { $0 }
            let numbers = names.map { name in
                let parts = name.dropFirst().split(separator: "-").compactMap { Int($0) }
                return parts[1] * 4 + parts[0]
            }
            #expect(numbers == Array((0..<20).reversed()))
        }

        @Test("zoneWide means the one zone that there is in the public database", arguments: Door.allCases)
        func zoneWideInPublic(door: Door) async throws {
            let space = try await Space(door).inPublic
            let mark = "mark\(Home.unique())"
            try await space.save(mark, ["title": ["value": .string(mark)]])
            let filter = Space.filter("title", "EQUALS", .string(mark))
            #expect(try await space.query([filter], ["zoneWide": true]).names == [mark])
        }

        @Test("deviates: explain: true answers how the query was run", arguments: Door.allCases)
        func explain(door: Door) async throws {
            let space = try await Space(door)
            try await Self.filled(space)
            let answer = try await space.query([Space.filter("count", "EQUALS", 3)], ["explain": true])
            let explanation = try #require(answer.json["explanation"], "\(answer)")
            #expect(explanation.text.contains("count"), "\(explanation.text)")
            #expect(try await space.query().json["explanation"] == nil)
        }

        @Test(
            "syncToken with getCurrentSyncToken stays the same across pages while the marker advances",
            arguments: Door.allCases)
        func syncTokenOverPages(door: Door) async throws {
            let space = try await Space(door).newZone()
            try await Self.filled(space)
            var call = space.request(
                "records/query", ["zoneID": space.zoneID, "query": ["recordType": "Item"], "resultsLimit": 5])
            call.query.append(("getCurrentSyncToken", "true"))
            let first = try await space.send(call)
            let marker = try #require(first.json["continuationMarker"])
            call.body =
                ([
                    "zoneID": space.zoneID, "query": ["recordType": "Item"], "resultsLimit": 5,
                    "continuationMarker": marker,
                ] as JSONValue).serialized()
            let second = try await space.send(call)
            #expect(first.json["syncToken"] == second.json["syncToken"])
            #expect(second.json["continuationMarker"] != marker)
        }
    }
}
