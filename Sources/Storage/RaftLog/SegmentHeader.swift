/// The first bytes of a segment in use (layout: `Sources/Storage/DESIGN.md`).
struct SegmentHeader: Hashable {
    static let sizeBytes = 64
    private static let magic = Array("ZKLOG\0\0\u{1}".utf8)

    /// The random number of the log this segment belongs to.
    var logID: UInt64
    /// The segment's number.
    var number: UInt64
    /// Where the records of the segment before this one end; everything before it was durable when this was written.
    var watermark: LogAddress

    /// The header and the checksum in it, with which the first record's chain begins.
    func encoded() -> (bytes: [UInt8], checksum: UInt32) {
        var bytes = Self.magic + [UInt8](repeating: 0, count: Self.sizeBytes - 8)
        bytes.store(number, at: 16)
        bytes.store(logID, at: 24)
        bytes.store(watermark.rawValue, at: 32)
        let checksum = CRC32C.of(bytes)
        bytes.store(checksum, at: 8)
        return (bytes, checksum)
    }

    /// Nil unless the bytes are a header, undamaged, of this very log and number.
    init?(_ bytes: [UInt8], logID: UInt64, number: UInt64) {
        guard bytes.count >= Self.sizeBytes else { return nil }
        self.init(logID: logID, number: number, watermark: LogAddress(rawValue: bytes.load(at: 32)))
        guard encoded().bytes.elementsEqual(bytes[..<Self.sizeBytes]) else { return nil }
    }

    init(logID: UInt64, number: UInt64, watermark: LogAddress) {
        self.logID = logID
        self.number = number
        self.watermark = watermark
    }
}

extension [UInt8] {
    /// A little-endian number.
    func load<Number: FixedWidthInteger>(_: Number.Type = Number.self, at offset: Int) -> Number {
        withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
    }

    mutating func store(_ number: some FixedWidthInteger, at offset: Int) {
        withUnsafeMutableBytes { $0.storeBytes(of: number.littleEndian, toByteOffset: offset, as: type(of: number)) }
    }
}
