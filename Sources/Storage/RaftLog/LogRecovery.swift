import Glibc
import RaftCore
import Wire

/// Reads a log back when it is opened.
///
/// Nothing on the disk is changed before everything was read and judged sound.
struct LogRecovery {
    let folder: String
    let options: RaftLogOptions
    let logID: UInt64
    private var table = LogIndexTable()
    private var disk: any LogDisk { options.disk }
    private var seed: UInt32 { RecordHeader.seed(logID: logID) }

    /// A segment's file and its header.
    private struct Found {
        var number: UInt64
        var file: DiskFile
        var sizeBytes: Int
        var header: SegmentHeader?
    }

    init(folder: String, options: RaftLogOptions, logID: UInt64) {
        self.folder = folder
        self.options = options
        self.logID = logID
    }

    /// - Returns: the index and the place to go on, synced; no tail if the log has no segment yet.
    mutating func run(_ names: [String]) throws(RaftLogError) -> (table: LogIndexTable, tail: LogTail?) {
        let found = try find(names)
        try checkNumbers(found)
        guard let last = found.lastIndex(where: { $0.header != nil }) else {
            // The first segment gets its header before anything else happens; only later ones are prepared.
            if let first = found.first, first.number > 1 {
                throw .corrupt(segment: Segment.name(first.number - 1), position: 0, detail: "segment missing")
            }
            try checkUnused(found[...], after: .start)
            try removeUnused(found[...])
            return (table, nil)
        }
        try checkHeaders(found[...last])
        for index in 0..<last {
            guard let next = found[index + 1].header else { preconditionFailure("checked above") }
            try readComplete(found[index], end: next.watermark)
        }
        let reader = try readLast(found[last], unused: found[(last + 1)...])
        if let (group, detail) = table.settle() {
            throw .corrupt(segment: Segment.name(found[0].number), position: 0, detail: "group \(group): \(detail)")
        }
        let tail = try seal(found[last], reader, unused: found[(last + 1)...])
        return (table, tail)
    }

    private func find(_ names: [String]) throws(RaftLogError) -> [Found] {
        var found: [Found] = []
        for number in names.compactMap(Segment.number(ofName:)).sorted() {
            let (file, sizeBytes) = try disked { () throws(DiskError) in
                let file = try self.disk.open("\(self.folder)/\(Segment.name(number))", creating: false)
                return (file, try file.size())
            }
            let bytes = try bytes(of: file, number: number, count: SegmentHeader.sizeBytes)
            let header = SegmentHeader(bytes, logID: logID, number: number)
            found.append(Found(number: number, file: file, sizeBytes: sizeBytes, header: header))
        }
        return found
    }

    /// The first bytes of a segment.
    private func bytes(of file: DiskFile, number: UInt64, count: Int) throws(RaftLogError) -> [UInt8] {
        do throws(DiskError) { return try disk.bytes(of: file, at: 0, count: count) } catch {
            throw RaftLogError(reading: error, of: Segment.name(number), at: 0)
        }
    }

    /// There must be no hole, not even before a segment that is only prepared: it was the one before that was in use.
    private func checkNumbers(_ found: [Found]) throws(RaftLogError) {
        for (segment, next) in zip(found, found.dropFirst()) where next.number != segment.number + 1 {
            throw .corrupt(segment: Segment.name(segment.number + 1), position: 0, detail: "segment missing")
        }
    }

    /// Up to the last header that is sound there must be no damaged one.
    private func checkHeaders(_ found: ArraySlice<Found>) throws(RaftLogError) {
        for segment in found where segment.header == nil {
            throw .corrupt(
                segment: Segment.name(segment.number), position: 0, detail: "header damaged; later segments are sound")
        }
    }

    /// Reads a segment all of which was durable before the next one began.
    private mutating func readComplete(_ segment: Found, end: LogAddress) throws(RaftLogError) {
        let (_, reader) = try read(segment, until: end)
        guard reader.address == end else {
            throw .corrupt(
                segment: Segment.name(segment.number), position: reader.offset,
                detail: "record damaged; the next segment says that everything up to \(end) was durable")
        }
    }

    /// Reads the segment that was written to last, and tells a torn write from damage.
    private mutating func readLast(_ segment: Found, unused: ArraySlice<Found>) throws(RaftLogError) -> SegmentReader {
        let (bytes, reader) = try read(segment, until: LogAddress(segment: segment.number + 1, offset: 0))
        let later = SegmentReader.greatestWatermark(
            number: segment.number, bytes: bytes, from: reader.offset, seed: seed)
        if later > reader.address {
            throw .corrupt(
                segment: Segment.name(segment.number), position: reader.offset,
                detail: "record damaged; a later one says that everything up to \(later) was durable")
        }
        try checkUnused(unused, after: reader.address)
        return reader
    }

    private mutating func read(
        _ segment: Found, until end: LogAddress
    ) throws(RaftLogError) -> (bytes: [UInt8], reader: SegmentReader) {
        guard let header = segment.header else { preconditionFailure("segment \(segment.number) has no header") }
        let bytes = try bytes(of: segment.file, number: segment.number, count: segment.sizeBytes)
        var reader = SegmentReader(number: segment.number, bytes: bytes, seed: seed, header: header)
        table.add(Segment(number: segment.number, file: segment.file, sizeBytes: segment.sizeBytes))
        do throws(WireError) {
            while reader.address < end, let operation = try reader.next() { table.apply(operation) }
        } catch {
            throw .corrupt(
                segment: Segment.name(segment.number), position: reader.offset,
                detail: "record not understood: \(error)")
        }
        return (bytes, reader)
    }

    /// Segments without a header were prepared, or begun by a write that never became durable.
    private func checkUnused(_ unused: ArraySlice<Found>, after end: LogAddress) throws(RaftLogError) {
        for segment in unused {
            let bytes = try bytes(of: segment.file, number: segment.number, count: segment.sizeBytes)
            let later = SegmentReader.greatestWatermark(number: segment.number, bytes: bytes, from: 0, seed: seed)
            if later > max(end, LogAddress(segment: segment.number, offset: 0)) {
                throw .corrupt(
                    segment: Segment.name(segment.number), position: 0,
                    detail: "header damaged; a record says that everything up to \(later) was durable")
            }
        }
    }

    /// Their numbers are used again, so nothing that a write began may stay in them. The last one goes first: a crash
    /// in between must leave no hole.
    private func removeUnused(_ unused: ArraySlice<Found>) throws(RaftLogError) {
        try disked { () throws(DiskError) in
            for segment in unused.reversed() {
                try self.disk.remove("\(self.folder)/\(Segment.name(segment.number))")
                try self.disk.syncFolder(self.folder)
            }
        }
    }

    /// Makes durable what was read, since the caller is told that it is, and zeroes what a torn write left.
    ///
    /// What nothing says was durable may be of a sync that failed. The system has it in memory then, and takes it for
    /// written: another sync does nothing. So it is written again, to a file that then takes the segment's place. Where
    /// there is no room for one it is written over, though a power cut meanwhile may spoil a sector that was durable
    /// after all.
    private mutating func seal(
        _ segment: Found, _ reader: SegmentReader, unused: ArraySlice<Found>
    ) throws(RaftLogError) -> LogTail {
        let doubtful = reader.doubtfulOffset
        let target = doubtful == nil ? nil : unused.first.flatMap { $0.sizeBytes == segment.sizeBytes ? $0 : nil }
        try removeUnused(target == nil ? unused : unused.dropFirst())
        let file = try disked { () throws(DiskError) -> DiskFile in
            guard let doubtful else { return try self.seal(segment, reader, from: reader.offset) }
            let content = Array(reader.bytes[..<reader.offset])
            guard let path = try self.write(content, toFileFor: segment, target) else {
                return try self.seal(segment, reader, from: doubtful)
            }
            return try self.put(path, inPlaceOf: segment)
        }
        let last = Segment(number: segment.number, file: file, sizeBytes: segment.sizeBytes)
        table.replaceLast(last)
        return LogTail(
            segment: last, offset: reader.offset, previous: reader.previous, watermark: reader.address)
    }

    /// Writes a segment's content again in place, from an offset on.
    private func seal(_ segment: Found, _ reader: SegmentReader, from start: Int) throws(DiskError) -> DiskFile {
        try disk.writeAll(Array(reader.bytes[start..<reader.offset]), to: segment.file, at: start)
        if SegmentReader.writtenBytes(of: reader.bytes) > reader.offset {
            try disk.zero(segment.file, from: reader.offset, to: segment.sizeBytes)
        }
        try disk.sync(segment.file)
        return segment.file
    }

    /// Writes this content to a file that can take a segment's place, durably: an unused segment's, or a new one. What
    /// else is in that carries other addresses.
    /// - Returns: the file's path; nil where there is no room for one.
    private func write(
        _ content: [UInt8], toFileFor segment: Found, _ target: Found?
    ) throws(DiskError) -> String? {
        let path = "\(folder)/\(target.map { Segment.name($0.number) } ?? Segment.name(segment.number) + ".tmp")"
        do throws(DiskError) {
            if target == nil { try disk.fill(path, bytes: segment.sizeBytes) }
            let file = try disk.open(path, creating: false)
            try disk.writeAll(content, to: file, at: 0)
            try disk.sync(file)
            return path
        } catch {
            try? disk.remove(path)
            guard error.isDiskFull else { throw error }
            return nil
        }
    }

    /// Renames a file to a segment's. If that fails it is unknown which of the two has the name, and neither may be
    /// written to.
    private func put(_ newPath: String, inPlaceOf segment: Found) throws(DiskError) -> DiskFile {
        let path = "\(folder)/\(Segment.name(segment.number))"
        try disk.rename(newPath, to: path)
        try disk.syncFolder(folder)
        return try disk.open(path, creating: false)
    }

    private func disked<Result>(_ body: () throws(DiskError) -> Result) throws(RaftLogError) -> Result {
        do throws(DiskError) { return try body() } catch { throw RaftLogError(error) }
    }
}

extension GroupLog {
    /// Ends the reading back: drops what lies below the snapshot, and checks that nothing is missing between the two.
    /// - Returns: the missing part, or nil.
    mutating func settle() -> String? {
        guard snapshotIndex >= base else {
            return "entries \(snapshotIndex.next) to \(base) are missing"
        }
        trim(through: min(snapshotIndex, lastIndex))
        return nil
    }

    /// The log's part of the replica's state at its start.
    var recovered: RecoveredGroup {
        var group = RecoveredGroup(hardState: hardState, snapshot: snapshot)
        group.firstIndex = firstIndex
        if let last = terms.last { group.lastLog = LogPosition(index: lastIndex, term: last.term) }
        group.terms = terms
        group.configurations = configurations
        return group
    }
}

/// Reads one segment's records in order, from its bytes.
struct SegmentReader {
    let number: UInt64
    let bytes: [UInt8]
    let seed: UInt32
    /// The offset of the next record.
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

    /// Where the part begins that is not known to be durable; nil if all is.
    var doubtfulOffset: Int? {
        let end = watermark.segment == number ? watermark.offset : 0
        return end < contentEnd ? end : nil
    }

    var address: LogAddress { LogAddress(segment: number, offset: offset) }

    /// The next record; nil if no undamaged one follows the last.
    /// - Throws: `WireError` if an undamaged record does not fit its kind.
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
        let end = writtenBytes(of: bytes)
        var greatest = LogAddress.start
        var offset = (start + 7) & ~7
        while offset < end, offset + RecordHeader.sizeBytes <= bytes.count {
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

    /// Where the last byte ends that is not zero. Most of a segment is zeros when it is read back: they are passed over
    /// in blocks.
    static func writtenBytes(of bytes: [UInt8]) -> Int {
        let zeros = [UInt8](repeating: 0, count: 4_096)
        var end = bytes.count
        bytes.withUnsafeBytes { bytes in
            while end > 0 {
                let block = UnsafeRawBufferPointer(rebasing: bytes[max(0, end - zeros.count)..<end])
                guard let start = block.baseAddress, memcmp(start, zeros, block.count) == 0 else { return }
                end -= block.count
            }
        }
        while end > 0, bytes[end - 1] == 0 { end -= 1 }
        return end
    }
}
