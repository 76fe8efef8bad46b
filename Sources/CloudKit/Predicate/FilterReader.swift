import Foundation
import RecordModel

/// Reads the filters of a query that another program made, as `FilterCompiler` would make them of a predicate: the
/// reverse of it.
struct FilterReader {
    /// The zone of references that name none.
    let zone: CKRecordZone.ID
    /// What a radius in the predicate is to be in.
    let distanceUnit: UnitLength

    /// The predicate that asks for what all of the filters ask for.
    /// - Throws: `invalidArguments` where no predicate says so.
    func predicate(_ filters: [JSONValue]) throws(CKError) -> NSPredicate {
        var nodes: [PredicateNode] = []
        for filter in filters { nodes += try read(filter) }
        return NSPredicate(.success(nodes.count == 1 ? nodes[0] : nodes.isEmpty ? .constant(true) : .and(nodes)))
    }

    /// What one filter asks for, all of which must hold.
    private func read(_ filter: JSONValue) throws(CKError) -> [PredicateNode] {
        guard let name = filter["comparator"]?.string, let comparator = RecordModel.Comparator(rawValue: name) else {
            throw Self.unsaid("the comparator \(filter["comparator"]?.string ?? "of a filter")")
        }
        let value = try value(filter["fieldValue"]?["value"] ?? .null, filter["fieldValue"]?["type"]?.string)
        if comparator.looksForWords { return [try words(comparator, filter, value)] }
        let field = try field(filter)
        if comparator == .near {
            guard let metres = filter["distance"].flatMap(Self.number) else { throw Self.unsaid("NEAR") }
            let distance = PredicateTerm.function(
                "distanceToLocation:fromLocation:", [.field(field), .value(value)])
            let radius = Measurement(value: metres, unit: UnitLength.meters).converted(to: distanceUnit).value
            return [Self.node(distance, .less, .value(.double(radius)))]
        }
        guard let comparison = Self.comparison(comparator) else {
            // The opposite of one that has a form.
            guard let opposite = comparator.negated else { throw Self.unsaid(name) }
            let nodes = try comparisons(opposite, field, value)
            if nodes.isEmpty { return [.constant(false)] }
            return [.not(nodes.count == 1 ? nodes[0] : .and(nodes), .none)]
        }
        guard comparison.takesList == value.isList else { throw Self.unsaid("\(name) of \(value.kind)") }
        return try comparisons(comparator, field, value)
    }

    private func comparisons(
        _ comparator: RecordModel.Comparator, _ field: String, _ value: PredicateValue
    ) throws(CKError) -> [PredicateNode] {
        guard let form = Self.comparison(comparator), form.takesList == value.isList else {
            throw Self.unsaid("\(comparator.rawValue) of \(value.kind)")
        }
        // A predicate asks for several members one by one.
        if comparator == .listContainsAll, case .list(let members) = value {
            return members.map { Self.node(.field(field), .equals, .value($0), quantifier: .anyOf) }
        }
        return [Self.node(.field(field), form.word, .value(value), quantifier: form.quantifier)]
    }

    private typealias Comparison = (
        word: PredicateOperator, quantifier: PredicateComparison.Quantifier?, takesList: Bool
    )

    /// How a predicate writes a comparator; nil for those that are written as the opposite of another, or in a way of
    /// their own.
    private static func comparison(_ comparator: RecordModel.Comparator) -> Comparison? {
        switch comparator {
        case .equals: (.equals, nil, false)
        case .notEquals: (.notEquals, nil, false)
        case .lessThan: (.less, nil, false)
        case .lessThanOrEquals: (.lessOrEquals, nil, false)
        case .greaterThan: (.greater, nil, false)
        case .greaterThanOrEquals: (.greaterOrEquals, nil, false)
        case .in: (.in, nil, true)
        case .beginsWith: (.beginsWith, nil, false)
        case .listContains: (.equals, .anyOf, false)
        case .listContainsAny: (.in, .anyOf, true)
        case .listContainsAll: (.equals, .anyOf, true)
        case .listMemberBeginsWith: (.beginsWith, .anyOf, false)
        case .notIn, .notBeginsWith, .notListContains, .notListContainsAny, .notListContainsAll,
            .notListMemberBeginsWith, .near, .containsAllTokens, .containsAnyTokens:
            nil
        }
    }

    private static func node(
        _ left: PredicateTerm, _ word: PredicateOperator, _ right: PredicateTerm,
        quantifier: PredicateComparison.Quantifier? = nil, options: String = ""
    ) -> PredicateNode {
        .comparison(
            PredicateComparison(
                quantifier: quantifier, left: left, comparator: word, options: options, right: right, mark: .none))
    }

    /// Words are looked for in one field, or in all where none is named.
    private func words(
        _ comparator: RecordModel.Comparator, _ filter: JSONValue, _ text: PredicateValue
    ) throws(CKError) -> PredicateNode {
        let name = filter["fieldName"]?.string
        let isEverywhere = name == "self" || name == "___self" || name == nil && filter["systemFieldName"] == nil
        let field = isEverywhere ? nil : try field(filter)
        if comparator == .containsAllTokens {
            return Self.node(.field(field ?? "allTokens"), .tokenMatches, .value(text), options: "cdl")
        }
        guard let field else { return Self.node(.itself, .contains, .value(text)) }
        let words = PredicateTerm.function("tokenize:using:", [.value(text), .value(.string("cdl"))])
        return Self.node(words, .in, .field(field), quantifier: .anyOf)
    }

    private func field(_ filter: JSONValue) throws(CKError) -> String {
        let (name, system) = (filter["fieldName"]?.string, filter["systemFieldName"]?.string)
        guard let key = QueryKey.key(field: name, systemField: system) else {
            throw Self.unsaid("the field \(name ?? system ?? "of a filter")")
        }
        return key
    }

    /// A value with its type, which clients may leave out.
    private func value(_ json: JSONValue, _ type: String?) throws(CKError) -> PredicateValue {
        switch json {
        case .array(let members):
            let type = type.map { $0.hasSuffix("_LIST") ? String($0.dropLast("_LIST".count)) : $0 }
            var values: [PredicateValue] = []
            for member in members { values.append(try value(member, type)) }
            return .list(values)
        case .bool(let flag): return .integer(flag ? 1 : 0)
        case .integer, .number: if let value = Self.numeric(json, type) { return value }
        case .string(let text):
            if type == "BYTES", let bytes = Base64.decode(text) { return .data(Data(bytes)) }
            if type == "INT64" || type == "DOUBLE" || type == "TIMESTAMP" {
                if let value = Self.numeric(json, type) { return value }
            } else {
                return .string(text)
            }
        case .object: if let value = place(json) { return value }
        case .null: break
        }
        throw Self.unsaid("a value" + (type.map { " of type \($0)" } ?? ""))
    }

    /// Numbers come as text, too, from clients whose own cannot hold them.
    private static func numeric(_ json: JSONValue, _ type: String?) -> PredicateValue? {
        if type == "TIMESTAMP" {
            return number(json).flatMap { Int64(exactly: $0.rounded()) }.map { .date(milliseconds: $0) }
        }
        if type != "DOUBLE" {
            if case .integer(let number) = json { return .integer(number) }
            if type == "INT64", let number = json.string.flatMap({ Int64($0) }) { return .integer(number) }
        }
        return number(json).map { .double($0) }
    }

    private static func number(_ json: JSONValue) -> Double? {
        (json.double ?? json.string.flatMap { Double($0) }).flatMap { $0.isFinite ? $0 : nil }
    }

    private func place(_ json: JSONValue) -> PredicateValue? {
        if let latitude = json["latitude"].flatMap(Self.number), let longitude = json["longitude"].flatMap(Self.number)
        {
            return .location(latitude: latitude, longitude: longitude)
        }
        guard let name = json["recordName"]?.string else { return nil }
        let other = json["zoneID"].flatMap(RecordReader.zoneID) ?? zone
        return .reference(recordName: name, zoneName: other.zoneName, ownerName: other.ownerName)
    }

    private static func unsaid(_ what: String) -> CKError {
        .invalidQuery(
            "another program asked for something that no predicate says: \(what). Delete the subscription by its ID, "
                + "or change it with that program")
    }
}
