import RecordModel
import Testing

extension Conformance {
    /// Doors that are found by few: what a page's end, a repeated request, or a role that came and went might tell.
    @Suite("The authorization matrix: back doors")
    struct MatrixMoreTests {
        @Test("a page that ends among records of others does not tell their values")
        func markers() async throws {
            let kind = Matrix.Kind(name: "Diary", grants: ["_icloud": "c", "_creator": "r"])
            var world = try await Matrix.World.make(.memory, [kind])
            // More than one page looks at.
            for _ in 0..<51 {
                _ = try await world.plant(Array(repeating: kind, count: 200), by: world.author)
            }
            for caller in world.callers where !caller.who.isAdministrator && caller.who.user != nil {
                _ = try await world.plant([kind], by: caller)
            }
            try await world.close()
            var tally = Matrix.Tally("markers")
            let sorts: [JSONValue] = [
                [], [["fieldName": "secret", "ascending": true]], [["fieldName": "secret", "ascending": false]],
            ]
            let filters: [JSONValue] = [[], [Space.filter("secret", "BEGINS_WITH", "s3")]]
            for caller in world.callers where !caller.who.isAdministrator && caller.who.user != nil {
                for (sort, filter) in sorts.flatMap({ sort in filters.map { (sort, $0) } }) {
                    let body: JSONValue = [
                        "query": ["recordType": .string(kind.name), "sortBy": sort, "filterBy": filter]
                    ]
                    let answer = try await caller.send(world.home, world.path("records/query"), body)
                    tally.cell(
                        "\(caller.name) sort \(sort.text) filter \(filter.text)", wanted: [""], got: answer.code ?? "",
                        leaks: world.leaks(answer, to: caller.who))
                }
            }
            tally.judge(atLeast: 36)
        }

        @Test("a repeated Idempotency-Key gives the first answer to nobody else", arguments: Door.allCases)
        func repetitions(door: Door) async throws {
            let kind = Matrix.Kind(name: "Diary", grants: ["_icloud": "c", "_creator": "rw"])
            var world = try await Matrix.World.make(door, [kind])
            let planted = try await world.plant(world.callers.map { _ in kind }, by: world.author)
            try await world.close()
            var tally = Matrix.Tally("repetitions")
            for (caller, record) in zip(world.callers, planted) where !caller.who.isAdministrator {
                let body: JSONValue = [
                    "operations": [
                        Space.operation("forceUpdate", record.name, ["word": ["value": "new"]], type: kind.name)
                    ]
                ]
                let headers = [("Idempotency-Key", IdempotencyKeys.next())]
                let path = world.path("records/modify")
                let first = try await world.author.send(world.home, path, body, headers: headers)
                #expect(try first.item().field("secret") == .string(record.secret), "\(first)")
                let second = try await caller.send(world.home, path, body, headers: headers)
                tally.cell(
                    caller.name, wanted: ["ACCESS_DENIED"], got: try second.item().code ?? "",
                    leaks: world.leaks(second, to: caller.who))
                let third = try await world.author.send(world.home, path, body, headers: headers)
                tally.cell("the author again", wanted: [""], got: try third.item().code ?? "")
            }
            tally.judge(atLeast: 14)
        }

        @Test("a role counts on every node from its grant to its revocation", arguments: Door.allCases)
        func comingAndGoing(door: Door) async throws {
            let kind = Matrix.Kind(name: "Page", grants: ["Editor": "crw"])
            var world = try await Matrix.World.make(door, [kind])
            let record = try await world.plant([kind], by: world.author)[0]
            try await world.close()
            let account = "temp\(Home.unique())"
            _ = try await world.home.admin("POST", "users", ["name": .string(account)])
            let session = try await world.home.admin(
                "POST", "tokens",
                ["kind": "session", "container": .string(world.home.container), "user": .string(account)])
            let registrar = Matrix.Registrar(home: world.home, environment: world.environment)
            let place = "container=\(world.home.container)&environment=\(world.environment)"
            var tally = Matrix.Tally("roles that come and go")
            for round in 0..<6 {
                for isMember in [true, false] {
                    if isMember {
                        try await registrar.addMember(account, "Editor")
                    } else {
                        _ = try await world.home.admin(
                            "DELETE", "roles/members?\(place)&role=Editor&user=\(account)")
                    }
                    let caller = Matrix.Caller(
                        name: "temp", who: Matrix.Who(user: "temp", roles: isMember ? ["Editor"] : []),
                        credentials: .tokens(
                            api: registrar.apiToken, session: try #require(session["secret"]?.string)))
                    // One request to each node, if there are three.
                    for node in 0..<3 {
                        let answer = try await caller.send(
                            world.home, world.path("records/lookup"),
                            ["records": [["recordName": .string(record.name)]]])
                        tally.cell(
                            "round \(round), member: \(isMember), node \(node)",
                            wanted: [isMember ? "" : "ACCESS_DENIED"],
                            got: try answer.item().code ?? "", leaks: world.leaks(answer, to: caller.who))
                        let operation = Space.operation(
                            "forceUpdate", record.name, ["word": ["value": "x"]], type: kind.name)
                        let saved = try await caller.send(
                            world.home, world.path("records/modify"), ["operations": [operation]])
                        tally.cell(
                            "round \(round), member: \(isMember), node \(node) write",
                            wanted: [isMember ? "" : "ACCESS_DENIED"], got: try saved.item().code ?? "",
                            leaks: world.leaks(saved, to: caller.who))
                    }
                }
            }
            tally.judge(atLeast: 72)
        }

        @Test("in the private database the owner may do everything, whatever a type grants: more than 450 cells")
        func owners() async throws {
            let kinds = Matrix.kinds(alone: Matrix.roles, mixed: 0)
            let world = try await Matrix.World.make(.memory, kinds)
            try await world.close()
            var tally = Matrix.Tally("owners")
            for caller in world.callers where Matrix.privateRefusal(caller.who) == nil {
                let path = world.path("records/modify", "private")
                for kind in ["create", "forceUpdate", "forceReplace", "forceDelete"] {
                    let operations = kinds.map {
                        Space.operation(
                            kind, "own-\($0.name)", kind == "forceDelete" ? nil : ["word": ["value": "x"]],
                            type: $0.name)
                    }
                    let answer = try await caller.send(world.home, path, ["operations": .array(operations)])
                    for (item, type) in zip(try answer.items(), kinds) {
                        tally.cell("\(caller.name) \(kind) \(type.label)", wanted: [""], got: item.code ?? "")
                    }
                }
            }
            tally.judge(atLeast: 450)
        }
    }
}
