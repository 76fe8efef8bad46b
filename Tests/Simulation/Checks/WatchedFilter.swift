/// What a watched record holds beside its kind and its value.
struct WatchedContent: Hashable, Sendable {
    var number: Int?
    /// Words with spaces between them.
    var text: String?
    var labels: [String]?
    /// Degrees on one meridian.
    var latitude: Int?
}

/// A condition of a subscription's query, and what it comes to. What a record lacks meets negative conditions alone.
enum WatchedFilter: Hashable, Sendable {
    case kind(String, [String])
    case number(String, [Int])
    case words(String, [String])
    case labels(String, [String])
    case near(latitude: Int, kilometres: Int)

    private static let kinds = ["k0", "k1", "k2"]
    static let allWords = ["apple", "pear", "plum", "quince"]
    static let allLabels = ["red", "reddish", "blue", "green"]

    /// One that types with all fields take, or one of a kind alone.
    static func random(hasAllFields: Bool, using world: World) -> WatchedFilter {
        func some<Value>(_ values: [Value], _ count: Int) -> [Value] {
            Array(values.shuffled(using: &world.generator).prefix(count))
        }
        switch hasAllFields ? world.random(0...9) : 0 {
        case 0..<3:
            let comparator = world.pick(["EQUALS", "NOT_EQUALS", "IN", "NOT_IN", "BEGINS_WITH", "NOT_BEGINS_WITH"])
            if comparator.hasSuffix("BEGINS_WITH") { return .kind(comparator, [world.pick(["k", "k1", "K"])]) }
            return .kind(comparator, some(kinds, comparator.hasSuffix("IN") ? 2 : 1))
        case 3..<6:
            let comparator = world.pick([
                "EQUALS", "NOT_EQUALS", "IN", "NOT_IN", "LESS_THAN", "LESS_THAN_OR_EQUALS", "GREATER_THAN",
                "GREATER_THAN_OR_EQUALS",
            ])
            return .number(comparator, some(Array(-2...3), comparator.hasSuffix("IN") ? 2 : 1))
        case 6:
            return .words(
                world.chance(50) ? "CONTAINS_ALL_TOKENS" : "CONTAINS_ANY_TOKENS", some(allWords, world.random(1...2)))
        case 7..<9:
            let comparator = world.pick([
                "LIST_CONTAINS", "NOT_LIST_CONTAINS", "LIST_CONTAINS_ALL", "NOT_LIST_CONTAINS_ALL",
                "LIST_CONTAINS_ANY", "NOT_LIST_CONTAINS_ANY", "LIST_MEMBER_BEGINS_WITH", "NOT_LIST_MEMBER_BEGINS_WITH",
            ])
            return .labels(comparator, some(allLabels, isOfList(comparator) ? 2 : 1))
        default: return .near(latitude: world.random(-2...2), kilometres: world.pick([50, 150, 300]))
        }
    }

    /// Whether a comparator takes several values.
    private static func isOfList(_ comparator: String) -> Bool {
        ["_ALL", "_ANY", "IN"].contains { comparator.hasSuffix($0) }
    }

    func holds(_ change: WatchedHistory.Change) -> Bool {
        switch self {
        case .kind(let comparator, let values): Self.holds(change.kind, comparator, values)
        case .number(let comparator, let values): Self.holds(change.content.number, comparator, values)
        case .words(let comparator, let words): Self.holds(text: change.content.text, comparator, words)
        case .labels(let comparator, let values): Self.holds(change.content.labels ?? [], comparator, values)
        case .near(let latitude, let kilometres):
            // A degree is 111 km, and no bound comes near a number of these.
            change.content.latitude.map { abs($0 - latitude) * 111 <= kilometres } ?? false
        }
    }

    private static func holds(_ kind: String?, _ comparator: String, _ values: [String]) -> Bool {
        if comparator.hasPrefix("NOT_") { return !holds(kind, String(comparator.dropFirst(4)), values) }
        guard let kind else { return false }
        return comparator == "BEGINS_WITH" ? kind.hasPrefix(values[0]) : values.contains(kind)
    }

    private static func holds(_ number: Int?, _ comparator: String, _ values: [Int]) -> Bool {
        if comparator.hasPrefix("NOT_") { return !holds(number, String(comparator.dropFirst(4)), values) }
        guard let number else { return false }
        return switch comparator {
        case "LESS_THAN": number < values[0]
        case "LESS_THAN_OR_EQUALS": number <= values[0]
        case "GREATER_THAN": number > values[0]
        case "GREATER_THAN_OR_EQUALS": number >= values[0]
        default: values.contains(number)
        }
    }

    private static func holds(text: String?, _ comparator: String, _ words: [String]) -> Bool {
        let present = Set((text ?? "").split(separator: " ").map(String.init))
        return comparator == "CONTAINS_ALL_TOKENS"
            ? present.isSuperset(of: words) : !present.isDisjoint(with: words)
    }

    private static func holds(_ labels: [String], _ comparator: String, _ values: [String]) -> Bool {
        if comparator.hasPrefix("NOT_") { return !holds(labels, String(comparator.dropFirst(4)), values) }
        return switch comparator {
        case "LIST_MEMBER_BEGINS_WITH": labels.contains { $0.hasPrefix(values[0]) }
        case "LIST_CONTAINS_ALL": Set(labels).isSuperset(of: values)
        default: !Set(labels).isDisjoint(with: values)
        }
    }

    /// The filter as a client sends it.
    var form: String {
        func form(_ field: String, _ comparator: String, _ values: [String]) -> String {
            let value = Self.isOfList(comparator) ? "[\(values.joined(separator: ","))]" : values[0]
            return #"{"fieldName":"\#(field)","comparator":"\#(comparator)","fieldValue":{"value":\#(value)}}"#
        }
        func quoted(_ values: [String]) -> [String] { values.map { "\"\($0)\"" } }
        return switch self {
        case .kind(let comparator, let values): form(Place.kindField, comparator, quoted(values))
        case .number(let comparator, let values): form(Place.numberField, comparator, values.map { "\($0)" })
        case .words(let comparator, let words):
            form(Place.textField, comparator, quoted([words.joined(separator: " ")]))
        case .labels(let comparator, let values): form(Place.labelsField, comparator, quoted(values))
        case .near(let latitude, let kilometres):
            #"{"fieldName":"\#(Place.placeField)","comparator":"NEAR","distance":\#(kilometres * 1_000),"#
                + #""fieldValue":{"value":{"latitude":\#(latitude),"longitude":10}}}"#
        }
    }
}
