import CoreLocation
import Foundation
import RecordModel

/// What a predicate says, read from its format or from the objects that it was put together of.
///
/// Invariants: `and` and `or` have two or more members. The depth is bounded by `PredicateLimits.depthMax`, so that
/// walks over it may recurse.
indirect enum PredicateNode: Sendable, Equatable {
    case constant(Bool)
    case comparison(PredicateComparison)
    case not(PredicateNode, PredicateMark)
    case and([PredicateNode])
    case or([PredicateNode], PredicateMark)
}

/// One comparison, such as `ANY tags = 'red'`.
struct PredicateComparison: Sendable, Equatable {
    /// How many members of the left side must compare.
    enum Quantifier: String, Sendable, CaseIterable {
        /// `SOME` is another word for it.
        case anyOf = "ANY"
        case allOf = "ALL"
        case noneOf = "NONE"
    }

    var quantifier: Quantifier?
    var left: PredicateTerm
    var comparator: PredicateOperator
    /// The letters in brackets behind the operator, in lower case and as written, such as `cd`.
    var options = ""
    var right: PredicateTerm
    var mark: PredicateMark
}

/// The operators that the format knows; the raw value is how they are printed.
enum PredicateOperator: String, Sendable, CaseIterable {
    case equals = "=="
    case notEquals = "!="
    case less = "<"
    case lessOrEquals = "<="
    case greater = ">"
    case greaterOrEquals = ">="
    case between = "BETWEEN"
    case `in` = "IN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
    case tokenMatches = "TOKENMATCHES"
}

indirect enum PredicateTerm: Sendable, Equatable {
    case value(PredicateValue)
    /// A field of the record, by the name that the format has.
    case field(String)
    /// `a.b`: recognised to say why it is refused.
    case keyPath([String])
    case itself
    /// `{...}` with members that are not all values.
    case list([PredicateTerm])
    /// A function by its name with colons, `now` or `distanceToLocation:fromLocation:`.
    case function(String, [PredicateTerm])
}

/// A place in a format, for messages. It says nothing about what a predicate means: all marks are equal.
struct PredicateMark: Sendable, Equatable {
    /// The text, as the caller gave it; empty for a predicate that has none.
    var format: String
    /// Unicode scalars from the start of `format`.
    var offset: Int

    static let none = PredicateMark(format: "", offset: 0)

    /// Characters from the start of `format`, which is how readers count. Found only when there is a message to write.
    var position: Int { String(format.unicodeScalars.prefix(offset)).count }

    static func == (left: PredicateMark, right: PredicateMark) -> Bool { true }
}

/// Bounds on what is read, far above what queries need: a hostile format costs no more than its length, and no stack.
enum PredicateLimits {
    /// Nested parentheses, lists, calls, negations and compound predicates.
    static let depthMax = 100
    /// Unicode scalars of one format.
    static let lengthMax = 65_536
}

enum PredicateValue: Sendable, Equatable {
    case null
    case string(String)
    /// Whole numbers and truth values, which CloudKit keeps as 1 and 0.
    case integer(Int64)
    /// Always finite.
    case double(Double)
    /// Milliseconds since 1970, the resolution of a stored date.
    case date(milliseconds: Int64)
    case data(Data)
    /// Degrees.
    case location(latitude: Double, longitude: Double)
    case reference(recordName: String, zoneName: String, ownerName: String)
    case list([PredicateValue])

    struct Unfit: Error {
        /// Continues "argument 1 ".
        var reason: String
    }

    var kind: String {
        switch self {
        case .null: "NULL"
        case .string: "a string"
        case .integer, .double: "a number"
        case .date: "a date"
        case .data: "data"
        case .location: "a location"
        case .reference: "a reference"
        case .list: "a list"
        }
    }
}

extension PredicateValue {
    /// The value of an argument as callers pass it: Swift's and Foundation's types, records and their IDs.
    init(argument: Any?) throws(Unfit) {
        guard let argument = Self.unwrapped(argument) else {
            self = .null
            return
        }
        if let number = try Self.number(argument) ?? Self.record(argument) {
            self = number
            return
        }
        switch argument {
        case let value as PredicateValue: self = value
        case let text as String: self = .string(text)
        case let text as Substring: self = .string(String(text))
        case let character as Character: self = .string(String(character))
        case let date as Date: self = .date(milliseconds: try Self.milliseconds(date))
        case let data as Data: self = .data(data)
        case let place as CLLocation:
            self = .location(latitude: place.coordinate.latitude, longitude: place.coordinate.longitude)
        case let list as [Any?]: self = try Self.list(list)
        case let list as NSArray: self = try Self.list(list.map { $0 })
        default: throw Self.unfit(argument)
        }
    }

    /// The argument without the optionals around it, which `[Any]` hides.
    private static func unwrapped(_ argument: Any?) -> Any? {
        guard let argument, !(argument is NSNull) else { return nil }
        guard let optional = argument as? any AnyOptional else { return argument }
        return unwrapped(optional.inside)
    }

    private static func list(_ members: [Any?]) throws(Unfit) -> PredicateValue {
        var values: [PredicateValue] = []
        values.reserveCapacity(members.count)
        for (index, member) in members.enumerated() {
            do throws(Unfit) {
                let value = try PredicateValue(argument: member)
                if case .list = value { throw Unfit(reason: "is a list") }
                values.append(value)
            } catch {
                throw Unfit(reason: "is a list whose member \(index + 1) \(error.reason)")
            }
        }
        return .list(values)
    }

    private static func number(_ argument: Any) throws(Unfit) -> PredicateValue? {
        if let whole = argument as? any BinaryInteger {
            guard let number = Int64(exactly: whole) else {
                throw Unfit(reason: "is \(whole), which does not fit the 64 bits of an INT64")
            }
            return .integer(number)
        }
        if let number = argument as? any BinaryFloatingPoint { return try finite(Double(number)) }
        if let number = argument as? NSNumber {
            switch UInt8(bitPattern: number.objCType.pointee) {
            case UInt8(ascii: "d"), UInt8(ascii: "f"): return try finite(number.doubleValue)
            case UInt8(ascii: "Q"): return try Self.number(number.uint64Value)
            default: return .integer(number.int64Value)
            }
        }
        return nil
    }

    private static func finite(_ number: Double) throws(Unfit) -> PredicateValue {
        guard number.isFinite else { throw Unfit(reason: "is \(number), with which nothing can be compared") }
        return .double(number)
    }

    private static func record(_ argument: Any) -> PredicateValue? {
        switch argument {
        case let record as CKRecord: PredicateValue(record.recordID)
        case let reference as CKRecord.Reference: PredicateValue(reference.recordID)
        case let id as CKRecord.ID: PredicateValue(id)
        default: nil
        }
    }

    private init(_ id: CKRecord.ID) {
        self = .reference(
            recordName: id.recordName, zoneName: id.zoneID.zoneName, ownerName: id.zoneID.ownerName)
    }

    /// To the nearest millisecond: a date that came from the server is its own again, though no double is exact.
    private static func milliseconds(_ date: Date) throws(Unfit) -> Int64 {
        guard let milliseconds = Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded()) else {
            throw Unfit(reason: "is a date too far away")
        }
        return milliseconds
    }

    private static func unfit(_ argument: Any) -> Unfit {
        let hint =
            switch argument {
            case is UUID: "; pass its uuidString"
            case is URL: "; pass its absoluteString"
            case is NSSet, is any AnySet: "; pass an array of its members"
            case is CLLocationCoordinate2D: "; pass a CLLocation"
            case is CKAsset: "; assets cannot be searched"
            default:
                "; strings, numbers, dates, data, locations, references, records, their IDs, and arrays of these can "
                    + "be compared with"
            }
        return Unfit(reason: "is of type \(type(of: argument))\(hint)")
    }
}

/// An optional seen as what may be in it.
private protocol AnyOptional {
    var inside: Any? { get }
}

extension Optional: AnyOptional {
    var inside: Any? { map { $0 as Any } }
}

private protocol AnySet {}

extension Set: AnySet {}

/// Why no query can be made of a predicate that is well formed.
struct PredicateRefusal: Error {
    /// What is wrong, and what CloudKit has instead.
    var text: String
    /// Where, in a format.
    var mark = PredicateMark.none

    var error: CKError {
        let excerpt = PredicateExcerpt.lines(mark.format, position: mark.position)
        let place = mark.format.isEmpty ? "" : " (character \(mark.position))"
        return .invalidQuery("Invalid predicate\(place): \(text)" + (excerpt.isEmpty ? "" : "\n" + excerpt))
    }
}

extension PredicateReading.Fault {
    /// The error that a query with the predicate fails with.
    var error: CKError {
        switch self {
        case .format(let error): .invalidQuery("Invalid predicate: \(error)")
        case .unreadable(let text): .invalidQuery("Invalid predicate: \(text)")
        }
    }
}

extension CKError {
    static func invalidQuery(_ text: String) -> CKError {
        CKError(.invalidArguments, reason: text)
    }
}

/// How the server calls the fields that predicates and sort descriptors name.
enum QueryKey {
    /// The properties of a record's own: their names in the SDK, in the server's schema and in web services.
    private static let system: [(key: String, schema: String, web: String)] = [
        ("recordID", "___recordID", "recordName"), ("creationDate", "___createTime", "createdTimestamp"),
        ("modificationDate", "___modTime", "modifiedTimestamp"),
        ("creatorUserRecordID", "___createdBy", "createdUserRecordName"),
        ("lastModifiedUserRecordID", "___modifiedBy", "modifiedUserRecordName"), ("parent", "___parent", "parent"),
        ("share", "___share", "share"),
    ]

    /// The key that predicates have for a field of a filter: one by its own name, or a record's own property by a name
    /// of web services; nil where they have none.
    static func key(field: String?, systemField: String?) -> String? {
        // Some clients write the last letter of ___recordID small.
        func isSchemaName(_ name: String, _ schema: String) -> Bool {
            name == schema || name == "___recordId" && schema == "___recordID"
        }
        if let systemField, field == nil {
            return system.first { $0.web == systemField || isSchemaName(systemField, $0.schema) }?.key
        }
        guard let field, systemField == nil else { return nil }
        if let known = system.first(where: { isSchemaName(field, $0.schema) }) { return known.key }
        // A field that is named like a property of the record's own cannot be told from it.
        return (try? webName(field)) == field ? field : nil
    }

    /// The server's name of the field `key`.
    /// - Throws: the reason, where nothing can be searched or ordered by it.
    static func webName(_ key: String) throws(Reason) -> String {
        if let property = system.first(where: { $0.key == key || $0.schema == key }) { return property.schema }
        switch key {
        case "recordType": throw Reason(text: "the record type is the query's own, no key of a predicate")
        case "recordChangeTag": throw Reason(text: "change tags cannot be searched or sorted by")
        default: break
        }
        guard key.isIdentifier else {
            let hint = key.contains(".") ? "; fields of other records cannot be reached" : ""
            throw Reason(text: "'\(key)' is no field: a letter, then letters, digits and underscores\(hint)")
        }
        return key
    }

    struct Reason: Error {
        var text: String
    }
}
