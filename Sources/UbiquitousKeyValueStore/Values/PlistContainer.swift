package import Foundation

/// An array or a dictionary of an app's, opened by one level.
///
/// Foundation's own accessors and casts turn all levels into Swift's types at once, which for an array that contains itself
/// never ends. Its objects' reflections show what they hold as it is.
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
