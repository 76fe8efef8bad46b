/// Base64 in the alphabet for addresses, without padding (RFC 4648, section 5).
package enum Base64URL {
    /// The text for these bytes: letters, digits, `-` and `_`.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        Base64.encode(bytes, into: &text)
        while text.last == UInt8(ascii: "=") { text.removeLast() }
        for position in text.indices {
            switch text[position] {
            case UInt8(ascii: "+"): text[position] = UInt8(ascii: "-")
            case UInt8(ascii: "/"): text[position] = UInt8(ascii: "_")
            default: break
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text; nil if it has other characters, padding among them, or has bits set that no byte holds (so
    /// that every value has one text).
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var standard: [UInt8] = []
        standard.reserveCapacity(text.utf8.count + 2)
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: standard.append(character)
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        return Base64.decode(String(decoding: standard, as: UTF8.self))
    }
}

/// Bytes as hexadecimal digits.
package enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Two lower-case digits for each byte.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.underestimatedCount)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of pairs of digits of either case; nil for anything else.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[position], let low = digits[position + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}

/// Base64 in the standard alphabet with padding (RFC 4648, section 4).
package enum Base64 {
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    /// The text for these bytes.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        encode(bytes, into: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the text for these bytes.
    package static func encode(_ bytes: [UInt8], into text: inout [UInt8]) {
        text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
        // Six bits are always inside the 64 characters of the alphabet.
        let characters = alphabet.utf8Start
        var position = 0
        while position < bytes.count {
            let given = min(3, bytes.count - position)
            var group = UInt32(bytes[position]) << 16
            if given > 1 { group |= UInt32(bytes[position + 1]) << 8 }
            if given > 2 { group |= UInt32(bytes[position + 2]) }
            text.append(characters[Int(group >> 18)])
            text.append(characters[Int(group >> 12 & 63)])
            text.append(given > 1 ? characters[Int(group >> 6 & 63)] : UInt8(ascii: "="))
            text.append(given > 2 ? characters[Int(group & 63)] : UInt8(ascii: "="))
            position += 3
        }
    }

    /// The bytes of a text; nil if it has other characters, spaces among them, lacks padding, or has bits set that no
    /// byte holds (so that every value has one text).
    package static func decode(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { decode($0) }
    }

    private static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var position = 0
        while position < text.count {
            let isLast = position + 4 == text.count
            var padding = 0
            if isLast, text[position + 3] == UInt8(ascii: "=") {
                padding = text[position + 2] == UInt8(ascii: "=") ? 2 : 1
            }
            var group: UInt32 = 0
            for offset in 0..<(4 - padding) {
                guard let digit = digit(text[position + offset]) else { return nil }
                group |= digit << UInt32(18 - 6 * offset)
            }
            if padding > 0, group & (padding == 1 ? 0xFF : 0xFFFF) != 0 { return nil }
            bytes.append(UInt8(truncatingIfNeeded: group >> 16))
            if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: group >> 8)) }
            if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: group)) }
            position += 4
        }
        return bytes
    }

    @inline(__always)
    private static func digit(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
