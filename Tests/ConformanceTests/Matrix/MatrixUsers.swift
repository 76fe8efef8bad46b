import RecordModel
import Testing

extension Matrix {
    /// The records of type `Users`, under a schema that grants everything to everybody: they have rules of their own.
    struct UserRecords {
        var world: World
        var tally: Tally
        /// User record names by the callers' names.
        private var names: [String: String] = [:]

        init(_ world: World, _ tally: Tally) async throws {
            self.world = world
            self.tally = tally
            for caller in world.callers + [world.author] where caller.who.user != nil {
                let answer = try await caller.send(world.home, world.path("users/caller"), nil, method: "GET")
                names[caller.name] = try #require(answer.json["userRecordName"]?.string, "\(answer)")
            }
        }

        mutating func run() async throws {
            for caller in world.callers {
                for (owner, name) in names.sorted(by: { $0.key < $1.key }) {
                    try await tryAll(caller, owner, name)
                }
                for kind in ["create", "forceUpdate", "forceReplace"] {
                    // Names of users are not for others, nor are other names for users.
                    for name in ["_0123456789abcdef0123456789abcdef", world.newName()] {
                        let answer = try await modify(caller, Space.operation(kind, name, type: "Users"))
                        tally.cell(
                            "\(caller.name) \(kind) Users \(name)", wanted: ["ACCESS_DENIED", "BAD_REQUEST"],
                            got: try answer.item().code ?? "")
                    }
                }
                let answer = try await caller.send(
                    world.home, world.path("records/query"), ["query": ["recordType": "Users"]])
                tally.cell("\(caller.name) query Users", wanted: ["BAD_REQUEST"], got: answer.code ?? "")
            }
        }

        private func modify(_ caller: Caller, _ operation: JSONValue) async throws -> Answer {
            try await caller.send(world.home, world.path("records/modify"), ["operations": [operation]])
        }

        /// Everybody reads the record, its user alone writes it, and nobody deletes it or sets its roles.
        private mutating func tryAll(_ caller: Caller, _ owner: String, _ name: String) async throws {
            let isOwn = caller.name == owner
            let cell = "\(caller.name) Users record of \(owner)"
            let seen = try await caller.send(
                world.home, world.path("records/lookup"), ["records": [["recordName": .string(name)]]])
            let record = try seen.item()
            tally.cell("\(cell) lookup", wanted: [""], got: record.code ?? "")
            let fields: JSONValue = ["nickname": ["value": .string(caller.name)]]
            let roles: JSONValue = ["roles": ["value": [1]]]
            let refused: Set<String> = ["ACCESS_DENIED", "BAD_REQUEST"]
            for kind in ["update", "forceUpdate", "replace", "forceReplace"] {
                let current = try await world.see([name])[0]
                let saved = try await modify(
                    caller, Space.operation(kind, name, fields, tag: current.tag, type: "Users"))
                // What the administrator may do with them is not said anywhere.
                let wanted: Set<String> =
                    isOwn ? [""] : caller.who.isAdministrator ? ["", "ACCESS_DENIED"] : ["ACCESS_DENIED"]
                tally.cell("\(cell) \(kind)", wanted: wanted, got: try saved.item().code ?? "")
                let promoted = try await modify(
                    caller, Space.operation(kind, name, roles, tag: try await world.see([name])[0].tag, type: "Users"))
                tally.cell("\(cell) \(kind) of roles", wanted: refused, got: try promoted.item().code ?? "")
            }
            for kind in ["delete", "forceDelete"] {
                let tag = try await world.see([name])[0].tag
                let deleted = try await modify(caller, Space.operation(kind, name, tag: tag))
                tally.cell("\(cell) \(kind)", wanted: refused, got: try deleted.item().code ?? "")
            }
        }
    }
}
