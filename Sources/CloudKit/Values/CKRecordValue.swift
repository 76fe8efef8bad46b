public import CoreLocation
public import Foundation
import UbiquitousKeyValueStore

/// What a field of a record can hold: text, a number, a date, bytes, a place, a reference, an asset, or a list of one
/// of these.
///
/// The set is closed: a type of yours that conforms is not stored, and a save that meets it fails.
public protocol CKRecordValueProtocol {}

/// The values of a record as Objective-C has them. On Linux they are the same as Swift's.
public typealias __CKRecordObjCValue = CKRecordValueProtocol
/// A value of a record.
public typealias CKRecordValue = __CKRecordObjCValue

/// What holds values under keys: a record, and its encrypted values.
public protocol CKRecordKeyValueSetting: NSObjectProtocol {
    /// The value of a key; nil if there is none.
    func object(forKey key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)?
    /// Sets the value of a key; nil removes it.
    func setObject(_ object: (any __CKRecordObjCValue)?, forKey key: CKRecord.FieldKey)
    /// The value of a key; nil if there is none, and setting nil removes it.
    subscript(key: CKRecord.FieldKey) -> (any __CKRecordObjCValue)? { get set }
    /// The value of a key as one type; nil if there is none or it is of another type.
    subscript<T: CKRecordValueProtocol>(key: CKRecord.FieldKey) -> T? { get set }
    /// The keys that have a value, sorted.
    func allKeys() -> [CKRecord.FieldKey]
    /// The keys that were set or removed since the record was fetched or saved, sorted.
    func changedKeys() -> [CKRecord.FieldKey]
}

/// Goes over the values of a record, sorted by key.
public struct CKRecordKeyValueIterator: IteratorProtocol {
    /// A key and its value.
    public typealias Element = (CKRecord.FieldKey, any CKRecordValueProtocol)

    private var rest: ArraySlice<Element>

    init(_ elements: [Element]) { rest = elements[...] }

    /// The next key and value; nil after the last.
    public mutating func next() -> (CKRecord.FieldKey, any CKRecordValueProtocol)? { rest.popFirst() }
}

/// A type whose values a record takes. Asked by conformance and not by casts, because casts on Linux bridge: an
/// NSNumber of 3.0 is an Int to them, and an Int an NSNumber.
protocol RecordValueSource {
    var recordValue: RecordValue { get }
}

extension String: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .string(self) }
}
extension Date: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .date(self) }
}
extension Data: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .data(self) }
}
extension Bool: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .int64(self ? 1 : 0) }
}
extension Double: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .double(self) }
}
extension Float: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .double(Double(self)) }
}
extension RecordValueSource where Self: FixedWidthInteger {
    var recordValue: RecordValue { RecordValue(integer: self) }
}
extension Int: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension Int8: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension Int16: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension Int32: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension Int64: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension UInt: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension UInt8: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension UInt16: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension UInt32: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension UInt64: CKRecordValueProtocol, RecordValueSource, ReadableNumber {}
extension Array: CKRecordValueProtocol, RecordValueSource where Element: CKRecordValueProtocol {
    var recordValue: RecordValue { RecordValue(list: self) }
}
extension NSString: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .string(String(self)) }
}
extension NSDate: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .date(self as Date) }
}
extension NSData: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .data(self as Data) }
}
extension NSArray: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { RecordValue(list: PlistContainer.members(of: self)) }
}
extension NSNumber: CKRecordValueProtocol, RecordValueSource {
    /// A double where it was made of one, else an integer.
    var recordValue: RecordValue {
        switch UInt8(bitPattern: objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): .double(doubleValue)
        case UInt8(ascii: "Q"), UInt8(ascii: "L"): RecordValue(integer: uint64Value)
        default: .int64(int64Value)
        }
    }
}
extension CKAsset: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .asset(self) }
}
extension CKReference: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .reference(self) }
}
extension CLLocation: CKRecordValueProtocol, RecordValueSource {
    var recordValue: RecordValue { .location(self) }
}
