import RecordModel
import Testing

extension Conformance {
    @Suite("Limits and quotas 4: what databases hold")
    struct QuotaTests {
        /// A container in the memory of this process, whose limits a case sets, and a user of it.
        private struct Place {
            var space: Space

            init(_ limits: JSONValue) async throws {
                space = try await Space.own(.memory, schema: Schemas.standard)
                try await set(limits)
            }

            func set(_ limits: JSONValue) async throws {
                _ = try await space.home.admin("PATCH", "limits?container=\(space.container)", limits)
            }

            /// A record with a text of some length is written.
            /// - Returns: the code of what was wrong; nil where it was saved.
            func write(
                _ name: String, _ length: Int, in space: Space? = nil, kind: String = "create"
            ) async throws -> String? {
                let text = String(repeating: "x", count: length)
                let operation = Space.operation(kind, name, ["plain": ["value": .string(text)]])
                let answer: Answer = try await (space ?? self.space).modify([operation])
                return try answer.json["records"] == nil ? answer.code : answer.item().code
            }

            /// Bytes and records of a database, which equal a recount.
            func usage(isPublic: Bool = false) async throws -> (bytes: Int64, records: Int64) {
                let usage = try await space.home.admin("GET", "usage?container=\(space.container)&verify=true")
                let database = usage["databases"]?.array?.first {
                    $0["scope"]?.string == (isPublic ? "public" : "private")
                        && (isPublic || $0["userRecordName"]?.string == space.user)
                }
                guard let database else { return (0, 0) }
                #expect(database["recount"]?["isEqual"] == true, "\(database.text)")
                #expect(database["recount"]?["bytes"] == database["bytes"], "\(database.text)")
                return (try #require(database["bytes"]?.integer), try #require(database["records"]?.integer))
            }

            /// Creates records of a few sizes, by turns in some zones, each until it is refused.
            /// - Returns: the names, with their zones; the last one is of what was refused at the end.
            func fill(_ zones: [Space], _ prefix: String) async throws -> [(name: String, zone: Space)] {
                var made: [(name: String, zone: Space)] = []
                for length in [2_000, 200, 0] {
                    for number in 0... {
                        let zone = zones[number % zones.count]
                        let name = "\(prefix)\(length)-\(100 + number)"
                        made.append((name, zone))
                        guard let code = try await write(name, length, in: zone) else { continue }
                        #expect(code == "QUOTA_EXCEEDED", "\(name)")
                        break
                    }
                    if length > 0 { made.removeLast() }
                }
                return made
            }
        }

        @Test("a user's zones, on several shards, share a quota that is used to the last record")
        func zones() async throws {
            let place = try await Place(["userBytes": 60_000])
            var zones = [place.space]
            for number in 0..<6 { zones.append(try await place.space.newZone("zone\(number)")) }
            let made = try await place.fill(zones, "a")
            let full = try await place.usage()
            let last = try #require(made.last)
            #expect(full.bytes <= 60_000 && full.records == Int64(made.count) - 1)
            // What is left is less than the smallest record takes, in whichever zone.
            for zone in zones { #expect(try await place.write(last.name, 0, in: zone) == "QUOTA_EXCEEDED") }

            // Nothing but growth is refused.
            let (name, zone) = made[0]
            #expect(try await place.write(name, 3_000, in: zone, kind: "forceUpdate") == "QUOTA_EXCEEDED")
            #expect(try await place.write(name, 2_000, in: zone, kind: "forceUpdate") == nil)
            #expect(try await zone.lookup(name).field("plain")?.string?.count == 2_000)
            #expect(try await place.write(name, 1_000, in: zone, kind: "forceUpdate") == nil)
            #expect(try await place.usage().bytes == full.bytes - 1_000)

            // What is deleted in one zone is room in the next, at once.
            for number in 1..<8 {
                try await made[number].zone.delete(made[number].name)
                let other = zones[(number + 3) % zones.count]
                #expect(try await place.write("b\(number)", 1_990, in: other) == nil, "\(number)")
            }
            let after = try await place.usage()
            #expect(after.bytes <= 60_000 && after.records == full.records)
        }

        @Test("limits that are set, raised and lowered again and again leave all of the room")
        func setAgain() async throws {
            let place = try await Place(["databaseBytes": 60_000, "databaseBytesPerUser": 0])
            let space = place.space.inPublic
            for number in 0..<18 { #expect(try await place.write("a\(number)", 2_000, in: space) == nil) }
            for number in 0..<17 { try await space.delete("a\(number)") }
            // No limit of quotas, and another version of the limits all the same.
            try await place.set(["concurrentRequests": 200])
            for number in 0..<17 { #expect(try await place.write("b\(number)", 2_000, in: space) == nil, "\(number)") }
            for round in 0..<25 {
                try await place.set(["databaseBytes": .integer(round % 3 == 1 ? 10_000 : 60_000)])
                try await space.delete("b\(round % 17)")
                let code = try await place.write("b\(round % 17)", 2_000, in: space)
                #expect(code == (round % 3 == 1 ? "QUOTA_EXCEEDED" : nil), "round \(round)")
            }
            try await place.set(["databaseBytes": 60_000])
            _ = try await place.fill([space], "c")
            let full = try await place.usage(isPublic: true)
            #expect(full.bytes <= 60_000 && full.bytes > 59_000, "\(full)")
            try await place.set(["databaseBytes": 72_000])
            #expect(try await place.write("more", 9_000, in: space) == nil)
            #expect(try await place.usage(isPublic: true).bytes > 68_000)
        }

        @Test("records are limited as well, and a lowered limit leaves no room before enough is deleted")
        func records() async throws {
            let place = try await Place(["userRecords": 8])
            var zones = [place.space]
            for number in 0..<3 { zones.append(try await place.space.newZone("zone\(number)")) }
            for number in 0..<8 { #expect(try await place.write("a\(number)", 9, in: zones[number % 4]) == nil) }
            #expect(try await place.write("b", 9, in: zones[1]) == "QUOTA_EXCEEDED")
            #expect(try await place.write("a1", 900, in: zones[1], kind: "forceReplace") == nil)
            try await place.set(["userRecords": 4])
            for number in 0..<4 {
                try await zones[number].delete("a\(number)")
                #expect(try await place.write("b", 9, in: zones[number]) == "QUOTA_EXCEEDED", "\(number)")
                #expect(try await place.write("b", 9, in: zones[3 - number]) == "QUOTA_EXCEEDED", "\(number)")
                #expect(try await place.write("a7", 1_000 + number, in: zones[3], kind: "forceReplace") == nil)
            }
            try await zones[0].delete("a4")
            #expect(try await place.write("b", 9, in: zones[2]) == nil)
            #expect(try await place.write("c", 9, in: zones[0]) == "QUOTA_EXCEEDED")
            #expect(try await place.usage().records == 4)
            try await place.set(["userRecords": 5])
            #expect(try await place.write("c", 9, in: zones[0]) == nil)
        }

        @Test("an atomic batch that does not fit saves nothing; elsewhere what fits is saved")
        func batches() async throws {
            let place = try await Place(["userRecords": 2])
            let operations = ["a", "b", "c"].map { Space.operation("create", $0) }
            let zone = try await place.space.newZone()
            let refused = try await zone.modify(operations)
            #expect(refused.code == "ATOMIC_ERROR", "\(refused)")
            #expect(try refused.items().map(\.code) == ["ATOMIC_ERROR", "ATOMIC_ERROR", "QUOTA_EXCEEDED"])
            let saved = try await place.space.modify(operations)
            #expect(try saved.items().map(\.code) == [nil, nil, "QUOTA_EXCEEDED"])
            #expect(try await place.usage().records == 2)
        }

        @Test("users' own records are within the quota, and reading goes on without them")
        func userRecords() async throws {
            let place = try await Place(["databaseRecords": 1])
            #expect(try await place.write("a", 9, in: place.space.inPublic) == nil)
            for _ in 0..<3 {
                let other = try await place.space.otherUser().inPublic
                #expect(try await other.get("users/caller").status == 200)
                #expect(try await other.lookup("a").code == nil)
            }
            #expect(try await place.usage(isPublic: true).records == 1)
            try await place.set(["databaseRecords": 2])
            let user = try await place.space.otherUser().inPublic
            #expect(try await user.lookup(user.user).code == nil)
            #expect(try await place.usage(isPublic: true).records == 2)
        }

        @Test("much at once takes no more rounds than little")
        func manyAtOnce() async throws {
            let place = try await Place(["userBytes": 4_000_000])
            let zones = [place.space, try await place.space.newZone()]
            let codes = try await withThrowingTaskGroup(of: String?.self) { tasks in
                for number in 0..<30 {
                    tasks.addTask { try await place.write("a\(number)", 120_000, in: zones[number % 2]) }
                }
                return try await tasks.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(codes == Array(repeating: nil, count: 30))
            #expect(try await place.usage().records == 30)
        }

        @Test("a month's transfer that is used up keeps public data from growing and nothing else")
        func transfer() async throws {
            let place = try await Place(["transferBytesPerMonth": 30_000, "transferBytesPerUser": 0])
            let space = place.space.inPublic
            var saved = 0
            while saved < 40, try await place.write("a\(saved)", 2_000, in: space) == nil { saved += 1 }
            #expect(saved > 1 && saved < 20, "\(saved)")
            expectFailure(
                try await space.modify([Space.operation("create", "b")]), 413, "QUOTA_EXCEEDED", "in a month")
            #expect(try await space.lookup("a0").code == nil)
            try await space.delete("a0")
            #expect(try await place.write("private", 2_000) == nil)
            try await place.set(["transferBytesPerMonth": 1_000_000])
            #expect(try await place.write("b", 10, in: space) == nil)
        }

        @Test("a repeat under its Idempotency-Key is answered as before also when the month's transfer is used up")
        func repeatedTransfer() async throws {
            let place = try await Place(["transferBytesPerUser": 0])
            let space = place.space.inPublic
            let headers = [("Idempotency-Key", IdempotencyKeys.next())]
            let body: JSONValue = ["operations": [Space.operation("create", "a")]]
            let first = try await space.call("records/modify", body, headers: headers).item()
            #expect(first.code == nil)
            try await place.set(["transferBytesPerMonth": 1])
            let again = try await space.call("records/modify", body, headers: headers).item()
            #expect(again.code == nil && again["recordChangeTag"] == first["recordChangeTag"], "\(again.text)")
            let fresh = [("Idempotency-Key", IdempotencyKeys.next())]
            expectFailure(
                try await space.call("records/modify", body, headers: fresh), 413, "QUOTA_EXCEEDED", "in a month")
        }

        @Test("what is refused uses up nothing of the month's transfer, whoever sends it")
        func refusedTransfer() async throws {
            let place = try await Place(["transferBytesPerMonth": 60_000, "transferBytesPerUser": 0])
            let space = place.space.inPublic
            for caller in [space, space.anonymous] {
                let unknown = try await caller.call(
                    "records/nothing", ["x": .string(String(repeating: "x", count: 90_000))])
                #expect(unknown.status == 404)
                let malformed = try await caller.call(
                    "records/modify", ["operations": .string(String(repeating: "x", count: 90_000))])
                #expect(malformed.status == 400)
                // Only a record that is there can be updated.
                #expect(try await place.write("absent", 90_000, in: caller, kind: "update") != nil)
            }
            #expect(try await place.write("a", 2_000, in: space) == nil)
        }

        @Test("callers without a session use a quarter of the month's transfer, and then it is they who are refused")
        func strangersTransfer() async throws {
            let place = try await Place(["transferBytesPerMonth": 60_000, "transferBytesPerUser": 0])
            let space = place.space.inPublic
            #expect(try await place.write("a", 8_000, in: space) == nil)
            // 80 kB are read, 15 kB of them count.
            for _ in 0..<10 { #expect(try await space.anonymous.lookup("a").code == nil) }
            expectFailure(
                try await space.anonymous.modify([Space.operation("create", "b")]), 413, "QUOTA_EXCEEDED",
                "callers without a session")
            #expect(try await place.write("b", 2_000, in: space) == nil)
            #expect(try await space.anonymous.lookup("b").code == nil, "reading goes on")
        }
    }
}
