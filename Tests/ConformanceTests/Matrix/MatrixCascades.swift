import RecordModel
import TestSupport
import Testing

extension Matrix {
    /// Deletions that take along what refers to the deleted record, as far as the caller may write it; and such as are
    /// forbidden by records that the caller knows nothing of.
    struct Cascades {
        var world: World
        var tally: Tally
        private var stars: [String: Star] = [:]

        /// A record that everybody may delete, records of every type that go with it, and one that goes last.
        struct Star {
            var center: World.Planted
            var sources: [World.Planted]
            var last: World.Planted
            /// Held by one record each, which does not let them go.
            var held: [World.Planted]
        }

        init(_ world: World, _ tally: Tally) async throws {
            var world = world
            for caller in world.callers {
                let center = try await world.plant([openKind], by: world.author)[0]
                let link: JSONValue = ["recordName": .string(center.name), "action": "DELETE_SELF"]
                var sources: [World.Planted] = []
                for maker in [world.author, caller] {
                    sources += try await world.plant(world.kinds, by: maker, link: link)
                }
                let last = try await world.plant([openKind], by: world.author, link: link)[0]
                let held = try await world.plant(world.kinds.map { _ in openKind }, by: world.author)
                for (target, kind) in zip(held, world.kinds) {
                    _ = try await world.plant(
                        [kind], by: world.author, link: ["recordName": .string(target.name), "action": "VALIDATE"])
                }
                stars[caller.name] = Star(center: center, sources: sources, last: last, held: held)
            }
            try await world.close()
            self.world = world
            self.tally = tally
        }

        mutating func run() async throws {
            for caller in world.callers {
                guard let star = stars[caller.name] else { continue }
                try await delete(star, by: caller)
                try await deleteHeld(star, by: caller)
            }
        }

        private mutating func delete(_ star: Star, by caller: Caller) async throws {
            let answer = try await caller.send(
                world.home, world.path("records/modify"),
                ["operations": [Space.operation("forceDelete", star.center.name)]])
            #expect(try answer.item()["deleted"] == true, "\(caller.name): \(answer)")
            // What refers to it goes in the background, in the order of its making: after the last all were looked at.
            try await awaitState("\(caller.name)'s cascade ends") {
                try await world.see([star.last.name])[0]
            } until: {
                $0.code == "NOT_FOUND"
            }
            let leaks = world.leaks(answer, to: caller.who)
            for (record, left) in zip(star.sources, try await world.see(star.sources.map(\.name))) {
                let mayWrite = may("w", caller.who, record.kind.grants, madeBy: record.creator)
                tally.cell(
                    "\(caller.name) cascade to \(record.kind.label) of \(record.creator ?? "nobody")",
                    wanted: [mayWrite ? "NOT_FOUND" : ""], got: left.code ?? "", leaks: leaks)
            }
        }

        private mutating func deleteHeld(_ star: Star, by caller: Caller) async throws {
            let operations = star.held.map { Space.operation("forceDelete", $0.name) }
            let answer = try await caller.send(
                world.home, world.path("records/modify"), ["operations": .array(operations)])
            let leaks = world.leaks(answer, to: caller.who)
            for (kind, item) in zip(world.kinds, try answer.items()) {
                tally.cell(
                    "\(caller.name) deletes what a record of \(kind.label) holds",
                    wanted: ["VALIDATING_REFERENCE_ERROR"], got: item.code ?? "", leaks: leaks)
            }
        }
    }
}
