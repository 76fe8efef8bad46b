/// What a record is about. The raw values are on disk.
enum RecordKind: UInt8 {
    case hardState = 1
    case entry = 2
    /// A snapshot mark after which the entries behind it go on.
    case trim = 3
    /// A snapshot mark that replaces the group's log.
    case reset = 4
    case removal = 5
    /// A snapshot mark written again by collection; entries before it may still be there, and are dropped when the log
    /// is opened.
    case carriedMark = 6
    /// Nothing but the watermark; written at an orderly end, for no group.
    case watermark = 7
}

/// The fixed part before each record's body (layout: `Sources/Storage/DESIGN.md`).
struct RecordHeader {
    static let sizeBytes = 32

    /// The body's size without padding.
    var length: Int
    /// Over the length, everything after this field, and the padding; begins with the log's seed.
    var checksum: UInt32
    /// Where the record stands.
    var address: LogAddress
    /// Everything before this was durable when the record was written.
    var watermark: LogAddress
    /// The checksum of the record before, or of the segment's header.
    var previous: UInt32
    var kind: RecordKind

    /// What the record takes up with header and padding to a multiple of 8.
    var sizeBytes: Int { Self.sizeBytes + (length + 7) & ~7 }

    /// The seed of a log's checksums, so that bytes a user put in an entry never pass for a record.
    static func seed(logID: UInt64) -> UInt32 {
        withUnsafeBytes(of: logID.littleEndian) { CRC32C.update(0, $0) }
    }

    /// Reads and checks the record at `address`; nil if there is no undamaged one of that very address.
    init?(_ bytes: [UInt8], at offset: Int, address: LogAddress, seed: UInt32) {
        guard offset >= 0, bytes.count - offset >= Self.sizeBytes,
            bytes.load(UInt64.self, at: offset + 8) == address.rawValue,
            let kind = RecordKind(rawValue: bytes[offset + 28])
        else { return nil }
        length = Int(bytes.load(UInt32.self, at: offset))
        checksum = bytes.load(at: offset + 4)
        self.address = address
        watermark = LogAddress(rawValue: bytes.load(at: offset + 16))
        previous = bytes.load(at: offset + 24)
        self.kind = kind
        guard length <= bytes.count, offset + sizeBytes <= bytes.count, watermark <= address else { return nil }
        guard Self.checksum(of: bytes, at: offset, sizeBytes: sizeBytes, seed: seed) == checksum else { return nil }
    }

    /// The body of the record at `offset`, shared.
    func body(in bytes: [UInt8], at offset: Int) -> ArraySlice<UInt8> {
        bytes[(offset + Self.sizeBytes)..<(offset + Self.sizeBytes + length)]
    }

    static func checksum(of bytes: [UInt8], at offset: Int, sizeBytes: Int, seed: UInt32) -> UInt32 {
        bytes.withUnsafeBytes { all in
            let length = UnsafeRawBufferPointer(rebasing: all[offset..<(offset + 4)])
            let rest = UnsafeRawBufferPointer(rebasing: all[(offset + 8)..<(offset + sizeBytes)])
            return CRC32C.update(CRC32C.update(seed, length), rest)
        }
    }
}
