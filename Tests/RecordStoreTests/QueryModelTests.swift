import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

/// Random records, filters, sorts and pages against a twin that looks at every record.
@Suite("records/query: against a naive twin")
struct QueryModelTests {
    @Test("finds the same records in an order that the sorts allow, each once, at every page size", arguments: 1...3)
    func model(_ seed: UInt64) throws {
        var random = Random(seed)
        let shard = try Fixture()
        let zone = Fixture.annsDefault
        var model: [String: Fields] = [:]
        var step = 0
        try shard.queue.write { db in
            let transaction = try shard.tables.begin(in: db)
            for _ in 0..<300 {
                step += 1
                let name = "r\(Int.random(in: 0..<90, using: &random))"
                let kind: RecordChange.Kind = Int.random(in: 0..<5, using: &random) == 0 ? .forceDelete : .forceUpdate
                let changes = kind == .forceDelete ? [] : Self.fields(&random)
                if kind == .forceDelete {
                    model[name] = nil
                } else {
                    var fields = model[name] ?? Fields()
                    for (field, value) in changes { fields[field] = value }
                    model[name] = fields
                }
                let command = ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Fixture.ann, time: Int64(step),
                    operations: [.make(kind, name, changes)])
                #expect(try transaction.apply(.modifyRecords(command)).codes == [nil])
            }
            try transaction.finish()
        }
        for _ in 0..<40 {
            let query = Self.query(&random)
            let expected = model.filter { _, fields in query.filters.allSatisfy { Twin.holds($0, fields) } }
            let size = [1, 2, 3, 7, 200].randomElement(using: &random) ?? 1
            let names = try shard.names(zone, query, limit: size)
            #expect(names.sorted() == expected.keys.sorted(), "\(query) by \(size)")
            for (left, right) in zip(names, names.dropFirst()) {
                guard let left = model[left], let right = model[right] else { continue }
                #expect(Twin.allows(left, before: right, query.sorts), "\(query) by \(size)")
            }
            #expect(try shard.names(zone, query) == names, "\(query): the order depends on the page size \(size)")
        }
    }

    static func value(_ field: String, _ random: inout Random) -> FieldValue {
        let number = Int64.random(in: -2...3, using: &random)
        return switch field {
        case "rank": .int64(number)
        case "score": .double(Double(number) / 2)
        case "due": .timestamp(number)
        case "data": .bytes([UInt8](repeating: 0xFF, count: Int(number + 2)))
        case "list": .reference(Reference(recordName: "x\(number)"))
        default: .string(["", "a", "ab", "b", "\u{E9}", "a\0", "\u{10FFFF}z"].randomElement(using: &random) ?? "")
        }
    }

    static let scalars = ["rank", "score", "due", "data", "list", "text"]

    static func fields(_ random: inout Random) -> [(String, FieldValue?)] {
        var fields: [(String, FieldValue?)] = []
        for name in scalars where Bool.random(using: &random) {
            fields.append((name, Int.random(in: 0..<4, using: &random) == 0 ? nil : value(name, &random)))
        }
        if Bool.random(using: &random) {
            let members = (0..<Int.random(in: 0...3, using: &random)).map { _ in value("tags", &random) }
            fields.append(("tags", .list(.string, members)))
        }
        return fields
    }

    static func query(_ random: inout Random) -> Query {
        var query = Query(recordType: "Note")
        for _ in 0..<Int.random(in: 0...2, using: &random) { query.filters.append(filter(&random)) }
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let field = scalars.randomElement(using: &random) ?? "rank"
            query.sorts.append(Sort(field: field, isAscending: Bool.random(using: &random)))
        }
        return query
    }

    static func filter(_ random: inout Random) -> Filter {
        let isList = Int.random(in: 0..<5, using: &random) == 0
        let field = isList ? "tags" : scalars.randomElement(using: &random) ?? "rank"
        var comparators: [Comparator] = [
            .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals, .in, .notIn,
        ]
        if field == "text" { comparators += [.beginsWith, .notBeginsWith] }
        if isList {
            comparators = [
                .listContains, .notListContains, .listContainsAll, .notListContainsAll, .listContainsAny,
                .notListContainsAny, .listMemberBeginsWith, .notListMemberBeginsWith,
            ]
        }
        let comparator = comparators.randomElement(using: &random) ?? .equals
        let value = value(field, &random)
        switch comparator {
        case .in, .notIn, .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny:
            return Filter(
                field: field, comparator: comparator,
                value: .list(value.type.scalar, [value, Self.value(field, &random), value]))
        default: return Filter(field: field, comparator: comparator, value: value)
        }
    }
}

/// What queries mean, said as plainly as possible.
enum Twin {
    static func holds(_ filter: Filter, _ fields: Fields) -> Bool {
        let stored = fields[filter.field]
        var wanted: [FieldValue] { if case .list(_, let all) = filter.value { all } else { [filter.value] } }
        var members: [FieldValue] { if case .list(_, let all)? = stored { all } else { [] } }
        func begins(_ value: FieldValue?) -> Bool {
            guard case .string(let text)? = value, case .string(let prefix) = filter.value else { return false }
            return Array(text.utf8).starts(with: Array(prefix.utf8))
        }
        func order(_ test: (Int) -> Bool) -> Bool { stored.map { test(compare($0, filter.value)) } ?? false }
        return switch filter.comparator {
        case .equals: stored == filter.value
        case .notEquals: stored != filter.value
        case .lessThan: order { $0 < 0 }
        case .lessThanOrEquals: order { $0 <= 0 }
        case .greaterThan: order { $0 > 0 }
        case .greaterThanOrEquals: order { $0 >= 0 }
        case .in: stored.map(wanted.contains) ?? false
        case .notIn: !(stored.map(wanted.contains) ?? false)
        case .beginsWith: begins(stored)
        case .notBeginsWith: !begins(stored)
        case .listContains: members.contains(filter.value)
        case .notListContains: !members.contains(filter.value)
        case .listContainsAll: wanted.allSatisfy(members.contains)
        case .notListContainsAll: !wanted.allSatisfy(members.contains)
        case .listContainsAny: wanted.contains(where: members.contains)
        case .notListContainsAny: !wanted.contains(where: members.contains)
        case .listMemberBeginsWith: members.contains(where: begins)
        case .notListMemberBeginsWith: !members.contains(where: begins)
        default: false
        }
    }

    static func allows(_ left: Fields, before right: Fields, _ sorts: [Sort]) -> Bool {
        for sort in sorts {
            let order: Int
            switch (left[sort.field], right[sort.field]) {
            case (nil, nil): order = 0
            case (nil, _): order = -1
            case (_, nil): order = 1
            case (let left?, let right?): order = compare(left, right)
            }
            if order != 0 { return (order < 0) == sort.isAscending }
        }
        return true
    }

    static func compare(_ left: FieldValue, _ right: FieldValue) -> Int {
        func sign<Value: Comparable>(_ left: Value, _ right: Value) -> Int { left < right ? -1 : left > right ? 1 : 0 }
        func sign(_ left: [UInt8], _ right: [UInt8]) -> Int {
            left.lexicographicallyPrecedes(right) ? -1 : left == right ? 0 : 1
        }
        return switch (left, right) {
        case (.int64(let left), .int64(let right)), (.timestamp(let left), .timestamp(let right)): sign(left, right)
        case (.double(let left), .double(let right)): sign(left, right)
        case (.string(let left), .string(let right)): sign(Array(left.utf8), Array(right.utf8))
        case (.bytes(let left), .bytes(let right)): sign(left, right)
        case (.reference(let left), .reference(let right)):
            sign(Array(left.recordName.utf8), Array(right.recordName.utf8))
        default: 0
        }
    }
}
