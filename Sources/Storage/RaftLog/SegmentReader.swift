import RaftCore
import Wire

/// Reads one segment's records in order, from its bytes.
struct SegmentReader {
    let number: UInt64
    let bytes: [UInt8]
    let seed: UInt32
    /// Where the next record is.
    private(set) var offset = SegmentHeader.sizeBytes
    /// The checksum of the record before.
    private(set) var previous: UInt32
    /// Everything before this was durable, says the segment's header or a record that was read.
    private(set) var watermark: LogAddress
    /// Where the last record that was read ends, but for one that is nothing but a watermark.
    private var contentEnd = SegmentHeader.sizeBytes

    init(number: UInt64, bytes: [UInt8], seed: UInt32, header: SegmentHeader) {
        self.number = number
        self.bytes = bytes
        self.seed = seed
        previous = header.encoded().checksum
        watermark = header.watermark
    }

    /// Where that begins of what was read which nothing says was durable; nil if there is none.
    var doubtfulOffset: Int? {
        let end = watermark.segment == number ? watermark.offset : 0
        return end < contentEnd ? end : nil
    }

    var address: LogAddress { LogAddress(segment: number, offset: offset) }

    /// The next record, or nil where no undamaged one follows the last.
    /// - Throws: `WireError` if an undamaged record does not say what its kind must.
    mutating func next() throws(WireError) -> LogOperation? {
        guard let header = RecordHeader(bytes, at: offset, address: address, seed: seed), header.previous == previous
        else {
            return nil
        }
        let operation = try LogOperation(header, body: header.body(in: bytes, at: offset))
        offset += header.sizeBytes
        previous = header.checksum
        watermark = max(watermark, header.watermark)
        if case .watermark = operation.change {} else { contentEnd = offset }
        return operation
    }

    /// The greatest watermark in any undamaged record from `start` on, whether or not the chain reaches it.
    static func greatestWatermark(number: UInt64, bytes: [UInt8], from start: Int, seed: UInt32) -> LogAddress {
        var greatest = LogAddress.start
        var offset = (start + 7) & ~7
        while offset + RecordHeader.sizeBytes <= bytes.count {
            let address = LogAddress(segment: number, offset: offset)
            if let header = RecordHeader(bytes, at: offset, address: address, seed: seed) {
                greatest = max(greatest, header.watermark)
                offset += header.sizeBytes
            } else {
                offset += 8
            }
        }
        return greatest
    }
}
