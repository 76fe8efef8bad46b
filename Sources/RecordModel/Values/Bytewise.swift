/// Text that is compared, hashed and ordered by its bytes of UTF-8, as SQL and hash functions do.
///
/// Swift's own comparison takes canonically equivalent texts for equal: `K` and U+212A, or the two spellings of `é`. A
/// name from outside that is a key in memory and on disk must be one key in both, so it is kept as this.
@propertyWrapper
package struct Bytewise: Hashable, Comparable, Sendable {
    package var wrappedValue: String

    /// What `$name` is: the name as it is compared.
    package var projectedValue: Self { self }

    package init(wrappedValue: String) { self.wrappedValue = wrappedValue }

    package init(_ text: some StringProtocol) { wrappedValue = String(text) }

    package static func == (left: Self, right: Self) -> Bool {
        let (left, right) = (left.wrappedValue.utf8, right.wrappedValue.utf8)
        guard left.count == right.count else { return false }
        let inPlace = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { left.elementsEqual($0) }
        }
        return (inPlace ?? nil) ?? left.elementsEqual(right)
    }

    package static func < (left: Self, right: Self) -> Bool { left.wrappedValue.precedes(right.wrappedValue) }

    package func hash(into hasher: inout Hasher) {
        var text = wrappedValue
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // Ends the text, so that two keys whose parts meet elsewhere differ.
        hasher.combine(0xFF as UInt8)
    }
}

extension Bytewise: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { wrappedValue = text }
}
