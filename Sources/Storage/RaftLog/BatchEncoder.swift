import RaftCore
import Wire

/// Where the next record goes, and what it must say of what is before it.
struct LogTail {
    var segment: Segment
    var offset: Int
    /// The checksum of the record before, or of the segment's header.
    var previous: UInt32
    /// Everything before this is durable.
    var watermark: LogAddress

    var address: LogAddress { LogAddress(segment: segment.number, offset: offset) }
}

/// Encodes submissions into the bytes to write. A submission that does not fit is taken back as a whole.
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

    /// - Parameter buffer: an empty array whose room is used.
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

    /// Goes on in the next segment. What is in the chunks so far is durable before the new one is written.
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
