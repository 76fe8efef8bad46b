import RaftCore
import Synchronization
import Wire

/// Reads entries from the segments, beside the writer.
struct EntryReader {
    /// Records at most this far apart are read in one call.
    private static let gapBytesMax = 4_096
    private static let spanBytesMax = 1 << 20

    let shared: LogShared
    let disk: any LogDisk

    /// Records close together in one segment.
    private struct Span {
        var segment: Segment
        var start: Int
        var end: Int
        var offsets: [Int]
    }

    /// See `RaftLog.entries`.
    func entries(
        of group: GroupID, from first: LogIndex, through last: LogIndex, bytesMax: Int
    ) throws(RaftLogError) -> [Entry]? {
        guard let spans = find(group, first, last, bytesMax) else { return nil }
        var entries: [Entry] = []
        for span in spans {
            if let damage = read(span, into: &entries) {
                // The segment may have been collected, or the entries replaced, since they were looked up.
                let isStill = shared.table.withLock { $0.segment(span.segment.number) === span.segment }
                if isStill { throw damage }
                return nil
            }
        }
        for (offset, entry) in entries.enumerated() where entry.index.rawValue != first.rawValue + UInt64(offset) {
            throw .corrupt(
                segment: spans[0].segment.name, position: spans[0].start,
                detail: "entry \(entry.index) of group \(group) is where number \(offset) from \(first) on should be")
        }
        return entries
    }

    private func find(_ group: GroupID, _ first: LogIndex, _ last: LogIndex, _ bytesMax: Int) -> [Span]? {
        shared.table.withLock { table in
            guard let log = table.groups[group], first >= log.firstIndex else { return nil }
            var spans: [Span] = []
            var index = first
            var bytes = 0
            while index <= min(last, log.lastIndex), let run = log.run(holding: index).map({ log.runs[$0] }) {
                guard let segment = table.segment(run.segment) else { return nil }
                let through = min(run.end.previous, last)
                while index <= through {
                    let place = run.places[Int(index.rawValue - run.first.rawValue)]
                    bytes += Int(place.sizeBytes)
                    if bytes > bytesMax, index > first { return spans }
                    Self.add(place, in: segment, to: &spans)
                    index = index.next
                }
            }
            return spans
        }
    }

    private static func add(_ place: GroupLog.Place, in segment: Segment, to spans: inout [Span]) {
        let start = Int(place.offset)
        let end = start + Int(place.sizeBytes)
        if let last = spans.indices.last, spans[last].segment === segment, start >= spans[last].end,
            start - spans[last].end <= gapBytesMax, end - spans[last].start <= spanBytesMax
        {
            spans[last].end = end
            spans[last].offsets.append(start)
        } else {
            spans.append(Span(segment: segment, start: start, end: end, offsets: [start]))
        }
    }

    /// - Returns: the damage, or why the log cannot be read; nil if neither.
    private func read(_ span: Span, into entries: inout [Entry]) -> RaftLogError? {
        let bytes: [UInt8]
        do throws(DiskError) {
            bytes = try disk.bytes(of: span.segment.file, at: span.start, count: span.end - span.start)
        } catch {
            return RaftLogError(reading: error, of: span.segment.name, at: span.start)
        }
        let seed = shared.seed
        for offset in span.offsets {
            let address = LogAddress(segment: span.segment.number, offset: offset)
            guard let header = RecordHeader(bytes, at: offset - span.start, address: address, seed: seed),
                let entry = Self.entry(header.body(in: bytes, at: offset - span.start))
            else {
                return .corrupt(segment: span.segment.name, position: offset, detail: "record damaged")
            }
            entries.append(entry)
        }
        return nil
    }

    private static func entry(_ body: ArraySlice<UInt8>) -> Entry? {
        var reader = WireReader(body)
        guard (try? reader.varint()) != nil else { return nil }
        return try? Entry(from: &reader)
    }
}
