import CoreLocation
import Foundation

extension RecordValue {
    /// The value as an app gets it: String, Date and Data as they are, numbers as NSNumber (which casts to every type
    /// of number and to Bool, where Swift's own numbers cast to no other), lists as arrays of these. Nil for what
    /// cannot be stored.
    var object: (any CKRecordValueProtocol)? {
        switch self {
        case .string(let text): text
        case .data(let data): data
        case .int64(let number): NSNumber(value: number)
        case .double(let number): NSNumber(value: number)
        case .date(let date): date
        case .location(let location): location
        case .reference(let reference): reference
        case .asset(let asset): asset
        case .list(let elements): Self.array(elements)
        case .unusable: nil
        }
    }

    /// A list as an array of the type of its elements, so that it casts to `[String]` and so on; an empty one casts
    /// to an array of any type.
    private static func array(_ elements: [RecordValue]) -> any CKRecordValueProtocol {
        let objects = elements.compactMap(\.object)
        return switch elements.first {
        case nil: [String]()
        case .string: objects as? [String] ?? NSArray(array: objects)
        case .data: objects as? [Data] ?? NSArray(array: objects)
        case .date: objects as? [Date] ?? NSArray(array: objects)
        case .int64, .double: objects as? [NSNumber] ?? NSArray(array: objects)
        case .location: objects as? [CLLocation] ?? NSArray(array: objects)
        case .reference: objects as? [CKReference] ?? NSArray(array: objects)
        case .asset: objects as? [CKAsset] ?? NSArray(array: objects)
        case .list, .unusable: NSArray(array: objects)
        }
    }

    /// The value as one type: a number converts to every type of number (a fraction is cut off, one that does not fit
    /// gives nil), everything else has to be of the type.
    func read<T: CKRecordValueProtocol>(as type: T.Type) -> T? {
        guard let number = type as? any ReadableNumber.Type else { return object as? T }
        return switch self {
        case .int64(let value): number.init(record: value) as? T
        case .double(let value): number.init(record: value) as? T
        default: nil
        }
    }
}

/// A type of number that a record's number is read as.
protocol ReadableNumber {
    /// Nil where the number does not fit.
    init?(record integer: Int64)
    /// Cuts a fraction off where the type has none; nil where the number does not fit.
    init?(record double: Double)
}

extension ReadableNumber where Self: FixedWidthInteger {
    init?(record integer: Int64) { self.init(exactly: integer) }
    init?(record double: Double) { self.init(exactly: double.rounded(.towardZero)) }
}
extension ReadableNumber where Self: BinaryFloatingPoint {
    init?(record integer: Int64) { self.init(integer) }
    init?(record double: Double) { self.init(double) }
}
extension Bool: ReadableNumber {
    init?(record integer: Int64) { self = integer != 0 }
    init?(record double: Double) { self = double != 0 }
}
extension Double: ReadableNumber {}
extension Float: ReadableNumber {}
extension Int: ReadableNumber {}
extension Int8: ReadableNumber {}
extension Int16: ReadableNumber {}
extension Int32: ReadableNumber {}
extension Int64: ReadableNumber {}
extension UInt: ReadableNumber {}
extension UInt8: ReadableNumber {}
extension UInt16: ReadableNumber {}
extension UInt32: ReadableNumber {}
extension UInt64: ReadableNumber {}
