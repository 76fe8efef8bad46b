import RecordModel
import RecordStore

/// Random records and queries, of values so few that they meet.
enum QueryInputs {
    static let scalars = ["rank", "score", "due", "data", "list", "text", "half"]
    static let lists = ["tags", "nums", "links", "notes"]
    static let systems = [
        "___recordID", "___createTime", "___modTime", "___createdBy", "___modifiedBy", "___parent",
    ]

    static func value(_ field: String, _ random: inout Random) -> FieldValue {
        let number = Int64.random(in: -2...3, using: &random)
        switch field {
        case "rank", "nums": return .int64([.min, .max, number, number, number].randomElement(using: &random) ?? 0)
        case "half": return .int64(number & 1)
        case "score":
            return .double([.infinity, -0.0, Double(number) / 2, Double(number)].randomElement(using: &random) ?? 0)
        case "due": return .timestamp(number)
        case "data": return .bytes([UInt8](repeating: number == 0 ? 0 : 0xFF, count: Int(number + 2)))
        case "list", "links", "___parent": return .reference(Reference(recordName: "x\(number)"))
        case "___recordID": return .reference(Reference(recordName: "r\(Int.random(in: 0..<60, using: &random))"))
        case "___createTime", "___modTime": return .timestamp(Int64.random(in: 1_000..<1_300, using: &random))
        case "___createdBy", "___modifiedBy":
            return .reference(Reference(recordName: number == 0 ? "_bob" : "_ann"))
        case "place": return .location(place(&random))
        case "body", "notes": return .string(text(&random))
        default:
            if Bool.random(using: &random) { return .string(text(&random)) }
            return .string(
                ["", "a", "ab", "b", "\u{E9}", "a\0", "\u{10FFFF}z"].randomElement(using: &random) ?? "")
        }
    }

    static func text(_ random: inout Random) -> String {
        (0..<Int.random(in: 0...4, using: &random)).map { _ in
            TwinWords.all.randomElement(using: &random)?.word ?? ""
        }.joined(separator: " ")
    }

    /// Poles, the date line, and clusters of a few metres.
    static func place(_ random: inout Random) -> Location {
        let latitudes: [Double] = [-90, 90, 0, 89.9999, 48.2, 48.20001, Double.random(in: -90...90, using: &random)]
        let longitudes: [Double] = [
            -180, 180, 0, 179.9999, -179.9999, 16.37, Double.random(in: -180...180, using: &random),
        ]
        return Location(
            latitude: latitudes.randomElement(using: &random) ?? 0,
            longitude: longitudes.randomElement(using: &random) ?? 0)
    }

    static func fields(_ random: inout Random) -> [(String, FieldValue?)] {
        var fields: [(String, FieldValue?)] = []
        for name in scalars + ["place", "body"] where Bool.random(using: &random) {
            fields.append((name, Int.random(in: 0..<4, using: &random) == 0 ? nil : value(name, &random)))
        }
        for name in lists where Bool.random(using: &random) {
            let members = (0..<Int.random(in: 0...3, using: &random)).map { _ in value(name, &random) }
            let type: ScalarType = name == "nums" ? .int64 : name == "links" ? .reference : .string
            fields.append((name, .list(type, members)))
        }
        return fields
    }

    static func query(_ random: inout Random) -> Query {
        var query = Query(recordType: "Note")
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            // Several ranges of one field, sorted by that field.
            let field = scalars.randomElement(using: &random) ?? "rank"
            query.filters = [many(field, .in, &random)]
            query.sorts = [Sort(field: field, isAscending: Bool.random(using: &random))]
            return query
        case 1:
            // Many rows under one key, and few in a range of another field.
            query.filters = [
                Filter(field: "half", comparator: .equals, value: value("half", &random)),
                Filter(field: "rank", comparator: .lessThan, value: .int64(Int64.random(in: 0...2, using: &random))),
            ]
            return query
        default: break
        }
        for _ in 0..<Int.random(in: 0...3, using: &random) { query.filters.append(filter(&random)) }
        for _ in 0..<([0, 0, 1, 1, 2, 3].randomElement(using: &random) ?? 0) {
            let isAscending = Bool.random(using: &random)
            if Int.random(in: 0..<5, using: &random) == 0 {
                query.sorts.append(
                    Sort(field: "place", isAscending: isAscending, relativeLocation: place(&random)))
            } else {
                let field = (scalars + ["half", "half"] + systems).randomElement(using: &random) ?? "rank"
                query.sorts.append(Sort(field: field, isAscending: isAscending))
            }
        }
        return query
    }

    static func filter(_ random: inout Random) -> Filter {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: return scalarFilter(&random)
        case 5, 6: return listFilter(&random)
        case 7:
            let radii: [Double] = [0.5, 20, 2_000, 1_000_000, 12_000_000, 20_100_000]
            let metres = radii.randomElement(using: &random) ?? 1
            return Filter(
                field: "place", comparator: .near, value: .location(place(&random)),
                distance: metres * Double.random(in: 0.5...1.1, using: &random))
        default: return tokenFilter(&random)
        }
    }

    private static func scalarFilter(_ random: inout Random) -> Filter {
        let field = (scalars + scalars + systems).randomElement(using: &random) ?? "rank"
        var comparators: [Comparator] = [
            .equals, .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals, .in, .notIn,
        ]
        if field == "text" { comparators += [.beginsWith, .notBeginsWith] }
        let comparator = comparators.randomElement(using: &random) ?? .equals
        if comparator == .in || comparator == .notIn { return many(field, comparator, &random) }
        return Filter(field: field, comparator: comparator, value: value(field, &random))
    }

    private static func listFilter(_ random: inout Random) -> Filter {
        let field = lists.randomElement(using: &random) ?? "tags"
        var comparators: [Comparator] = [
            .listContains, .notListContains, .listContainsAll, .notListContainsAll, .listContainsAny,
            .notListContainsAny,
        ]
        if field == "tags" || field == "notes" { comparators += [.listMemberBeginsWith, .notListMemberBeginsWith] }
        let comparator = comparators.randomElement(using: &random) ?? .listContains
        switch comparator {
        case .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny:
            return many(field, comparator, &random)
        default: return Filter(field: field, comparator: comparator, value: value(field, &random))
        }
    }

    private static func many(_ field: String, _ comparator: Comparator, _ random: inout Random) -> Filter {
        let values = (0..<Int.random(in: 0...3, using: &random)).map { _ in value(field, &random) }
        return Filter(
            field: field, comparator: comparator, value: .list(value(field, &random).type.scalar, values))
    }

    /// The words are the twin's, each alone between spaces; some as a prefix.
    private static func tokenFilter(_ random: inout Random) -> Filter {
        let words = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            let word = TwinWords.all.filter { $0.tokens.count == 1 }.randomElement(using: &random)?.word ?? "red"
            return word + (Int.random(in: 0..<3, using: &random) == 0 && word.last?.isLetter == true ? "*" : "")
        }
        return Filter(
            field: (QueryWorld.searchable + [nil]).randomElement(using: &random) ?? nil,
            comparator: Bool.random(using: &random) ? .containsAllTokens : .containsAnyTokens,
            value: .string(words.joined(separator: " ")))
    }
}
