import CoreLocation
import Foundation
import UbiquitousKeyValueStore

/// A value as a record keeps it: one form for each kind that CloudKit knows, whatever type it was set with.
enum RecordValue: Sendable, Equatable {
    case string(String)
    case data(Data)
    /// Also what a Bool is: 0 or 1.
    case int64(Int64)
    case double(Double)
    case date(Date)
    case location(CLLocation)
    case reference(CKReference)
    case asset(CKAsset)
    /// Values in order, none of them a list. Numbers of which one is fractional in type are all doubles.
    case list([RecordValue])
    /// What cannot be stored, and why. It is kept so that a save can say it: setting a value does not fail.
    case unusable(String)

    /// Takes any value; one that no field can hold becomes `unusable`.
    init(_ value: Any) {
        if let known = value as? any RecordValueSource {
            self = known.recordValue
        } else if case .array(let list)? = PlistContainer(value) {
            self.init(list: list)
        } else {
            self = .unusable("a value of type \(type(of: value))")
        }
    }

    init(list: [Any]) {
        // Not looked into: a list may contain itself.
        if list.contains(where: { PlistContainer.isArray($0) }) {
            self = .unusable("a list within a list")
            return
        }
        let elements = list.map { RecordValue($0) }
        for element in elements {
            if case .unusable = element {
                self = element
                return
            }
        }
        guard elements.contains(where: \.isDouble) else {
            self = .list(elements)
            return
        }
        self = .list(
            elements.map { element in
                if case .int64(let integer) = element { .double(Double(integer)) } else { element }
            })
    }

    /// An integer of any width; CloudKit keeps 64 bits and a sign.
    init(integer: some FixedWidthInteger) {
        if let value = Int64(exactly: integer) {
            self = .int64(value)
        } else {
            self = .unusable("the number \(integer), greater than \(Int64.max)")
        }
    }

    /// Why the value cannot be saved; nil for one that can.
    var fault: String? {
        switch self {
        case .unusable(let reason): reason
        case .double(let number) where !number.isFinite: "the number \(number), which is not finite"
        case .date(let date) where !date.timeIntervalSince1970.isFinite: "a date that is not finite"
        case .list(let elements):
            elements.lazy.compactMap(\.fault).first
                ?? (Set(elements.map(\.webType)).count < 2 ? nil : "a list of mixed types")
        default: nil
        }
    }

    private var isDouble: Bool { if case .double = self { true } else { false } }
}

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

/// The hash of several values together, for classes that are equal by value.
func combinedHash<each Value: Hashable>(_ values: repeat each Value) -> Int {
    var hasher = Hasher()
    repeat hasher.combine(each values)
    return hasher.finalize()
}

/// Reading and writing what archives of ours are made of; each nil or absent where the other is. On Linux asking for a
/// key that is not there is an error that ends the process by default, so that each is looked for first.
extension NSCoder {
    func object<T: NSObject & NSCoding>(_ type: T.Type, _ key: String) -> T? {
        containsValue(forKey: key) ? decodeObject(of: type, forKey: key) : nil
    }

    func write(_ object: (any NSSecureCoding)?, _ key: String) {
        if let object { encode(object, forKey: key) }
    }

    func text(_ key: String) -> String? { object(NSString.self, key) as String? }

    func write(_ text: String?, _ key: String) {
        if let text { encode(text as NSString, forKey: key) }
    }

    func date(_ key: String) -> Date? {
        containsValue(forKey: key) ? Date(timeIntervalSinceReferenceDate: decodeDouble(forKey: key)) : nil
    }

    func write(_ date: Date?, _ key: String) {
        if let date { encode(date.timeIntervalSinceReferenceDate, forKey: key) }
    }

    func texts(_ key: String) -> [String]? {
        containsValue(forKey: key)
            ? decodeObject(of: [NSArray.self, NSString.self], forKey: key) as? [String] : nil
    }

    func write(_ texts: [String]?, _ key: String) {
        if let texts { encode(NSArray(array: texts.map { $0 as NSString }), forKey: key) }
    }

    /// 0 if there is none.
    func integer(_ key: String) -> Int {
        containsValue(forKey: key) ? Int(truncatingIfNeeded: decodeInt64(forKey: key)) : 0
    }

    func codable<T: Decodable>(_ type: T.Type, _ key: String) -> T? {
        object(NSData.self, key).flatMap { try? PropertyListDecoder().decode(type, from: $0 as Data) }
    }

    func write(codable value: (some Encodable)?, _ key: String) {
        guard let value else { return }
        do {
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .binary
            encode(try encoder.encode(value) as NSData, forKey: key)
        } catch {
            failWithError(error)
        }
    }
}
