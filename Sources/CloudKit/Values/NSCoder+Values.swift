import Foundation

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

    /// 0 where there is none.
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
