package import Foundation
import RecordModel

/// Property lists of Foundation's: what apps set and get.
extension PropertyValue {
    /// The value that a property list's object is: text, data, date, number, Boolean, or an array or dictionary of
    /// such.
    /// - Throws: `NotAPropertyList` that names the place of what does not belong, or is too much: an array may contain
    ///   itself.
    init(plist object: Any) throws(NotAPropertyList) {
        var membersLeft = Limits.listCountMax
        try self.init(plist: object, path: "the value", depth: 0, &membersLeft)
    }

    private init(
        plist object: Any, path: String, depth: Int, _ membersLeft: inout Int
    ) throws(NotAPropertyList) {
        switch PlistContainer(object) {
        case .array(let members)?:
            try Self.enter(members.count, path, depth, &membersLeft)
            var values: [PropertyValue] = []
            values.reserveCapacity(members.count)
            for (index, member) in members.enumerated() {
                let place = "\(path)[\(index)]"
                values.append(try PropertyValue(plist: member, path: place, depth: depth + 1, &membersLeft))
            }
            self = .array(values)
        case .dictionary(let members)?:
            try Self.enter(members.count, path, depth, &membersLeft)
            var entries: [Entry] = []
            // In order, so that of several faults the same one is named each time.
            for (key, member) in members.sorted(by: { $0.key < $1.key }) {
                let value = try PropertyValue(plist: member, path: "\(path).\(key)", depth: depth + 1, &membersLeft)
                entries.append(Entry(key: key, value: value))
            }
            // A dictionary has no key twice by Swift's comparison, so none by bytes.
            self = PropertyValue(sorting: entries) ?? .dictionary([])
        case nil: try self.init(scalar: object, path: path)
        }
    }

    private init(scalar object: Any, path: String) throws(NotAPropertyList) {
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
        default:
            throw NotAPropertyList(
                "\(path) is of type \(type(of: object)), which is no property list; archive it and set the data")
        }
    }

    /// Goes into an array or a dictionary, unless that is too much.
    private static func enter(
        _ count: Int, _ path: String, _ depth: Int, _ membersLeft: inout Int
    ) throws(NotAPropertyList) {
        guard depth < depthMax else {
            throw NotAPropertyList(
                "the value is nested deeper than \(depthMax), or contains itself; keep it as data", .valueDepth)
        }
        membersLeft -= count
        guard membersLeft >= 0 else {
            throw NotAPropertyList(
                "\(path) is where the value has more than \(Limits.listCountMax) members; keep it as data",
                .valueMembers)
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

    /// The object for apps: numbers and Booleans as `NSNumber`, so that `as? Int`, `as? Double` and `as? Bool` find
    /// them.
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

/// Why an object is not a property list, or not one that can be stored.
struct NotAPropertyList: Error, CustomStringConvertible {
    var description: String
    /// What the refusal is filed under.
    var rule: PreferenceRefusal.Rule

    init(_ description: String, _ rule: PreferenceRefusal.Rule = .type) {
        self.description = description
        self.rule = rule
    }
}

/// An array or a dictionary of an app's, opened by one level.
///
/// Foundation's own accessors and casts turn all levels into Swift's types at once, which for an array that contains
/// itself never ends. Its objects' reflections show what they hold as it is.
package enum PlistContainer {
    case array([Any])
    /// In no order.
    case dictionary([(key: String, value: Any)])

    /// Nil for what is neither, and for a dictionary with keys that are no strings.
    package init?(_ object: Any) {
        if type(of: object) is NSArray.Type {
            self = .array(Mirror(reflecting: object).children.map(\.value))
        } else if type(of: object) is NSDictionary.Type {
            var members: [(key: String, value: Any)] = []
            for child in Mirror(reflecting: object).children {
                guard let (key, value) = child.value as? (key: NSObject, value: AnyObject), let key = key as? NSString
                else { return nil }
                members.append((String(key), value))
            }
            self = .dictionary(members)
        } else if type(of: object) is AnyClass {
            return nil
        } else if let members = object as? [Any] {
            self = .array(members)
        } else if let members = object as? [String: Any] {
            self = .dictionary(members.map { ($0.key, $0.value) })
        } else {
            return nil
        }
    }

    /// What an array holds.
    package static func members(of array: NSArray) -> [Any] { Mirror(reflecting: array).children.map(\.value) }

    /// Whether an object is an array; it is not looked into.
    package static func isArray(_ object: Any) -> Bool {
        type(of: object) is NSArray.Type || !(type(of: object) is AnyClass) && object is [Any]
    }
}

extension PropertyValue? {
    /// Whether both are nothing, or the same bytes.
    func isSame(as other: PropertyValue?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.isSame(as: other)
    }
}
