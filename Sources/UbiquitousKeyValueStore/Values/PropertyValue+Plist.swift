import Foundation
import RecordModel

/// Property lists of Foundation's: what apps set and get.
extension PropertyValue {
    /// The value that a property list's object is: text, data, date, number, Boolean, or an array or dictionary of such.
    /// - Throws: `NotAPropertyList` that names the place of what is none.
    init(plist object: Any, path: String = "the value") throws(NotAPropertyList) {
        switch object {
        case let text as String: self = .string(text)
        case let number as NSNumber: self = try Self.number(number, path)
        case let data as Data: self = .data(Array(data))
        case let date as Date:
            let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
            guard let whole = Int64(exactly: milliseconds) else {
                throw NotAPropertyList("\(path) is a date out of range")
            }
            self = .date(whole)
        case let members as [Any]:
            var values: [PropertyValue] = []
            values.reserveCapacity(members.count)
            for (index, member) in members.enumerated() {
                values.append(try PropertyValue(plist: member, path: "\(path)[\(index)]"))
            }
            self = .array(values)
        case let members as [String: Any]:
            var entries: [Entry] = []
            for (key, member) in members {
                entries.append(
                    Entry(key: key, value: try PropertyValue(plist: member, path: "\(path).\(key)")))
            }
            // A dictionary has no key twice by Swift's comparison, so none by bytes.
            self = PropertyValue(sorting: entries) ?? .dictionary([])
        default:
            throw NotAPropertyList(
                "\(path) is of type \(type(of: object)), which is no property list; archive it and set the data")
        }
    }

    private static func number(_ number: NSNumber, _ path: String) throws(NotAPropertyList) -> PropertyValue {
        // The two Booleans are objects of their own; a number 1 of one byte has the same `objCType`.
        if number === NSNumber(value: true) { return .bool(true) }
        if number === NSNumber(value: false) { return .bool(false) }
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "d"), UInt8(ascii: "f"): return .double(number.doubleValue)
        case UInt8(ascii: "Q") where number.uint64Value > Int64.max:
            throw NotAPropertyList("\(path) is a whole number above \(Int64.max); set it as a string or a Double")
        default: return .int64(number.int64Value)
        }
    }

    /// The object for apps: numbers and Booleans as `NSNumber`, so that `as? Int`, `as? Double` and `as? Bool` find them.
    var plist: Any {
        switch self {
        case .string(let text): text
        case .data(let bytes): Data(bytes)
        case .int64(let number): NSNumber(value: number)
        case .double(let number): NSNumber(value: number)
        case .date(let milliseconds): Date(timeIntervalSince1970: Double(milliseconds) / 1000)
        case .bool(let flag): NSNumber(value: flag)
        case .array(let members): members.map(\.plist)
        case .dictionary(let entries):
            Dictionary(entries.map { ($0.key, $0.value.plist) }, uniquingKeysWith: { _, last in last })
        }
    }
}

/// Why an object is no property list.
struct NotAPropertyList: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
