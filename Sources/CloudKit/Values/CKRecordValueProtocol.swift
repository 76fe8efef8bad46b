public import CoreLocation
public import Foundation

/// What a field of a record can hold: text, a number, a date, bytes, a place, a reference, an asset, or a list of one
/// of these.
///
/// The set is closed: a type of yours that conforms is not stored, and a save that meets it fails.
public protocol CKRecordValueProtocol {}

/// The values of a record as Objective-C has them. On Linux they are the same as Swift's.
public typealias __CKRecordObjCValue = CKRecordValueProtocol
/// A value of a record.
public typealias CKRecordValue = __CKRecordObjCValue

extension String: CKRecordValueProtocol {}
extension Date: CKRecordValueProtocol {}
extension Data: CKRecordValueProtocol {}
extension Bool: CKRecordValueProtocol {}
extension Double: CKRecordValueProtocol {}
extension Float: CKRecordValueProtocol {}
extension Int: CKRecordValueProtocol {}
extension Int8: CKRecordValueProtocol {}
extension Int16: CKRecordValueProtocol {}
extension Int32: CKRecordValueProtocol {}
extension Int64: CKRecordValueProtocol {}
extension UInt: CKRecordValueProtocol {}
extension UInt8: CKRecordValueProtocol {}
extension UInt16: CKRecordValueProtocol {}
extension UInt32: CKRecordValueProtocol {}
extension UInt64: CKRecordValueProtocol {}
extension Array: CKRecordValueProtocol where Element: CKRecordValueProtocol {}
extension NSString: CKRecordValueProtocol {}
extension NSDate: CKRecordValueProtocol {}
extension NSData: CKRecordValueProtocol {}
extension NSNumber: CKRecordValueProtocol {}
extension NSArray: CKRecordValueProtocol {}
extension CKAsset: CKRecordValueProtocol {}
extension CKReference: CKRecordValueProtocol {}
extension CLLocation: CKRecordValueProtocol {}
