import RecordModel
import TestSupport
import Testing

extension Conformance {
    /// Long polls on both doors, streams in memory; streams over HTTPS are in `ClusterTests`.
    @Suite("Preferences: watch")
    struct PreferenceWatchTests {
        private func stream(_ space: Space, since token: String? = nil, _ more: [(String, String)] = []) async throws
            -> MemoryStream
        {
            var call = space.preferencesCall("watch", [:], method: "GET")
            // Base64 has characters that mean something in a URL.
            let escapes: [Character: String] = ["+": "%2B", "/": "%2F", "=": "%3D"]
            if let token {
                call.query.append(("syncToken", token.map { escapes[$0] ?? String($0) }.joined()))
            }
            call.headers = [("Accept", "text/event-stream")] + more
            return try await MemoryStream(call, of: space.home.service)
        }

        @Test("without a token a long poll answers at once, also of an empty store", arguments: Door.allCases)
        func begin(door: Door) async throws {
            let space = try await Space(door)
            let empty = try await space.preferences("watch")
            #expect(try empty.items("changes").isEmpty && empty.json["syncToken"]?.string != nil)
            _ = try await space.set([("a", 1)])
            #expect(try await space.preferences("watch").items("changes").count == 1)
        }

        @Test("a long poll ends with an empty page and the same token after its time", arguments: Door.allCases)
        func timeout(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.set([("a", 1)])
            let token = try await space.preferencesToken()
            let answer = try await space.preferences("watch", ["syncToken": .string(token), "timeout": 0])
            #expect(try answer.items("changes").isEmpty)
            #expect(answer.json["syncToken"]?.string == token && answer.json["moreComing"] == false)
            let begun = ContinuousClock.now
            _ = try await space.preferences("watch", ["syncToken": .string(token), "timeout": 1])
            #expect(ContinuousClock.now - begun >= .seconds(1))
        }

        @Test("a long poll answers when something is set or deleted, whichever node is asked", arguments: Door.allCases)
        func wake(door: Door) async throws {
            let space = try await Space(door)
            for round in 0..<6 {
                let token = try await space.preferencesToken()
                async let waiting = space.preferences("watch", ["syncToken": .string(token), "timeout": 9])
                let value: JSONValue = round % 3 == 2 ? .null : .integer(Int64(round))
                #expect(try await space.set([("a", value)]).status == 200)
                let answer = try await waiting
                let change = try answer.item("changes")
                #expect(change["key"] == "a" && (change["deleted"] == true) == value.isNull, "\(answer)")
            }
        }

        @Test("another user's changes wake nobody, and are not seen", arguments: Door.allCases)
        func others(door: Door) async throws {
            let space = try await Space(door)
            let other = try await space.otherUser()
            let token = try await space.preferencesToken()
            async let waiting = space.preferences("watch", ["syncToken": .string(token), "timeout": 1])
            _ = try await other.set([("secret", 1)])
            #expect(try await waiting.items("changes").isEmpty)
            let theirs = try await other.preferencesToken()
            for action in ["watch", "changes"] {
                let answer = try await space.preferences(action, ["syncToken": .string(theirs)])
                expectFailure(answer, 400, "BAD_REQUEST")
                #expect(answer.json["syncTokenExpired"] == nil)
            }
        }

        @Test("a token whose deletions are forgotten has expired, and the error says so", arguments: Door.allCases)
        func expired(door: Door) async throws {
            let space = try await Space(door)
            _ = try await space.set([("a", 1)])
            let token = try await space.preferencesToken()
            for round in 0..<5 {
                let keys = (0..<1_000).map { "r\(round)k\($0)" }
                _ = try await space.set(keys.map { ($0, true) })
                #expect(try await space.set(keys.map { ($0, .null) }).status == 200)
            }
            for action in ["watch", "changes"] {
                let answer = try await space.preferences(action, ["syncToken": .string(token)])
                expectFailure(answer, 400, "BAD_REQUEST", "expired")
                #expect(answer.json["syncTokenExpired"] == "tooOld", "\(answer)")
            }
        }

        @Test("faults of a long poll are named", arguments: Door.allCases)
        func faults(door: Door) async throws {
            let space = try await Space(door)
            for (body, place) in [
                (["timeout": "x"], "timeout"), (["timeout": -1], "timeout"), (["resultsLimit": 0], "resultsLimit"),
                (["syncToken": 7], "syncToken"), (["syncToken": "no token"], ""),
            ] as [(JSONValue, String)] {
                expectFailure(try await space.preferences("watch", body), 400, "BAD_REQUEST", place)
            }
            for (method, action) in [("GET", "set"), ("GET", "changes"), ("PUT", "watch"), ("DELETE", "usage")] {
                var call = space.preferencesCall(action, [:])
                call.method = method
                call.body = []
                expectFailure(try await space.send(call), 405, "BAD_REQUEST", action)
            }
            expectFailure(try await space.anonymous.preferences("watch"), 421, "AUTHENTICATION_REQUIRED")
        }

        @Test("a stream begins with everything and goes on with each change, in order; its tokens resume")
        func stream() async throws {
            let space = try await Space(.memory)
            _ = try await space.set([("a", 1), ("b", 2)])
            let stream = try await stream(space)
            #expect(stream.answer.status == 200)
            #expect(stream.answer.header("Content-Type")?.hasPrefix("text/event-stream") == true)
            for fault in Home.contract.faults(
                method: "GET", path: "/kv/1/\(space.container)/development/watch", status: 200,
                type: "text/event-stream", body: [])
            {
                Issue.record("\(fault)")
            }
            let first = try #require(await stream.next())
            #expect(first.name == "changes" && first.keys == ["a", "b"])
            #expect(first.id == first.json["syncToken"]?.string)
            _ = try await space.set([("c", 3)])
            let second = try #require(await stream.next())
            #expect(second.keys == ["c"])
            _ = try await space.set([("a", .null)])
            #expect(await stream.next()?.json["changes"]?.array?.first?["deleted"] == true)
            stream.close()
            // The same, by a browser that comes again: its header counts more than the address that it has from the
            // page.
            let resumed = try await self.stream(space, since: second.id, [("Last-Event-ID", first.id ?? "")])
            #expect(await resumed.next()?.keys == ["c", "a"])
            resumed.close()
        }

        @Test("a batch over several pages comes as several events, which say that more is coming")
        func pages() async throws {
            let space = try await Space(.memory)
            let token = try await space.preferencesToken()
            var call = space.preferencesCall("watch", [:], method: "GET")
            call.query.append(("resultsLimit", "2"))
            call.headers.append(("Last-Event-ID", token))
            let stream = try await MemoryStream(call, of: space.home.service)
            _ = try await space.set((0..<5).map { ("k\($0)", .integer(Int64($0))) })
            var seen: [[String]] = []
            var more: [JSONValue?] = []
            for _ in 0..<3 {
                let event = try #require(await stream.next())
                seen.append(event.keys)
                more.append(event.json["moreComing"])
            }
            #expect(seen == [["k0", "k1"], ["k2", "k3"], ["k4"]] && more == [true, true, false])
            stream.close()
        }

        @Test("a stream ends when its session does")
        func revoked() async throws {
            let space = try await Space(.memory)
            let user = try await space.home.makeUser()
            let token = try await space.home.admin(
                "POST", "tokens",
                ["kind": "session", "container": .string(space.container), "user": .string(user.name)])
            let other = space.changed { $0.session = token["secret"]?.string }
            let stream = try await stream(other)
            #expect(await stream.next()?.name == "changes")
            _ = try await space.home.admin("DELETE", "tokens?id=\(token["id"]?.string ?? "")")
            let end = try #require(await stream.next())
            #expect(end.name == "end" && end.json.code == "AUTHENTICATION_REQUIRED", "\(end)")
            #expect(await stream.next() == nil)
            // What collects refusals writes them once a second.
            var (records, after): ([JSONValue], Int64) = ([], 0)
            for _ in 0..<50_000 where records.isEmpty {
                let answer = try await space.home.admin("GET", "audit?log=requests&after=\(after)")
                let page = answer["records"]?.array ?? []
                if case .integer(let last)? = page.last?["sequence"] { after = last }
                // Names of other tests' containers may begin with this one's.
                records = page.filter {
                    let words = $0["subject"]?.string?.split { !($0.isLetter || $0.isNumber || $0 == ".") }
                    return $0["action"] == "kv/watch" && words?.contains(Substring(space.container)) == true
                }
            }
            #expect(records.count == 1, "the audit log tells of it")
        }

        @Test("a user has 32 watches on a node and no more; they take no place of other requests")
        func limit() async throws {
            let space = try await Space.own(.memory)
            _ = try await space.home.admin("PATCH", "limits?container=\(space.container)", ["concurrentRequests": 1])
            let token = try await space.preferencesToken()
            var streams: [MemoryStream] = []
            for _ in 0..<32 { streams.append(try await stream(space, since: token)) }
            #expect(streams.allSatisfy { $0.answer.status == 200 })
            let refused = try await stream(space, since: token)
            #expect(refused.answer.json.code == "TRY_AGAIN_LATER", "\(refused.answer)")
            #expect(refused.answer.json["limit"] == "watchesPerUser" && refused.answer.json["max"] == 32)
            // One request at a time is let in, and 32 wait: none of them is in the way.
            #expect(try await space.set([("a", 1)]).status == 200)
            for stream in streams { #expect(await stream.next()?.keys == ["a"]) }
            for stream in streams { stream.close() }
            let metrics = try await space.home.adminCall("GET", "metrics")
            let text = String(decoding: metrics.body, as: UTF8.self)
            #expect(text.contains("zonekeeper_watches_refused_total{limit=\"watchesPerUser\"} 1"), "\(text)")
        }

        @Test("a stream that cannot begin says why with a status")
        func streamFaults() async throws {
            let space = try await Space(.memory)
            _ = try await space.preferencesToken()
            let stream = try await stream(space, since: "no token")
            #expect(stream.answer.json.code == "BAD_REQUEST", "\(stream.answer)")
        }
    }
}
