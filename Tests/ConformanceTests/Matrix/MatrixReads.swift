import RecordModel
import Testing

extension Matrix {
    /// Every way to read public records, for every caller, type and creator.
    struct Reads {
        var world: World
        var tally: Tally
        /// By type name.
        private var planted: [String: [World.Planted]] = [:]
        private let hub: World.Planted

        /// Two records of the author and one of each caller, of each type; then the grants come into force.
        init(_ world: World, _ tally: Tally) async throws {
            var world = world
            hub = try await world.plant([openKind], by: world.author)[0]
            let link: JSONValue = ["recordName": .string(hub.name), "action": "NONE"]
            for maker in [world.author, world.author] + world.callers {
                for record in try await world.plant(world.kinds, by: maker, link: link) {
                    planted[record.kind.name, default: []].append(record)
                }
            }
            try await world.close()
            self.world = world
            self.tally = tally
        }

        mutating func run() async throws {
            for caller in world.callers {
                for form in Lookup.allCases { try await look(form, caller) }
                for kind in world.kinds {
                    for form in Question.allCases { try await ask(form, kind, caller) }
                }
            }
        }

        /// The forms of a lookup.
        enum Lookup: CaseIterable { case plain, noKeys, secretOnly, itemKeys, withToken }

        private mutating func look(_ form: Lookup, _ caller: Caller) async throws {
            let all = world.kinds.flatMap { planted[$0.name] ?? [] }
            for start in stride(from: 0, to: all.count, by: 200) {
                let part = Array(all[start..<min(start + 200, all.count)])
                let wanted = part.map { record in
                    var item: JSONValue = ["recordName": .string(record.name)]
                    if form == .itemKeys { item = item.with(["desiredKeys": ["secret"]]) }
                    return item
                }
                var body: JSONValue = ["records": .array(wanted)]
                if form == .noKeys { body = body.with(["desiredKeys": []]) }
                if form == .secretOnly { body = body.with(["desiredKeys": ["secret"]]) }
                let answer = try await caller.send(world.home, world.path("records/lookup"), body)
                let items = answer.status == 200 ? try answer.items() : part.map { _ in answer.json }
                let leaks = Set(world.leaks(answer, to: caller.who))
                for (record, item) in zip(part, items) {
                    judge(item, record, form, caller, leaks)
                }
            }
        }

        private mutating func judge(
            _ item: JSONValue, _ record: World.Planted, _ form: Lookup, _ caller: Caller, _ leaks: Set<String>
        ) {
            let mayRead = world.mayRead(caller.who, record.name)
            var faults: [String] = []
            if item.code != (mayRead ? nil : "ACCESS_DENIED") {
                faults.append("readable: \(mayRead), got \(item.text)")
            }
            if leaks.contains(record.name) { faults.append("shows the secret") }
            if !mayRead, item["fields"] != nil || item["created"] != nil { faults.append("shows the record") }
            if mayRead, form != .noKeys, item.field("secret") != .string(record.secret) {
                faults.append("hides the record from a reader")
            }
            tally.cell("\(caller.name) lookup \(form) \(record.kind.label) of \(record.creator ?? "nobody")", faults)
        }

        /// The forms of a query.
        enum Question: CaseIterable {
            case plain, noKeys, secretOnly, equals, begins, notEquals, words, lessThan, ascending, descending
            case reference, creator, paged, pagedBySecret, zoneWide, explained
        }

        private func body(_ form: Question, _ kind: Kind) -> JSONValue {
            func query(_ filters: [JSONValue], sort: [JSONValue] = [], _ more: JSONValue = [:]) -> JSONValue {
                let query: JSONValue = [
                    "recordType": .string(kind.name), "filterBy": .array(filters), "sortBy": .array(sort),
                ]
                let body: JSONValue = ["query": query]
                return body.with(more)
            }
            func sort(_ isAscending: Bool) -> [JSONValue] {
                [["fieldName": "secret", "ascending": .bool(isAscending)]]
            }
            switch form {
            case .plain: return query([])
            case .noKeys: return query([], ["desiredKeys": []])
            case .secretOnly: return query([], ["desiredKeys": ["secret"]])
            case .equals:
                let secret = planted[kind.name]?.first?.secret ?? ""
                return query([Space.filter("secret", "EQUALS", .string(secret))])
            case .begins: return query([Space.filter("secret", "BEGINS_WITH", "s3c")])
            case .notEquals: return query([Space.filter("secret", "NOT_EQUALS", "nothing")])
            case .words: return query([Space.filter("secret", "CONTAINS_ALL_TOKENS", "s3cr3t")])
            case .lessThan: return query([Space.filter("secret", "LESS_THAN", "t")])
            case .ascending: return query([], sort: sort(true))
            case .descending: return query([], sort: sort(false))
            case .reference:
                return query([Space.filter("link", "EQUALS", ["recordName": .string(hub.name), "action": "NONE"])])
            case .creator:
                return query([Space.filter("___createdBy", "EQUALS", ["recordName": .string(world.authorName)])])
            case .paged: return query([], ["resultsLimit": 3])
            case .pagedBySecret: return query([], sort: sort(true), ["resultsLimit": 3])
            case .zoneWide: return query([], ["zoneWide": true])
            case .explained: return query([], ["explain": true])
            }
        }

        /// The records that a form of a query finds where all may be read.
        private func matches(_ form: Question, _ kind: Kind) -> [World.Planted] {
            let all = planted[kind.name] ?? []
            switch form {
            case .equals: return Array(all.prefix(1))
            case .creator: return all.filter { $0.creator == "author" }
            default: return all
            }
        }

        private mutating func ask(_ form: Question, _ kind: Kind, _ caller: Caller) async throws {
            var names: [String] = []
            var leaks: Set<String> = []
            var code = ""
            var body = self.body(form, kind)
            // A page has one record at least, so there are never more pages than records.
            for _ in 0...(planted[kind.name] ?? []).count {
                let answer = try await caller.send(world.home, world.path("records/query"), body)
                leaks.formUnion(world.leaks(answer, to: caller.who))
                code = answer.code ?? ""
                names += answer.names
                guard let marker = answer.json["continuationMarker"]?.string else { break }
                body = body.with(["continuationMarker": .string(marker)])
            }
            // Closed to those who could not even read what they made themselves.
            let mayAny = may("r", caller.who, kind.grants, madeBy: caller.who.user)
            let mayAll = may("r", caller.who, kind.grants, madeBy: nil)
            let isAllowed = form == .explained ? mayAll : mayAny
            let found = isAllowed ? matches(form, kind).filter { world.mayRead(caller.who, $0.name) } : []
            var faults: [String] = leaks.sorted().map { "shows the secret of \($0)" }
            if code != (isAllowed ? "" : "ACCESS_DENIED") { faults.append("allowed: \(isAllowed), got '\(code)'") }
            if names.sorted() != found.map(\.name).sorted() {
                faults.append("found \(names.sorted()), where \(found.map(\.name).sorted()) is right")
            }
            tally.cell("\(world.environment) \(caller.name) query \(form) \(kind.label)", faults)
        }
    }
}
