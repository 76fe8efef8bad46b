import RecordModel
import Testing

extension Matrix {
    /// A container with a type for each combination of grants, with callers of every sort, and with records that were
    /// there before the grants were.
    struct World {
        var home: Home
        var environment: String
        var kinds: [Kind]
        /// A user who owns what the others try to get at.
        var author: Caller
        var authorName: String
        var administrator: Caller
        /// Whose requests are looked at.
        var callers: [Caller] = []
        /// Whose credentials are no good.
        var strangers: [Caller] = []
        /// By record name.
        private(set) var records: [String: Planted] = [:]
        private var count = 0

        /// Who made a record, and what it is now.
        struct Planted: Sendable {
            var name: String
            var kind: Kind
            /// The `user` of who made it.
            var creator: String?
            var tag: String
            var secret: String { Secret.value(of: name) }
        }

        /// A container in which everybody may still do everything; `close` puts the grants in force.
        static func make(_ door: Door, _ kinds: [Kind], environment: String = "development") async throws -> World {
            let home = try await Home.make(door)
            func importing(_ kinds: [Kind]) async throws {
                _ = try await home.adminText(
                    "POST", "schema", [("container", home.container)],
                    schema(kinds, isOpen: environment == "development"))
            }
            // Production has the roles in any case, so that somebody can have them there only.
            try await importing(environment == "production" ? kinds : [])
            _ = try await home.admin("POST", "schema/deploy?container=\(home.container)")
            if environment == "development" { try await importing(kinds) }
            let registrar = Registrar(home: home, environment: environment)
            let author = try await registrar.user(
                "author", profile: ["givenName": .string(Secret.value(of: "author")), "discoverable": false])
            var world = World(
                home: home, environment: environment, kinds: kinds, author: author.caller,
                authorName: author.recordName,
                administrator: Caller(
                    name: "administrator", who: Who(isAdministrator: true),
                    credentials: .administrator(home.service.administratorToken)))
            try await world.addCallers(registrar)
            try await world.addStrangers(registrar)
            return world
        }

        private mutating func addCallers(_ registrar: Registrar) async throws {
            callers = [
                Caller(
                    name: "anonymous", who: Who(), credentials: .tokens(api: registrar.apiToken, session: nil)),
                try await registrar.user("reader").caller,
                try await registrar.user("member", roles: ["Editor"]).caller,
                try await registrar.user("dismissed", dismissedFrom: "Editor").caller,
                try await registrar.memberElsewhere(),
                administrator,
                try await registrar.key("developer"),
                try await registrar.key("editingDeveloper", roles: ["Editor", "Idle"]),
            ]
        }

        private mutating func addStrangers(_ registrar: Registrar) async throws {
            let other = try await Home.make(home.door)
            let foreign = try await other.makeUser()
            let own = try await registrar.user("owner").caller
            guard case .tokens(_, let session) = own.credentials else { return }
            let key = try await registrar.key("forger")
            guard case .key(let id, let privateKey) = key.credentials else { return }
            func failing(_ name: String, _ code: String, _ credentials: Caller.Credentials) -> Caller {
                Caller(name: name, who: Who(refusal: code), credentials: credentials)
            }
            let failed = "AUTHENTICATION_FAILED"
            let elsewhere = environment == "development" ? "production" : "development"
            strangers = [
                try await registrar.user("endedSession", roles: ["Editor"], isOver: true).caller,
                failing(
                    "otherContainersUser", "AUTHENTICATION_REQUIRED",
                    .tokens(api: registrar.apiToken, session: foreign.session)),
                failing(
                    "otherContainersToken", failed,
                    .tokens(
                        api: try await registrar.strayAPIToken(container: other.container), session: session)),
                failing(
                    "otherEnvironmentsToken", failed,
                    .tokens(api: try await registrar.strayAPIToken(environment: elsewhere), session: session)),
                failing(
                    "revokedToken", failed,
                    .tokens(api: try await registrar.strayAPIToken(isOver: true), session: session)),
                failing("noToken", failed, .tokens(api: nil, session: session)),
                failing("otherAdministrator", failed, .administrator(String(repeating: "0", count: 64))),
                try await registrar.key("revokedKey", roles: ["Editor"], isOver: true),
                try await registrar.key("otherEnvironmentsKey", in: elsewhere),
                failing("forger", failed, .badKey(id: id, privateKey)),
                failing("unknownKey", failed, .key(id: String(repeating: "ab", count: 32), privateKey)),
            ]
        }

        /// Puts the grants in force.
        func close() async throws {
            guard environment == "development" else { return }
            _ = try await home.adminText(
                "POST", "schema", [("container", home.container)], Matrix.schema(kinds, isOpen: false))
        }

        func path(_ action: String, _ database: String = "public") -> String {
            "/database/1/\(home.container)/\(environment)/\(database)/\(action)"
        }

        mutating func newName() -> String {
            count += 1
            return "m\(count)"
        }

        /// Sends operations in requests of at most 200, which must all succeed.
        private func settle(_ operations: [JSONValue], by caller: Caller) async throws -> [JSONValue] {
            var items: [JSONValue] = []
            for start in stride(from: 0, to: operations.count, by: 200) {
                let part = Array(operations[start..<min(start + 200, operations.count)])
                let answer = try await caller.send(home, path("records/modify"), ["operations": .array(part)])
                let saved = try answer.items()
                for item in saved { try #require(item.code == nil, "planting by \(caller.name): \(item.text)") }
                items += saved
            }
            return items
        }

        /// Makes a record of each kind.
        mutating func plant(
            _ kinds: [Kind], by caller: Caller, link: JSONValue? = nil
        ) async throws -> [Planted] {
            var operations: [JSONValue] = []
            var names: [String] = []
            for kind in kinds {
                let name = newName()
                names.append(name)
                var fields: JSONValue = [
                    "secret": ["value": .string(Secret.value(of: name))], "word": ["value": "old"],
                ]
                if let link { fields = fields.with(["link": ["value": link]]) }
                operations.append(Space.operation("create", name, fields, type: kind.name))
            }
            let items = try await settle(operations, by: caller)
            var planted: [Planted] = []
            for ((name, kind), item) in zip(zip(names, kinds), items) {
                let record = Planted(name: name, kind: kind, creator: caller.who.user, tag: item.tag)
                records[name] = record
                planted.append(record)
            }
            return planted
        }

        /// Has records changed by somebody, who does not become their creator by that.
        mutating func touch(_ planted: [Planted], by caller: Caller) async throws -> [Planted] {
            let operations = planted.map {
                Space.operation("forceUpdate", $0.name, ["word": ["value": "old"]], type: $0.kind.name)
            }
            return remember(
                zip(planted, try await settle(operations, by: caller)).map { record, item in
                    var record = record
                    record.tag = item.tag
                    return record
                })
        }

        /// Has records deleted, and made again under their names by somebody else, who is their creator from now on.
        mutating func remake(_ planted: [Planted], by caller: Caller) async throws -> [Planted] {
            _ = try await settle(planted.map { Space.operation("forceDelete", $0.name) }, by: administrator)
            let operations = planted.map { record in
                Space.operation(
                    "create", record.name,
                    ["secret": ["value": .string(record.secret)], "word": ["value": "old"]], type: record.kind.name)
            }
            return remember(
                zip(planted, try await settle(operations, by: caller)).map { record, item in
                    var record = record
                    record.tag = item.tag
                    record.creator = caller.who.user
                    return record
                })
        }

        private mutating func remember(_ planted: [Planted]) -> [Planted] {
            for record in planted { records[record.name] = record }
            return planted
        }

        func mayRead(_ who: Who, _ name: String) -> Bool {
            guard let record = records[name] else { return false }
            return may("r", who, record.kind.grants, madeBy: record.creator)
        }

        /// The records whose secrets an answer has, and should not.
        func leaks(_ answer: Answer, to who: Who) -> [String] {
            Secret.owners(in: answer).filter { !mayRead(who, $0) }.sorted()
        }

        /// Records as the administrator sees them, in order.
        func see(_ names: [String]) async throws -> [JSONValue] {
            var items: [JSONValue] = []
            for start in stride(from: 0, to: names.count, by: 200) {
                let part = names[start..<min(start + 200, names.count)]
                let wanted = part.map { JSONValue.object([.init("recordName", .string($0))]) }
                let answer = try await administrator.send(
                    home, path("records/lookup"), ["records": .array(wanted)])
                items += try answer.items()
            }
            return items
        }
    }
}

extension Home {
    /// The way to this home's server.
    var door: Door { service is MemoryService ? .memory : .cluster }
}
