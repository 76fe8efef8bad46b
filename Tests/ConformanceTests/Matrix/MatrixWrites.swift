import RecordModel
import Testing

extension Matrix {
    /// How a caller stands to a record.
    enum Owner: String, CaseIterable, Sendable {
        case mine, theirs
        /// The author made it, the caller changed it last.
        case edited
        /// The caller made it; it was deleted, and the author made it again.
        case remade
    }

    /// How much of the matrix of changes is gone through.
    struct WritePlan: Sendable {
        var deeds = Deed.allCases
        var owners = Owner.allCases
        /// Operations in one request.
        var batch = 200
        /// Cells of each caller and deed that are gone through again, one request each.
        var singles = 3
    }

    /// Every deed of every caller on every type, with every owner.
    struct Writes {
        var world: World
        var plan: WritePlan
        var tally: Tally
        /// Where `updateOtherType` and stale tags come from.
        private var openRecord: World.Planted
        private var targets: [String: [Target]] = [:]

        /// What one operation is about to meet.
        struct Target {
            var owner: Owner
            var record: World.Planted
            var isThere: Bool
        }

        /// Plants the records that every cell has to itself, then puts the grants in force.
        init(_ world: World, _ plan: WritePlan, _ tally: Tally) async throws {
            var world = world
            openRecord = try await world.plant([openKind], by: world.author)[0]
            for caller in world.callers {
                for deed in plan.deeds where deed.needsRecord {
                    targets["\(caller.name) \(deed)"] = try await Self.plant(for: caller, plan, in: &world)
                }
            }
            try await world.close()
            self.world = world
            self.plan = plan
            self.tally = tally
        }

        private static func plant(
            for caller: Caller, _ plan: WritePlan, in world: inout World
        ) async throws -> [Target] {
            var targets: [Target] = []
            for owner in plan.owners {
                // A few of each kind more are for requests with one operation.
                let kinds = world.kinds + extra(plan, world)
                let planted: [World.Planted]
                switch owner {
                case .mine: planted = try await world.plant(kinds, by: caller)
                case .theirs: planted = try await world.plant(kinds, by: world.author)
                case .edited:
                    planted = try await world.touch(world.plant(kinds, by: world.author), by: caller)
                case .remade:
                    planted = try await world.remake(world.plant(kinds, by: caller), by: world.author)
                }
                targets += planted.map { Target(owner: owner, record: $0, isThere: true) }
            }
            return targets
        }

        /// The kinds that single requests are about: other ones each time.
        private static func extra(_ plan: WritePlan, _ world: World) -> [Kind] {
            var dice = Dice(seed: UInt64(world.records.count))
            return (0..<plan.singles).map { _ in world.kinds[dice.next(below: world.kinds.count)] }
        }

        mutating func run() async throws {
            for caller in world.callers {
                for deed in plan.deeds {
                    let targets = self.targets["\(caller.name) \(deed)"] ?? fresh(for: caller)
                    // The last of each owner are for single requests.
                    let group = world.kinds.count + plan.singles
                    var together: [Target] = []
                    var alone: [Target] = []
                    for (number, target) in targets.enumerated() {
                        if number % group < world.kinds.count { together.append(target) } else { alone.append(target) }
                    }
                    for start in stride(from: 0, to: together.count, by: plan.batch) {
                        try await perform(
                            deed, Array(together[start..<min(start + plan.batch, together.count)]), by: caller)
                    }
                    for target in alone { try await perform(deed, [target], by: caller) }
                }
            }
        }

        /// Names that no record has.
        private mutating func fresh(for caller: Caller) -> [Target] {
            (world.kinds + Self.extra(plan, world)).map { kind in
                let record = World.Planted(
                    name: world.newName(), kind: kind, creator: caller.who.user, tag: openRecord.tag)
                return Target(owner: .mine, record: record, isThere: false)
            }
        }

        private func operation(_ deed: Deed, _ target: Target) -> JSONValue {
            let record = target.record
            let isStale = deed.rawValue.hasSuffix("Stale")
            let isTagged = !deed.rawValue.hasSuffix("Untagged") && !deed.rawValue.hasPrefix("force")
            var type: String? = record.kind.name
            if deed == .createOther || deed == .updateOtherType { type = openKind.name }
            if deed == .updateUntyped { type = nil }
            return Space.operation(
                deed.operation, record.name, deed.isDelete ? nil : ["word": ["value": "new"]],
                tag: isTagged ? isStale ? openRecord.tag : record.tag : nil, type: type)
        }

        /// One request, and what is there afterwards.
        private mutating func perform(_ deed: Deed, _ targets: [Target], by caller: Caller) async throws {
            let operations = targets.map { operation(deed, $0) }
            let answer = try await caller.send(
                world.home, world.path("records/modify"), ["operations": .array(operations)])
            let items = answer.status == 200 ? try answer.items() : targets.map { _ in answer.json }
            try #require(items.count == targets.count, "\(answer)")
            let left = try await world.see(targets.map(\.record.name))
            let leaks = Set(world.leaks(answer, to: caller.who))
            for ((target, item), left) in zip(zip(targets, items), left) {
                let faults = self.faults(of: item, left: left, deed, target, by: caller, leaks)
                let form = targets.count == 1 ? "alone" : "together"
                tally.cell(
                    "\(world.environment) \(caller.name) \(deed) \(target.owner) \(target.record.kind.label) \(form)",
                    faults)
            }
        }

        private func faults(
            of item: JSONValue, left: JSONValue, _ deed: Deed, _ target: Target, by caller: Caller, _ leaks: Set<String>
        ) -> [String] {
            let record = target.record
            let grants = record.kind.grants
            let mayRead = may("r", caller.who, grants, madeBy: record.creator)
            let wanted = codes(deed, caller.who, grants, madeBy: record.creator)
            let code = item.code ?? ""
            var faults: [String] = []
            if !wanted.contains(code) { faults.append("'\(code)' where \(wanted.sorted()) is right: \(item.reason)") }
            if leaks.contains(record.name) { faults.append("shows the secret") }
            let shown = code.isEmpty ? item : item["serverRecord"]
            if showsRecord(deed, code, mayRead: mayRead), shown?.field("secret") != .string(record.secret) {
                faults.append("does not show the record to a reader: \(item.text)")
            }
            if target.isThere, !mayRead, !code.isEmpty, item["serverRecord"] != nil {
                faults.append("has a serverRecord")
            }
            let fate = Matrix.fate(deed, isDone: code.isEmpty && wanted.contains(""))
            if self.fate(left, of: record) != fate { faults.append("left \(left.text), where it is \(fate)") }
            return faults
        }

        private func fate(_ left: JSONValue, of record: World.Planted) -> Fate? {
            if left.code == "NOT_FOUND" { return .absent }
            let hasSecret = left.field("secret") == .string(record.secret)
            switch left.field("word") {
            case "old" where hasSecret: return .same
            case "new": return hasSecret ? .merged : .replaced
            default: return nil
            }
        }
    }
}
