import RecordModel
import Testing

extension Matrix {
    /// The other doors: private data, preferences, zones, feeds and users, for callers of every sort, also those whose
    /// credentials are no good.
    struct Doors {
        var world: World
        var tally: Tally
        /// The author's.
        private var privateRecord = JSONValue.null
        private let zone: JSONValue

        init(_ world: World, _ tally: Tally) async throws {
            self.world = world
            self.tally = tally
            zone = ["zoneName": "vault", "ownerRecordName": .string(world.authorName)]
            try await plant()
        }

        /// A record in a custom zone and one in the default zone of the author's private database, and a preference.
        private mutating func plant() async throws {
            let kind = world.kinds[0].name
            let made = try await author(
                "zones/modify", ["operations": [Space.zoneOperation("create", "vault")]])
            try #require(made.status == 200, "\(made)")
            let fields: JSONValue = ["secret": ["value": .string(Secret.value(of: "private"))]]
            let operations: [JSONValue] = [Space.operation("create", "kept", fields, type: kind)]
            for zone in ["vault", "_defaultZone"] {
                let saved = try await author(
                    "records/modify", ["operations": .array(operations), "zoneID": ["zoneName": .string(zone)]])
                privateRecord = try saved.item()
                try #require(privateRecord.code == nil, "\(saved)")
            }
            let written = try await world.author.send(
                world.home, preferences("set"),
                ["writes": [["key": "theme", "value": .string(Secret.value(of: "preference"))]]])
            try #require(written.status == 200, "\(written)")
        }

        private func author(_ action: String, _ body: JSONValue) async throws -> Answer {
            try await world.author.send(world.home, world.path(action, "private"), body)
        }

        private func preferences(_ action: String) -> String {
            "/kv/1/\(world.home.container)/\(world.environment)/\(action)"
        }

        mutating func run(_ callers: [Caller]) async throws {
            for caller in callers {
                try await privateDoors(caller)
                try await preferenceDoors(caller)
                try await publicDoors(caller)
                try await userDoors(caller)
                try await sharedDoors(caller)
            }
            // Whatever the others tried, the author still has it, and gets it.
            let kept = try await author("records/lookup", ["records": [["recordName": "kept"]], "zoneID": zone])
            tally.cell(
                "the author's own record", wanted: [Secret.value(of: "private")],
                got: try kept.item().field("secret")?.string ?? "")
        }

        /// Secrets of the author in an answer to somebody else.
        private func leaks(_ answer: Answer, to caller: Caller) -> [String] {
            caller.name == "author" ? [] : Secret.owners(in: answer).sorted()
        }

        /// One request; what matters is the code of the whole, or of its only item.
        private mutating func knock(
            _ caller: Caller, _ path: String, _ body: JSONValue?, wanted: Set<String>, method: String = "POST",
            _ what: String = ""
        ) async throws {
            let answer = try await caller.send(world.home, path, body, method: method)
            var code = answer.code ?? ""
            for key in ["records", "zones"] where code.isEmpty {
                if let items = answer.json[key]?.array, items.count == 1 { code = items[0].code ?? "" }
            }
            tally.cell(
                "\(caller.name) \(method) \(path) \(what)", wanted: wanted, got: code, leaks: leaks(answer, to: caller))
        }

        // MARK: Private data

        /// Bodies that name the author's zone as the author's, and what comes of them for somebody else whose
        /// credentials are good.
        private func privateRequests(_ zone: JSONValue, zoneMissing: Set<String>) -> [(String, JSONValue, Set<String>)]
        {
            let kind = world.kinds[0].name
            let fields: JSONValue = ["word": ["value": "mine now"]]
            func modify(_ operation: JSONValue) -> JSONValue {
                ["operations": [operation], "zoneID": zone, "atomic": false]
            }
            let query: JSONValue = ["recordType": .string(kind)]
            let names: JSONValue = [["recordName": "kept"]]
            let tag = privateRecord.tag
            return [
                ("records/lookup", ["records": names, "zoneID": zone], zoneMissing),
                ("records/query", ["query": query, "zoneID": zone], zoneMissing),
                ("records/changes", ["zoneID": zone], zoneMissing),
                ("changes/zone", ["zones": [["zoneID": zone]]], zoneMissing),
                ("zones/lookup", ["zones": [zone]], zoneMissing),
                ("records/modify", modify(Space.operation("create", "new", fields, type: kind)), zoneMissing),
                (
                    "records/modify", modify(Space.operation("update", "kept", fields, tag: tag, type: kind)),
                    zoneMissing
                ),
                ("records/modify", modify(Space.operation("forceUpdate", "kept", fields, type: kind)), zoneMissing),
                ("records/modify", modify(Space.operation("forceReplace", "kept", fields, type: kind)), zoneMissing),
                ("records/modify", modify(Space.operation("delete", "kept", tag: tag)), zoneMissing),
                ("records/modify", modify(Space.operation("forceDelete", "kept")), zoneMissing),
            ]
        }

        private mutating func privateDoors(_ caller: Caller) async throws {
            let refusal = privateRefusal(caller.who)
            let isAuthor = caller.name == "author"
            func wanted(_ others: Set<String>) -> Set<String> { refusal.map { [$0] } ?? (isAuthor ? [""] : others) }
            guard !isAuthor else { return }
            for (action, body, others) in privateRequests(zone, zoneMissing: ["ACCESS_DENIED"]) {
                try await knock(
                    caller, world.path(action, "private"), body, wanted: wanted(others), "of the author's zone")
            }
            // Without its owner, a zone is the caller's own, and there is none of this name.
            for (action, body, others) in privateRequests(["zoneName": "vault"], zoneMissing: ["ZONE_NOT_FOUND"]) {
                try await knock(caller, world.path(action, "private"), body, wanted: wanted(others), "of an own zone")
            }
            let deletion: JSONValue = ["operations": [["operationType": "delete", "zone": ["zoneID": zone]]]]
            let creation: JSONValue = ["operations": [["operationType": "create", "zone": ["zoneID": zone]]]]
            for body in [deletion, creation] {
                try await knock(caller, world.path("zones/modify", "private"), body, wanted: wanted(["ACCESS_DENIED"]))
            }
            let wide: JSONValue = ["query": ["recordType": .string(world.kinds[0].name)], "zoneWide": true]
            let lookup: JSONValue = ["records": [["recordName": "kept"]]]
            let own: [(String, JSONValue, Set<String>)] = [
                ("records/lookup", lookup, ["NOT_FOUND"]), ("records/query", wide, [""]),
                ("changes/database", [:], [""]),
                ("zones/changes", [:], [""]), ("zones/list", [:], [""]),
            ]
            for (action, body, others) in own {
                try await knock(caller, world.path(action, "private"), body, wanted: wanted(others))
            }
        }

        private mutating func preferenceDoors(_ caller: Caller) async throws {
            let wanted: Set<String> = [privateRefusal(caller.who) ?? ""]
            let requests: [(String, JSONValue)] = [
                ("get", ["keys": ["theme"]]), ("list", [:]), ("changes", [:]), ("usage", [:]), ("watch", [:]),
                ("set", ["writes": [["key": "theme", "value": "dark"]]]), ("get", ["keys": ["theme"]]),
            ]
            for (action, body) in requests { try await knock(caller, preferences(action), body, wanted: wanted) }
        }

        // MARK: Public data

        private mutating func publicDoors(_ caller: Caller) async throws {
            let refusal = publicRefusal(caller.who)
            let defaultZone: JSONValue = ["zoneName": "_defaultZone"]
            let custom: JSONValue = ["zoneName": "vault"]
            let lookup: JSONValue = [["recordName": "nobody"]]
            let query: JSONValue = ["recordType": "Open"]
            let open = Space.operation("forceDelete", "nobody")
            // The public database has one zone, without a feed.
            let requests: [(String, JSONValue, String)] = [
                ("zones/list", [:], ""), ("zones/lookup", ["zones": [defaultZone]], ""),
                ("zones/lookup", ["zones": [custom]], "BAD_REQUEST"),
                ("zones/modify", ["operations": [Space.zoneOperation("create", "vault")]], "BAD_REQUEST"),
                ("zones/modify", ["operations": [Space.zoneOperation("delete", "vault")]], "BAD_REQUEST"),
                ("changes/zone", ["zones": [["zoneID": defaultZone]]], "BAD_REQUEST"),
                ("records/changes", ["zoneID": defaultZone], "BAD_REQUEST"), ("changes/database", [:], "BAD_REQUEST"),
                ("zones/changes", [:], "BAD_REQUEST"),
                ("records/lookup", ["records": lookup], "NOT_FOUND"),
                ("records/lookup", ["records": lookup, "zoneID": custom], "BAD_REQUEST"),
                ("records/query", ["query": query], ""),
                ("records/query", ["query": query, "zoneID": custom], "BAD_REQUEST"),
                ("records/query", ["query": ["recordType": "Users"]], "BAD_REQUEST"),
                ("records/modify", ["operations": [open]], ""),
                ("records/modify", ["operations": [open], "zoneID": custom], "BAD_REQUEST"),
            ]
            for (action, body, code) in requests {
                try await knock(caller, world.path(action), body, wanted: [refusal ?? code])
            }
        }

        private mutating func userDoors(_ caller: Caller) async throws {
            let wanted: Set<String> = [publicRefusal(caller.who, needsUser: true) ?? ""]
            let author = JSONValue.string(world.authorName)
            for action in ["users/caller", "users/current", "users/lookup/contacts", "users/discover"] {
                try await knock(caller, world.path(action), nil, wanted: wanted, method: "GET")
            }
            // The author is not to be discovered.
            for (action, body) in [
                ("users/discover", ["lookupInfos": [["userRecordName": author]]]),
                ("users/lookup/id", ["users": [["userRecordName": author]]]),
                ("users/lookup/email", ["users": [["emailAddress": "nobody@example.com"]]]),
            ] as [(String, JSONValue)] {
                try await knock(caller, world.path(action), body, wanted: wanted)
            }
        }

        /// Nothing is shared yet, so nothing is to be seen.
        private mutating func sharedDoors(_ caller: Caller) async throws {
            for action in ["records/lookup", "records/query", "records/modify", "zones/list", "changes/database"] {
                let answer = try await caller.send(world.home, world.path(action, "shared"), [:])
                var faults = leaks(answer, to: caller).map { "shows the secret of \($0)" }
                if answer.status == 200 { faults.append("is answered: \(answer)") }
                tally.cell("\(caller.name) shared \(action)", faults)
            }
        }
    }
}
