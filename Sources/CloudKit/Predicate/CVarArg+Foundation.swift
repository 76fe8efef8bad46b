public import CoreLocation
public import Foundation

// On Apple's systems every object is a `CVarArg`, and code for them writes `date as CVarArg` where a format takes
// arguments. Foundation here gives that to strings alone; these are the other types that predicate formats take.
//
// In a format of C, `String(format: "%@", date as NSDate)`, they print their description: a pointer to the object
// itself, which Apple's systems pass, is read by Foundation here as a structure that it is not.
//
// Swift's arrays are left out: of two overloads, `f(_: CVarArg...)` and `f(_: [CVarArg])`, a `[Int]` would choose the
// other one than without this module. They need no cast here, and `names as NSArray` is one that compiles everywhere.

extension NSDate: @retroactive CVarArg, @retroactive _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension NSNumber: @retroactive CVarArg, @retroactive _CVarArgObject {
    public var _cVarArgObject: any CVarArg { stringValue as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension NSArray: @retroactive CVarArg, @retroactive _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension NSData: @retroactive CVarArg, @retroactive _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension Date: @retroactive CVarArg, @retroactive _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension CLLocation: CVarArg, _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension CKRecord: CVarArg, _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension CKRecord.ID: CVarArg, _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

extension CKRecord.Reference: CVarArg, _CVarArgObject {
    public var _cVarArgObject: any CVarArg { description as NSString }
    public var _cVarArgEncoding: [Int] { describedOnly() }
}

private func describedOnly() -> Never {
    preconditionFailure("A list of C's arguments takes the object in _cVarArgObject, and does not ask for this.")
}
