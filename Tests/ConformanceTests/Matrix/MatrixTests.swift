import RecordModel
import Testing

extension Conformance {
    /// Every role, operation, door and scope, held against an oracle of their own. Each test counts its cells and fails
    /// where they become fewer.
    @Suite("The authorization matrix")
    struct MatrixTests {
        private static let allRoles = Matrix.roles

        @Test("changes in memory: more than 24,000 cells")
        func changes() async throws {
            let world = try await Matrix.World.make(.memory, Matrix.kinds(alone: Self.allRoles, mixed: 11))
            var writes = try await Matrix.Writes(world, Matrix.WritePlan(), Matrix.Tally("changes"))
            try await writes.run()
            writes.tally.judge(atLeast: 24_000)
        }

        @Test("changes over three nodes: more than 1,400 cells")
        func changesOverNodes() async throws {
            let world = try await Matrix.World.make(.cluster, Matrix.kinds(alone: ["_creator", "Editor"], mixed: 0))
            var plan = Matrix.WritePlan()
            plan.deeds = [.createNew, .createSame, .update, .updateStale, .forceReplace, .forceDelete]
            plan.owners = [.mine, .theirs]
            plan.singles = 1
            var writes = try await Matrix.Writes(world, plan, Matrix.Tally("changes over three nodes"))
            try await writes.run()
            writes.tally.judge(atLeast: 1_400)
        }

        @Test("changes in production: more than 1,300 cells")
        func changesInProduction() async throws {
            let kinds = Matrix.kinds(alone: ["_creator", "Editor"], mixed: 0, everywhere: "c")
            let world = try await Matrix.World.make(.memory, kinds, environment: "production")
            var plan = Matrix.WritePlan()
            plan.owners = [.mine, .theirs]
            plan.singles = 0
            plan.deeds = [.createNew, .update, .updateStale, .forceUpdate, .delete, .forceDelete]
            var writes = try await Matrix.Writes(world, plan, Matrix.Tally("changes in production"))
            try await writes.run()
            writes.tally.judge(atLeast: 1_300)
        }

        @Test("reads in memory: more than 21,000 cells")
        func reads() async throws {
            let world = try await Matrix.World.make(.memory, Matrix.kinds(alone: Self.allRoles, mixed: 11))
            var reads = try await Matrix.Reads(world, Matrix.Tally("reads"))
            try await reads.run()
            reads.tally.judge(atLeast: 21_000)
        }

        @Test("reads over three nodes: more than 3,100 cells")
        func readsOverNodes() async throws {
            let kinds = Array(Matrix.kinds(alone: ["_creator", "Editor"], mixed: 0).prefix(6))
            let world = try await Matrix.World.make(.cluster, kinds)
            var reads = try await Matrix.Reads(world, Matrix.Tally("reads over three nodes"))
            try await reads.run()
            reads.tally.judge(atLeast: 3_100)
        }

        @Test("reads in production: more than 3,100 cells")
        func readsInProduction() async throws {
            let kinds = Array(Matrix.kinds(alone: ["_creator", "Editor"], mixed: 0, everywhere: "c").prefix(6))
            let world = try await Matrix.World.make(.memory, kinds, environment: "production")
            var reads = try await Matrix.Reads(world, Matrix.Tally("reads in production"))
            try await reads.run()
            reads.tally.judge(atLeast: 3_100)
        }

        @Test("cascades in memory: more than 950 cells")
        func cascades() async throws {
            let world = try await Matrix.World.make(.memory, Matrix.kinds(alone: Self.allRoles, mixed: 11))
            var cascades = try await Matrix.Cascades(world, Matrix.Tally("cascades"))
            try await cascades.run()
            cascades.tally.judge(atLeast: 950)
        }

        @Test("other doors, also for those whose credentials are no good: more than 1,150 cells")
        func doors() async throws {
            let world = try await Matrix.World.make(.memory, Matrix.kinds(alone: [], mixed: 0))
            try await world.close()
            var doors = try await Matrix.Doors(world, Matrix.Tally("doors"))
            try await doors.run(world.callers + world.strangers)
            doors.tally.judge(atLeast: 1_150)
        }

        @Test("other doors over three nodes: more than 600 cells")
        func doorsOverNodes() async throws {
            let world = try await Matrix.World.make(.cluster, Matrix.kinds(alone: [], mixed: 0))
            try await world.close()
            var doors = try await Matrix.Doors(world, Matrix.Tally("doors over three nodes"))
            // Addresses that often fail to authenticate are slowed down, so only those are asked that do not.
            let quiet = world.strangers.filter { $0.who.refusal == "AUTHENTICATION_REQUIRED" }
            try await doors.run(world.callers + quiet)
            doors.tally.judge(atLeast: 600)
        }

        @Test("records of users: more than 650 cells")
        func users() async throws {
            let world = try await Matrix.World.make(.memory, [])
            let everything =
                "RECORD TYPE Users (nickname STRING QUERYABLE, roles LIST<INT64>, GRANT CREATE, READ, WRITE TO \"_world\");"
            _ = try await world.home.adminText(
                "POST", "schema", [("container", world.home.container)],
                Matrix.schema([], isOpen: false) + "\n" + everything)
            var users = try await Matrix.UserRecords(world, Matrix.Tally("records of users"))
            try await users.run()
            users.tally.judge(atLeast: 650)
        }
    }
}
