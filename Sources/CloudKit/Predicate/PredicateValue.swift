import CoreLocation
import Foundation

/// A value that a predicate compares with.
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

    /// Why something cannot stand in a predicate.
    struct Unfit: Error {
        /// Continues "argument 1 ".
        var reason: String
    }

    /// What this is, for messages.
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
