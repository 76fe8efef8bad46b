import RecordModel
import Wire

/// A position in a store's change feed; clients see it as opaque text.
///
/// A checksum over it and the store's name tells another store's token, and damaged ones, from this store's.
struct KeyValueToken: Hashable {
    var incarnation: UInt64
    /// Every change up to here was seen.
    var sequence: UInt64
    /// While a device reads the store for the first time: the store's sequence when it began. Deletions up to here
    /// concern keys that it has never seen, so it neither gets them nor misses those that are forgotten.
    var firstReadEnd: UInt64 = 0

    /// Deletions up to here are known, or do not matter.
    var deletionsKnownTo: UInt64 { max(sequence, firstReadEnd) }

    func text(for store: StoreKey) -> String {
        var writer = WireWriter()
        writer.varint(incarnation)
        writer.varint(sequence)
        writer.varint(firstReadEnd > sequence ? firstReadEnd : 0)
        writer.fixed64(Self.checksum(writer.bytes, store: store))
        return Base64.encode(writer.bytes)
    }

    init(incarnation: UInt64, sequence: UInt64, firstReadEnd: UInt64 = 0) {
        self.incarnation = incarnation
        self.sequence = sequence
        self.firstReadEnd = firstReadEnd
    }

    /// Nil if the text is not a token that was given for this store.
    init?(_ text: String, for store: StoreKey) {
        guard text.utf8.count <= 64, let bytes = Base64.decode(text), bytes.count > 8 else { return nil }
        var reader = WireReader(bytes.dropLast(8))
        var tail = WireReader(bytes.suffix(8))
        guard let incarnation = try? reader.varint(), let sequence = try? reader.varint(),
            let firstReadEnd = try? reader.varint(), reader.isAtEnd, let checksum = try? tail.fixed64(),
            checksum == Self.checksum(bytes.dropLast(8), store: store)
        else { return nil }
        self.init(incarnation: incarnation, sequence: sequence, firstReadEnd: firstReadEnd)
    }

    private static func checksum(_ bytes: some Collection<UInt8>, store: StoreKey) -> UInt64 {
        fnv1a(store.encoded() + bytes)
    }
}
