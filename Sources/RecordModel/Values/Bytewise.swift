/// Text that is compared, hashed and ordered by its bytes of UTF-8, as SQL and hash functions do.
///
/// Swift's own comparison takes canonically equivalent texts for equal: `K` and U+212A, or the two spellings of `é`. A
/// name from outside that is a key in memory and on disk must be one key in both, so it is kept as this.
@propertyWrapper
package struct Bytewise: Hashable, Comparable, Sendable {
    /// The text as it was given, never normalized.
    package var wrappedValue: String

    /// What `$name` is: the name as it is compared.
    package var projectedValue: Self { self }

    package init(wrappedValue: String) { self.wrappedValue = wrappedValue }

    package init(_ text: some StringProtocol) { wrappedValue = String(text) }

    /// Equal if all bytes of UTF-8 are; canonically equivalent texts may differ.
    package static func == (left: Self, right: Self) -> Bool {
        let (left, right) = (left.wrappedValue.utf8, right.wrappedValue.utf8)
        guard left.count == right.count else { return false }
        let inPlace = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { left.elementsEqual($0) }
        }
        return (inPlace ?? nil) ?? left.elementsEqual(right)
    }

    /// Orders by bytes of UTF-8, as `String.precedes` does.
    package static func < (left: Self, right: Self) -> Bool { left.wrappedValue.precedes(right.wrappedValue) }

    /// Hashes the bytes of UTF-8, then 0xFF, which ends the text.
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

extension String {
    /// Whether this text comes before another in the order of their bytes in UTF-8, in which names are sorted.
    ///
    /// Swift's own order is not for what is stored: it takes different spellings of one character as equal, may
    /// change with Unicode's tables, and for some texts (`"e\u{301}"` and `"é\u{1F}"` in Swift 6.3) neither is less nor
    /// are they equal. This one is as fast.
    @inlinable
    package func precedes(_ other: String) -> Bool {
        let inPlace = utf8.withContiguousStorageIfAvailable { own in
            other.utf8.withContiguousStorageIfAvailable { theirs in
                let count = min(own.count, theirs.count)
                var position = 0
                // Both buffers have `count` bytes at least.
                while position < count {
                    if own[position] != theirs[position] { return own[position] < theirs[position] }
                    position += 1
                }
                return own.count < theirs.count
            }
        }
        // Text from elsewhere may not lie in one piece.
        return (inPlace ?? nil) ?? utf8.lexicographicallyPrecedes(other.utf8)
    }
}

/// The rule for names of containers. They are part of URLs, keys and hashes, so they are plain ASCII.
package enum ContainerName {
    /// - Throws: `BAD_REQUEST` where the text cannot be a container's name.
    package static func check(_ name: String) throws(ServiceError) {
        guard !name.isEmpty, name.utf8.count <= Limits.nameLengthMax,
            name.utf8.allSatisfy({ $0.isASCIILetterOrDigit || "-._".utf8.contains($0) })
        else {
            throw ServiceError(
                .badRequest,
                "the container's name '\(name.prefix(60))' is not possible: 1 to \(Limits.nameLengthMax) ASCII letters, "
                    + "digits, dots, hyphens and underscores are expected, such as iCloud.com.example.app")
        }
    }
}

extension UInt8 {
    /// Whether it is one of `a` to `z`, `A` to `Z` and `0` to `9` in ASCII.
    package var isASCIILetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: isASCIIDigit
        }
    }

    /// Whether it is one of `0` to `9` in ASCII.
    package var isASCIIDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// Whether it is a hexadecimal digit in ASCII, in lower case.
    package var isLowercaseHexDigit: Bool { isASCIIDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self) }
}

extension StringProtocol {
    /// Whether it can name a field or a record type: a letter, then letters, digits and underscores, all of ASCII.
    package var isIdentifier: Bool {
        guard let first = utf8.first, first.isASCIILetterOrDigit, !first.isASCIIDigit else { return false }
        return utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "_") }
    }
}
