import Foundation
import RecordModel

/// A record as the twin keeps it.
struct TwinRecord {
    var zone: String
    var name: String
    /// Those of the record, and the system fields under their schema names.
    var fields: Fields
}

/// What queries mean, said as plainly as possible: every record is looked at, and no index.
enum QueryTwin {
    static func holds(_ filter: Filter, _ fields: Fields, searchable: [String]) -> Bool {
        switch filter.comparator {
        case .near: return isNear(filter, fields)
        case .containsAllTokens, .containsAnyTokens:
            let found = Set((filter.field.map { [$0] } ?? searchable).flatMap { tokens(fields[$0]) })
            guard case .string(let text) = filter.value else { return false }
            let words = text.split(separator: " ").map { word in
                let isPrefix = word.hasSuffix("*")
                return TwinWords.tokens(of: String(isPrefix ? word.dropLast() : word)).map { ($0, isPrefix) }
            }.flatMap(\.self)
            func has(_ word: (String, Bool)) -> Bool {
                word.1 ? found.contains { Array($0.utf8).starts(with: Array(word.0.utf8)) } : found.contains(word.0)
            }
            return filter.comparator == .containsAllTokens ? words.allSatisfy(has) : words.contains(where: has)
        default: return holdsOnValues(filter, fields)
        }
    }

    private static func holdsOnValues(_ filter: Filter, _ fields: Fields) -> Bool {
        let stored = fields[filter.field ?? ""]
        var wanted: [FieldValue] { if case .list(_, let all) = filter.value { all } else { [filter.value] } }
        var members: [FieldValue] { if case .list(_, let all)? = stored { all } else { [] } }
        func same(_ left: FieldValue, _ right: FieldValue) -> Bool { compare(left, right) == 0 }
        func within(_ values: [FieldValue], _ value: FieldValue) -> Bool { values.contains { same($0, value) } }
        func begins(_ value: FieldValue?) -> Bool {
            guard case .string(let text)? = value, case .string(let prefix) = filter.value else { return false }
            return Array(text.utf8).starts(with: Array(prefix.utf8))
        }
        func order(_ test: (Int) -> Bool) -> Bool { stored.map { test(compare($0, filter.value)) } ?? false }
        return switch filter.comparator {
        case .equals: order { $0 == 0 }
        case .notEquals: !order { $0 == 0 }
        case .lessThan: order { $0 < 0 }
        case .lessThanOrEquals: order { $0 <= 0 }
        case .greaterThan: order { $0 > 0 }
        case .greaterThanOrEquals: order { $0 >= 0 }
        case .in: stored.map { within(wanted, $0) } ?? false
        case .notIn: !(stored.map { within(wanted, $0) } ?? false)
        case .beginsWith: begins(stored)
        case .notBeginsWith: !begins(stored)
        case .listContains: within(members, filter.value)
        case .notListContains: !within(members, filter.value)
        case .listContainsAll: wanted.allSatisfy { within(members, $0) }
        case .notListContainsAll: !wanted.allSatisfy { within(members, $0) }
        case .listContainsAny: wanted.contains { within(members, $0) }
        case .notListContainsAny: !wanted.contains { within(members, $0) }
        case .listMemberBeginsWith: members.contains(where: begins)
        case .notListMemberBeginsWith: !members.contains(where: begins)
        case .near, .containsAllTokens, .containsAnyTokens: false
        }
    }

    private static func isNear(_ filter: Filter, _ fields: Fields) -> Bool {
        guard case .location(let location)? = fields[filter.field ?? ""], case .location(let center) = filter.value
        else { return false }
        return metres(location, center) <= filter.distance ?? 0
    }

    private static func tokens(_ value: FieldValue?) -> [String] {
        switch value {
        case .string(let text): text.split(separator: " ").flatMap { TwinWords.tokens(of: String($0)) }
        case .list(_, let members): members.flatMap { tokens($0) }
        default: []
        }
    }

    /// By the chord through the earth: another formula than the store's.
    static func metres(_ left: Location, _ right: Location) -> Double {
        func point(_ place: Location) -> (Double, Double, Double) {
            let (latitude, longitude) = (place.latitude * .pi / 180, place.longitude * .pi / 180)
            return (cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude))
        }
        let (a, b) = (point(left), point(right))
        func squared(_ sign: Double) -> Double {
            let (x, y, z) = (a.0 + sign * b.0, a.1 + sign * b.1, a.2 + sign * b.2)
            return x * x + y * y + z * z
        }
        // Of the half chord and its complement the smaller one is exact.
        let chord = squared(-1).squareRoot() / 2
        let angle = chord < 0.7 ? 2 * asin(chord) : .pi - 2 * asin(min(squared(1).squareRoot() / 2, 1))
        return 6_371_008.8 * angle
    }

    /// Whether the sorts allow one record before another. Of two places whose distances differ by less than a
    /// millimetre either may come first: mirrored ones, or two names of a pole, differ by rounding alone.
    static func allows(_ left: Fields, before right: Fields, _ sorts: [Sort]) -> Bool {
        for sort in sorts {
            let order: Int
            switch (left[sort.field], right[sort.field]) {
            case (nil, nil): order = 0
            case (nil, _): return sort.relativeLocation == nil ? sort.isAscending : !sort.isAscending
            case (_, nil): return sort.relativeLocation == nil ? !sort.isAscending : sort.isAscending
            case (.location(let left)?, .location(let right)?):
                guard let place = sort.relativeLocation else { return false }
                let difference = metres(left, place) - metres(right, place)
                if left != right, abs(difference) < 0.001 { return true }
                order = difference < 0 ? -1 : difference > 0 ? 1 : 0
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
        default: 2
        }
    }
}

/// Words whose tokens are written down, not computed.
enum TwinWords {
    static let all: [(word: String, tokens: [String])] = [
        ("red", ["red"]), ("RED", ["red"]), ("redder", ["redder"]), ("blue,", ["blue"]),
        ("Blue-green", ["blue", "green"]),
        ("\u{C9}mile", ["emile"]), ("E\u{301}mile", ["emile"]), ("emile", ["emile"]), ("Stra\u{DF}e", ["strasse"]),
        ("\u{3A3}\u{391}\u{3A3}", ["\u{3C3}\u{3B1}\u{3C3}"]), ("\u{3C3}\u{3B1}\u{3C2}", ["\u{3C3}\u{3B1}\u{3C3}"]),
        ("\u{41F}\u{420}\u{418}\u{412}\u{415}\u{422}", ["\u{43F}\u{440}\u{438}\u{432}\u{435}\u{442}"]),
        ("\u{65E5}\u{672C}", ["\u{65E5}", "\u{672C}"]), ("\u{672C}red", ["\u{672C}", "red"]),
        ("\u{304B}\u{30AB}", ["\u{304B}", "\u{30AB}"]), ("a1", ["a1"]), ("1", ["1"]), ("!", []),
    ]

    static func tokens(of word: String) -> [String] {
        all.first { Array($0.word.utf8) == Array(word.utf8) }?.tokens ?? []
    }
}
