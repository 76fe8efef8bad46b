public import Foundation
import RecordModel

extension NSUbiquitousKeyValueStore {
    /// The key's value if it is a string.
    public func string(forKey aKey: String) -> String? {
        if case .string(let text) = value(aKey) { text } else { nil }
    }

    /// The key's value if it is an array.
    public func array(forKey aKey: String) -> [Any]? {
        if case .array(let members) = value(aKey) { members.map(\.plist) } else { nil }
    }

    /// The key's value if it is a dictionary.
    public func dictionary(forKey aKey: String) -> [String: Any]? {
        if case .dictionary = value(aKey) { value(aKey)?.plist as? [String: Any] } else { nil }
    }

    /// The key's value if it is data.
    public func data(forKey aKey: String) -> Data? {
        if case .data(let bytes) = value(aKey) { Data(bytes) } else { nil }
    }

    /// The key's number, a fraction cut off; 0 if it has none.
    public func longLong(forKey aKey: String) -> Int64 {
        switch value(aKey) {
        case .int64(let number): number
        case .double(let number): Int64(exactly: number.rounded(.towardZero)) ?? 0
        case .bool(let flag): flag ? 1 : 0
        default: 0
        }
    }

    /// The key's number; 0 if it has none.
    public func double(forKey aKey: String) -> Double {
        switch value(aKey) {
        case .int64(let number): Double(number)
        case .double(let number): number
        case .bool(let flag): flag ? 1 : 0
        default: 0
        }
    }

    /// Whether the key is true, or a number other than 0; false if it is neither.
    public func bool(forKey aKey: String) -> Bool {
        switch value(aKey) {
        case .bool(let flag): flag
        case .int64(let number): number != 0
        case .double(let number): number != 0
        default: false
        }
    }

    /// Sets a string, or removes the key (nil).
    public func set(_ aString: String?, forKey aKey: String) { edit(aString.map { .string($0) }, aKey) }

    /// Sets data, or removes the key (nil).
    public func set(_ aData: Data?, forKey aKey: String) { edit(aData.map { .data(Array($0)) }, aKey) }

    /// Sets an array of property lists, or removes the key (nil).
    public func set(_ anArray: [Any]?, forKey aKey: String) { set(anArray as Any?, forKey: aKey, isExplicit: false) }

    /// Sets a dictionary of property lists, or removes the key (nil).
    public func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
        set(aDictionary as Any?, forKey: aKey, isExplicit: false)
    }

    /// Sets a whole number.
    public func set(_ value: Int64, forKey aKey: String) { edit(.int64(value), aKey) }

    /// Sets a number.
    public func set(_ value: Double, forKey aKey: String) { edit(.double(value), aKey) }

    /// Sets a Boolean.
    public func set(_ value: Bool, forKey aKey: String) { edit(.bool(value), aKey) }

    private func value(_ key: String) -> PropertyValue? { engine.value(PreferenceKey(key)) }
}
