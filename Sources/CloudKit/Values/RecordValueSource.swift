import CoreLocation
import Foundation
import UbiquitousKeyValueStore

/// A type whose values a record takes. Asked by conformance and not by casts, because casts on Linux bridge: an
/// NSNumber of 3.0 is an Int to them, and an Int an NSNumber.
protocol RecordValueSource {
    /// The form in which a record keeps it.
    var recordValue: RecordValue { get }
}

extension String: RecordValueSource {
    var recordValue: RecordValue { .string(self) }
}
extension Date: RecordValueSource {
    var recordValue: RecordValue { .date(self) }
}
extension Data: RecordValueSource {
    var recordValue: RecordValue { .data(self) }
}
extension Bool: RecordValueSource {
    var recordValue: RecordValue { .int64(self ? 1 : 0) }
}
extension Double: RecordValueSource {
    var recordValue: RecordValue { .double(self) }
}
extension Float: RecordValueSource {
    var recordValue: RecordValue { .double(Double(self)) }
}
extension RecordValueSource where Self: FixedWidthInteger {
    var recordValue: RecordValue { RecordValue(integer: self) }
}
extension Int: RecordValueSource {}
extension Int8: RecordValueSource {}
extension Int16: RecordValueSource {}
extension Int32: RecordValueSource {}
extension Int64: RecordValueSource {}
extension UInt: RecordValueSource {}
extension UInt8: RecordValueSource {}
extension UInt16: RecordValueSource {}
extension UInt32: RecordValueSource {}
extension UInt64: RecordValueSource {}
extension Array: RecordValueSource where Element: CKRecordValueProtocol {
    var recordValue: RecordValue { RecordValue(list: self) }
}
extension NSString: RecordValueSource {
    var recordValue: RecordValue { .string(String(self)) }
}
extension NSDate: RecordValueSource {
    var recordValue: RecordValue { .date(self as Date) }
}
extension NSData: RecordValueSource {
    var recordValue: RecordValue { .data(self as Data) }
}
extension NSArray: RecordValueSource {
    var recordValue: RecordValue { RecordValue(list: PlistContainer.members(of: self)) }
}
extension NSNumber: RecordValueSource {
    /// A double where it was made of one, else an integer.
    var recordValue: RecordValue {
        switch UInt8(bitPattern: objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): .double(doubleValue)
        case UInt8(ascii: "Q"), UInt8(ascii: "L"): RecordValue(integer: uint64Value)
        default: .int64(int64Value)
        }
    }
}
extension CKAsset: RecordValueSource {
    var recordValue: RecordValue { .asset(self) }
}
extension CKReference: RecordValueSource {
    var recordValue: RecordValue { .reference(self) }
}
extension CLLocation: RecordValueSource {
    var recordValue: RecordValue { .location(self) }
}
