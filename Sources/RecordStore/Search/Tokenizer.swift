import Foundation
import RecordModel

/// Splits text into searchable words.
///
/// Version 1. A word is a maximal run of letters, marks and digits; each ideograph, hiragana or katakana character is a
/// word of its own. Words are case-folded and stripped of diacritics, so that "Émile" is found by "emile". Vowel signs,
/// which some scripts write as marks, are kept. The tables are those of the Swift runtime, and apply depends on them:
/// see "Unicode's tables" in `DESIGN.md`.
enum Tokenizer {
    /// Bytes of a word that count.
    static let tokenBytesMax = 64
    /// Distinct words of a field that count, from its beginning.
    static let tokensMax = 10_000

    /// A word that is looked for.
    struct Word: Hashable, Sendable {
        var token: [UInt8]
        /// Whether words that begin with it match.
        var isPrefix: Bool
    }

    /// The words of a stored value, ascending and without repetition. Of a list: of all its members.
    static func tokens(of value: FieldValue?) -> [[UInt8]] {
        var seen: Set<[UInt8]> = []
        var splitter = Splitter { word in if seen.count < tokensMax { seen.insert(word.token) } }
        switch value {
        case .string(let text): splitter.split(text)
        case .list(_, let members):
            for case .string(let text) in members { splitter.split(text) }
        default: break
        }
        return seen.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// The words of a query's text in order, without duplicates; a `*` right behind a word makes it a prefix.
    static func words(of text: String) -> [Word] {
        var words: [Word] = []
        var seen: Set<Word> = []
        var splitter = Splitter { word in if seen.insert(word).inserted { words.append(word) } }
        splitter.split(text)
        return words
    }
}

/// One pass over a text.
private struct Splitter {
    let emit: (Tokenizer.Word) -> Void
    private var token: [UInt8] = []
    /// Whether the word is cut, because its next character would not fit.
    private var isFull = false
    /// Marks alone are no word.
    private var hasBase = false

    init(emit: @escaping (Tokenizer.Word) -> Void) { self.emit = emit }

    mutating func split(_ text: String) {
        var text = text
        let isPlain = text.withUTF8 { utf8 in
            guard utf8.allSatisfy({ $0 < 0x80 }) else { return false }
            for byte in utf8 { takePlain(byte) }
            return true
        }
        if !isPlain {
            for scalar in text.decomposedStringWithCanonicalMapping.unicodeScalars {
                if scalar.isASCII { takePlain(UInt8(truncatingIfNeeded: scalar.value)) } else { take(scalar) }
            }
        }
        end(isPrefix: false)
    }

    private mutating func takePlain(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): append(CollectionOfOne(byte))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): append(CollectionOfOne(byte | 0x20))
        default: end(isPrefix: byte == UInt8(ascii: "*"))
        }
    }

    private mutating func take(_ scalar: Unicode.Scalar) {
        let properties = scalar.properties
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter:
            if Self.standsAlone(scalar) {
                end(isPrefix: false)
                append(String(scalar).utf8)
                // A mark that follows would begin a word; without a base it is not one.
                standing = true
                return
            }
            settle()
            fold(scalar)
        case .decimalNumber:
            settle()
            append(String(scalar).utf8)
        case .nonspacingMark, .spacingMark, .enclosingMark:
            if properties.canonicalCombiningClass != .notReordered || properties.isDefaultIgnorableCodePoint { return }
            if hasBase && !standing { append(String(scalar).utf8) }
        default: end(isPrefix: false)
        }
    }

    /// Whether the current word is an ideograph or kana by itself.
    private var standing = false

    private mutating func settle() { if standing { end(isPrefix: false) } }

    /// Upper case first: it takes apart what lower case keeps (ß, ligatures) and joins what it keeps apart (ς and σ).
    private mutating func fold(_ scalar: Unicode.Scalar) {
        for upper in scalar.properties.uppercaseMapping.unicodeScalars {
            for lower in upper.properties.lowercaseMapping.decomposedStringWithCanonicalMapping.unicodeScalars
            where lower.properties.canonicalCombiningClass == .notReordered {
                append(String(lower).utf8)
            }
        }
    }

    private mutating func append(_ bytes: some Collection<UInt8>) {
        if standing { end(isPrefix: false) }
        hasBase = true
        if isFull || token.count + bytes.count > Tokenizer.tokenBytesMax {
            isFull = true
        } else {
            token.append(contentsOf: bytes)
        }
    }

    private mutating func end(isPrefix: Bool) {
        if !token.isEmpty { emit(Tokenizer.Word(token: token, isPrefix: isPrefix)) }
        token.removeAll(keepingCapacity: true)
        (isFull, hasBase, standing) = (false, false, false)
    }

    /// Ideographs, hiragana and katakana, whose texts have no spaces.
    private static func standsAlone(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x3040...0x30FF, 0x31F0...0x31FF, 0xFF66...0xFF9F, 0x1B000...0x1B16F: true
        default: scalar.properties.isIdeographic
        }
    }
}
