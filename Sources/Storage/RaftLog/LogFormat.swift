import RaftCore
import Wire

/// The kind of a record. The raw values are on disk.
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
    /// The address of the record.
    var address: LogAddress
    /// Everything before this was durable when the record was written.
    var watermark: LogAddress
    /// The checksum of the record before, or of the segment's header.
    var previous: UInt32
    var kind: RecordKind

    /// The size of the record with header and padding, a multiple of 8.
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

/// The Castagnoli checksum (RFC 3720, section B.4), eight bytes a step.
package enum CRC32C {
    /// Eight tables of 256, never freed; written once before anyone reads them, hence safe to share.
    nonisolated(unsafe) private static let tables: UnsafePointer<UInt32> = makeTables()

    private static func makeTables() -> UnsafePointer<UInt32> {
        let tables = UnsafeMutablePointer<UInt32>.allocate(capacity: 8 * 256)
        for byte in 0..<256 {
            var crc = UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
            tables[byte] = crc
        }
        for index in 256..<(8 * 256) {
            let before = tables[index - 256]
            tables[index] = (before >> 8) ^ tables[Int(before & 0xFF)]
        }
        return UnsafePointer(tables)
    }

    /// Goes on from `crc`, the checksum of the bytes before these (0 at the start).
    package static func update(_ crc: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        let tables = Self.tables
        var state = ~crc
        var offset = 0
        while offset + 8 <= bytes.count {
            let word =
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(state)
            var next = tables[1_792 + Int(word & 0xFF)]
            next ^= tables[1_536 + Int((word >> 8) & 0xFF)]
            next ^= tables[1_280 + Int((word >> 16) & 0xFF)]
            next ^= tables[1_024 + Int((word >> 24) & 0xFF)]
            next ^= tables[768 + Int((word >> 32) & 0xFF)]
            next ^= tables[512 + Int((word >> 40) & 0xFF)]
            next ^= tables[256 + Int((word >> 48) & 0xFF)]
            next ^= tables[Int(word >> 56)]
            state = next
            offset += 8
        }
        while offset < bytes.count {
            state = (state >> 8) ^ tables[Int((state ^ UInt32(bytes[offset])) & 0xFF)]
            offset += 1
        }
        return ~state
    }

    /// The checksum of these bytes.
    package static func of(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { update(0, $0) } }
}

/// The end of the log: the address of the next record, and what it must say of the records before it.
struct LogTail {
    var segment: Segment
    var offset: Int
    /// The checksum of the record before, or of the segment's header.
    var previous: UInt32
    /// Everything before this is durable.
    var watermark: LogAddress

    var address: LogAddress { LogAddress(segment: segment.number, offset: offset) }
}

/// Encodes submissions into the bytes to write. A submission that does not fit is removed as a whole.
struct BatchEncoder {
    /// Bytes for one place: written and synced before the next chunk.
    struct Chunk {
        let segment: Segment
        let offset: Int
        var writer: WireWriter
    }

    let logID: UInt64
    let seed: UInt32
    let supply: SegmentSupply
    private(set) var tail: LogTail
    private(set) var chunks: [Chunk]
    private(set) var operations: [LogOperation] = []

    /// - Parameter buffer: an empty array, whose capacity is reused.
    init(logID: UInt64, tail: LogTail, supply: SegmentSupply, buffer: [UInt8]) {
        self.logID = logID
        seed = RecordHeader.seed(logID: logID)
        self.supply = supply
        self.tail = tail
        var writer = WireWriter(capacity: 0)
        writer.bytes = buffer
        chunks = [Chunk(segment: tail.segment, offset: tail.offset, writer: writer)]
    }

    /// A state to go back to.
    struct Checkpoint {
        fileprivate var tail: LogTail
        fileprivate var chunks: Int
        fileprivate var bytes: Int
        fileprivate var operations: Int
    }

    var checkpoint: Checkpoint {
        Checkpoint(
            tail: tail, chunks: chunks.count, bytes: chunks[chunks.count - 1].writer.bytes.count,
            operations: operations.count)
    }

    /// Takes back everything since `checkpoint`; segments begun since go back to the supply.
    mutating func restore(_ checkpoint: Checkpoint) {
        while chunks.count > checkpoint.chunks { supply.give(back: chunks.removeLast().segment) }
        let last = chunks.count - 1
        chunks[last].writer.bytes.removeLast(chunks[last].writer.bytes.count - checkpoint.bytes)
        operations.removeLast(operations.count - checkpoint.operations)
        tail = checkpoint.tail
    }

    /// Adds one record.
    /// - Throws: `.tooLarge`, `.diskFull` or `.failed`; the caller restores its checkpoint.
    mutating func append(
        _ kind: RecordKind, _ change: LogOperation.Change, of group: GroupID, mayUseReserve: Bool,
        _ body: (inout WireWriter) -> Void
    ) throws(RaftLogError) {
        let start = begin(group, body)
        let last = chunks.count - 1
        let sizeBytes = chunks[last].writer.bytes.count - start.record
        if tail.offset + sizeBytes > tail.segment.sizeBytes {
            let record = Array(chunks[last].writer.bytes[start.record...])
            chunks[last].writer.bytes.removeLast(sizeBytes)
            try roll(toFit: sizeBytes, mayUseReserve: mayUseReserve)
            chunks[chunks.count - 1].writer.bytes.append(contentsOf: record)
        }
        seal(kind, length: start.length, sizeBytes: sizeBytes)
        operations.append(LogOperation(group: group, change: change, address: tail.address, sizeBytes: sizeBytes))
        tail.offset += sizeBytes
    }

    /// Room for the header, the body, and the padding.
    private mutating func begin(_ group: GroupID, _ body: (inout WireWriter) -> Void) -> (record: Int, length: Int) {
        let last = chunks.count - 1
        let record = chunks[last].writer.bytes.count
        for _ in 0..<(RecordHeader.sizeBytes / 8) { chunks[last].writer.fixed64(0) }
        chunks[last].writer.varint(group.rawValue)
        body(&chunks[last].writer)
        let length = chunks[last].writer.bytes.count - record - RecordHeader.sizeBytes
        while chunks[last].writer.bytes.count % 8 != 0 { chunks[last].writer.bytes.append(0) }
        return (record, length)
    }

    /// Fills the header of the record at the end of the last chunk.
    private mutating func seal(_ kind: RecordKind, length: Int, sizeBytes: Int) {
        let last = chunks.count - 1
        let start = chunks[last].writer.bytes.count - sizeBytes
        chunks[last].writer.bytes.store(UInt32(length), at: start)
        chunks[last].writer.bytes.store(tail.address.rawValue, at: start + 8)
        chunks[last].writer.bytes.store(tail.watermark.rawValue, at: start + 16)
        chunks[last].writer.bytes.store(tail.previous, at: start + 24)
        chunks[last].writer.bytes[start + 28] = kind.rawValue
        let checksum = RecordHeader.checksum(of: chunks[last].writer.bytes, at: start, sizeBytes: sizeBytes, seed: seed)
        chunks[last].writer.bytes.store(checksum, at: start + 4)
        tail.previous = checksum
    }

    /// Continues in the next segment. The chunks so far are durable before the new one is written.
    private mutating func roll(toFit sizeBytes: Int, mayUseReserve: Bool) throws(RaftLogError) {
        let number = tail.segment.number + 1
        let segment: Segment
        do throws(DiskError) {
            segment = try supply.take(number, mayUseReserve: mayUseReserve)
        } catch {
            throw RaftLogError(error)
        }
        guard SegmentHeader.sizeBytes + sizeBytes <= segment.sizeBytes else {
            supply.give(back: segment)
            throw .tooLarge(bytes: sizeBytes, bytesMax: segment.sizeBytes - SegmentHeader.sizeBytes)
        }
        let end = tail.address
        let header = SegmentHeader(logID: logID, number: number, watermark: end).encoded()
        var writer = WireWriter(capacity: SegmentHeader.sizeBytes + sizeBytes)
        writer.bytes.append(contentsOf: header.bytes)
        chunks.append(Chunk(segment: segment, offset: 0, writer: writer))
        tail = LogTail(
            segment: segment, offset: SegmentHeader.sizeBytes, previous: header.checksum, watermark: end)
    }
}
