import Authorization
import Foundation
import RecordModel

// What queries must find.
extension Workbook {
    struct Query: Sendable {
        var filters: [Filter] = []
        var sorts: [Sort] = []
    }

    /// Of the private database, or of one zone, those that may be read.
    func found(by query: Query, in zone: Int?, by person: Person) -> [Entry] {
        zones.indices.filter { zone == nil ? !zones[$0].isPublic && zones[$0].isThere : $0 == zone }.flatMap { place in
            zones[place].entries.values.filter { mayRead(person, $0, in: zones[place]) && query.matches($0) }
        }.sorted { $0.name < $1.name }
    }

    /// A query of any kind.
    func newQuery(in zone: Zone, _ world: World) -> Query {
        var query = Query()
        if world.chance(15) {
            // Many have this maker, and few a value in the range: pages may begin one way and go on another.
            let user = world.pick(people.prefix(zone.isPublic ? 3 : 1).map(\.caller.stampName))
            let maker = FieldValue.reference(Reference(recordName: user))
            query.filters = [
                Filter(field: "___createdBy", comparator: .equals, value: maker), newComparison(in: zone, world),
            ]
            return query
        }
        for _ in 0..<world.pick([0, 1, 1, 1, 2, 3]) { query.filters.append(newFilter(in: zone, world)) }
        for _ in 0..<world.pick([0, 0, 1, 1, 2]) {
            let field = world.pick([
                "number", "size", "day", "label", "data", Self.place, "___createTime", "___modTime",
            ])
            guard !query.sorts.contains(where: { $0.field == field }) else { continue }
            let origin = field == Self.place ? world.pick(Self.places) : nil
            query.sorts.append(Sort(field: field, isAscending: world.chance(50), relativeLocation: origin))
        }
        // Then no two are equal.
        if !query.sorts.isEmpty || world.chance(30), world.chance(60) {
            query.sorts.append(Sort(field: Self.rank, isAscending: world.chance(50)))
        }
        return query
    }

    private func newFilter(in zone: Zone, _ world: World) -> Filter {
        let single = Self.ordered + [Self.owner, "___recordID", "___createdBy", "___modifiedBy", Self.parent]
        switch world.random(0...9) {
        case 0..<2:
            let field = world.pick(single)
            return Filter(
                field: field, comparator: world.pick([.equals, .notEquals]), value: wanted(field, in: zone, world))
        case 2..<4:
            let field = world.pick(single)
            let value = list(field, in: zone, world)
            return Filter(field: field, comparator: world.pick([.in, .in, .notIn]), value: value)
        case 4..<6: return newComparison(in: zone, world)
        case 6:
            return Filter(
                field: "label", comparator: world.pick([.beginsWith, .notBeginsWith]),
                value: .string(world.pick(["r", "red", "redd", "b", ""])))
        case 7:
            return Filter(
                field: Self.place, comparator: .near, value: .location(world.pick(Self.places)),
                distance: world.pick(Self.distances))
        case 8:
            return Filter(
                field: world.pick(["label", "text", nil]),
                comparator: world.pick([.containsAllTokens, .containsAnyTokens]), value: .string(newWords(world)))
        default: return newListFilter(in: zone, world)
        }
    }

    private func newComparison(in zone: Zone, _ world: World) -> Filter {
        let field = world.pick(Self.ordered)
        let comparators: [RecordModel.Comparator] = [
            .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals,
        ]
        return Filter(field: field, comparator: world.pick(comparators), value: wanted(field, in: zone, world))
    }

    /// Words to look for, of which one often begins another.
    private func newWords(_ world: World) -> String {
        let most = world.pick(Self.words + ["none"])
        let words = (0..<world.pick([1, 2, 2, 3])).map { _ -> String in
            let word = world.chance(50) ? most : world.pick(Self.words)
            return world.chance(50) ? word.prefix(world.random(1...word.count)) + "*" : word
        }
        let text = words.joined(separator: " ")
        return world.chance(20) ? text.uppercased() : text
    }

    /// Fields whose values have an order.
    private static let ordered = ["number", rank, "size", "day", "label", "data", "___createTime", "___modTime"]

    private func list(_ field: String, in zone: Zone, _ world: World) -> FieldValue {
        let members = (0..<world.random(1...3)).map { _ in wanted(field, in: zone, world) }
        return .list(Self.types[field]?.scalar ?? .string, members)
    }

    /// A value to look for; of a list a member.
    private func wanted(_ field: String, in zone: Zone, _ world: World) -> FieldValue {
        switch field {
        case Self.tags: .string(world.pick(Self.members))
        case Self.owner, Self.owners, Self.parent, "___recordID":
            .reference(Reference(recordName: world.pick(zone.names)))
        case "___createdBy", "___modifiedBy":
            .reference(Reference(recordName: world.pick(people).caller.stampName))
        case "___createTime", "___modTime":
            .timestamp(zone.entries.values.map(\.created.timestamp).min() ?? 0)
        default: newValue(field, in: zone, world)
        }
    }

    private func newListFilter(in zone: Zone, _ world: World) -> Filter {
        if world.chance(20) {
            return Filter(
                field: Self.tags, comparator: world.pick([.listMemberBeginsWith, .notListMemberBeginsWith]),
                value: .string(world.pick(["x", "xy", "z"])))
        }
        let field = world.pick([Self.tags, Self.owners])
        let ofOne: [RecordModel.Comparator] = [.listContains, .notListContains]
        let ofMany: [RecordModel.Comparator] = [
            .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny,
        ]
        let comparator = world.pick(ofOne + ofMany)
        return Filter(
            field: field, comparator: comparator,
            value: ofOne.contains(comparator) ? wanted(field, in: zone, world) : list(field, in: zone, world))
    }
}

extension Workbook.Entry {
    /// The values that a filter or a sort key compares: one, or those of a list, or none.
    fileprivate func values(_ field: String) -> [FieldValue] {
        switch field {
        case "___recordID": return [.reference(Reference(recordName: name))]
        case "___createdBy": return [.reference(Reference(recordName: created.user))]
        case "___modifiedBy": return [.reference(Reference(recordName: modified.user))]
        case "___createTime": return [.timestamp(created.timestamp)]
        case "___modTime": return [.timestamp(modified.timestamp)]
        default:
            guard let value = fields[field] else { return [] }
            if case .list(_, let members) = value { return members }
            return [value]
        }
    }
}

extension Workbook.Query {
    func matches(_ entry: Workbook.Entry) -> Bool { filters.allSatisfy { $0.matches(entry) } }

    /// Whether one record may come before another.
    func allows(_ one: Workbook.Entry, before next: Workbook.Entry) -> Bool {
        for sort in sorts {
            let order = sort.order(one, next)
            if order != 0 { return order < 0 }
        }
        return true
    }

    func write(_ type: String, to writer: inout JSONWriter) {
        writer.member("recordType", type)
        writer.key("filterBy")
        writer.array { writer in for filter in filters { filter.write(to: &writer) } }
        writer.key("sortBy")
        writer.array { writer in
            for sort in sorts {
                writer.object { writer in
                    writer.member("fieldName", sort.field)
                    writer.member("ascending", sort.isAscending)
                    guard let origin = sort.relativeLocation else { return }
                    writer.key("relativeLocation")
                    writer.value(.location(origin), numbersAsStrings: false)
                }
            }
        }
    }
}

extension Filter {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("comparator", comparator.rawValue)
            if let field { writer.member("fieldName", field) }
            writer.key("fieldValue")
            writer.object { writer in
                writer.key("value")
                writer.value(value, numbersAsStrings: false)
            }
            if let distance { writer.member("distance", number: distance) }
        }
    }

    private var wanted: [FieldValue] {
        if case .list(_, let members) = value { return members }
        return [value]
    }

    private var text: String { if case .string(let text) = value { text } else { "" } }

    fileprivate func matches(_ entry: Workbook.Entry) -> Bool {
        guard let field else { return hasWords(["label", "text"].flatMap(entry.values)) }
        let values = entry.values(field)
        func has(_ wanted: FieldValue) -> Bool { values.contains { $0.order(wanted) == 0 } }
        func compares(_ isRight: (Int) -> Bool) -> Bool { values.contains { isRight($0.order(value)) } }
        func begins() -> Bool {
            values.contains { if case .string(let value) = $0 { value.utf8.starts(with: text.utf8) } else { false } }
        }
        switch comparator {
        case .equals, .in, .listContains, .listContainsAny: return wanted.contains(where: has)
        case .notEquals, .notIn, .notListContains, .notListContainsAny: return !wanted.contains(where: has)
        case .listContainsAll: return wanted.allSatisfy(has)
        case .notListContainsAll: return !wanted.allSatisfy(has)
        case .lessThan: return compares { $0 < 0 }
        case .lessThanOrEquals: return compares { $0 <= 0 }
        case .greaterThan: return compares { $0 > 0 }
        case .greaterThanOrEquals: return compares { $0 >= 0 }
        case .beginsWith, .listMemberBeginsWith: return begins()
        case .notBeginsWith, .notListMemberBeginsWith: return !begins()
        case .near:
            return values.contains { $0.distance(to: value).map { $0 <= distance ?? 0 } ?? false }
        case .containsAllTokens, .containsAnyTokens: return hasWords(values)
        }
    }

    private func hasWords(_ values: [FieldValue]) -> Bool {
        var all: [String] = []
        for case .string(let text) in values { all += Self.words(text) }
        let isThere = text.lowercased().split(separator: " ").map { word -> Bool in
            word.last == "*" ? all.contains { $0.hasPrefix(word.dropLast()) } : all.contains(String(word))
        }
        return comparator == .containsAllTokens ? isThere.allSatisfy { $0 } : isThere.contains(true)
    }

    private static func words(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}

extension Sort {
    /// Below 0 where the first comes first.
    fileprivate func order(_ one: Workbook.Entry, _ next: Workbook.Entry) -> Int {
        let (left, right) = (one.values(field).first, next.values(field).first)
        // Without a value first where values ascend, and last where distances do.
        let missing = isAscending == (relativeLocation == nil) ? -1 : 1
        guard let left, let right else { return left == nil ? (right == nil ? 0 : missing) : -missing }
        var order = left.order(right)
        if let origin = relativeLocation.map(FieldValue.location) {
            let (near, far) = (left.distance(to: origin) ?? 0, right.distance(to: origin) ?? 0)
            order = left == right ? 0 : near < far ? -1 : 1
        }
        return isAscending ? order : -order
    }
}

extension FieldValue {
    /// Below 0 where it comes before another of its type, which is compared by bytes or as a number.
    fileprivate func order(_ other: FieldValue) -> Int {
        func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int { left < right ? -1 : left > right ? 1 : 0 }
        func bytes(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Int {
            left.lexicographicallyPrecedes(right) ? -1 : right.lexicographicallyPrecedes(left) ? 1 : 0
        }
        return switch (self, other) {
        case (.int64(let left), .int64(let right)), (.timestamp(let left), .timestamp(let right)): order(left, right)
        case (.double(let left), .double(let right)): order(left, right)
        case (.string(let left), .string(let right)): bytes(left.utf8, right.utf8)
        case (.bytes(let left), .bytes(let right)): bytes(left, right)
        case (.reference(let left), .reference(let right)): bytes(left.recordName.utf8, right.recordName.utf8)
        default: 1
        }
    }

    /// Metres between two places.
    fileprivate func distance(to other: FieldValue) -> Double? {
        guard case .location(let one) = self, case .location(let next) = other else { return nil }
        let (up, down) = (one.latitude * .pi / 180, next.latitude * .pi / 180)
        let (north, east) = (down - up, (next.longitude - one.longitude) * .pi / 180)
        let half = sin(north / 2) * sin(north / 2) + cos(up) * cos(down) * sin(east / 2) * sin(east / 2)
        return 2 * 6_371_000 * asin(half.squareRoot())
    }
}
