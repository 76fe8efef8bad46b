import Foundation
import RaftCore
import Storage
import Testing

/// A log as a node has it: several groups, many segments, marks, votes, rewritten ends, and what collection carried
/// forward.
@Suite("A raft log of many segments after damage") struct DamageSweepTests {
    /// What a log says when it is opened.
    private struct Content: Equatable {
        var groups: [GroupID: RecoveredGroup]
        var entries: [GroupID: [Entry]]
    }

    private enum Outcome: Equatable {
        case content(Content)
        case corrupt
        /// Anything else is a fault.
        case other(String)
    }

    private static let segmentBytes = 2_048

    /// The folder as it was after each of the last single-record batches, oldest first.
    private static func crashedLogs() async throws -> [TemporaryFolder] {
        var random = SplitMix64(seed: 11)
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(segmentBytes))
        var last: [UInt64: UInt64] = [:]
        for round in UInt64(1)...90 {
            let number = UInt64.random(in: 1...3, using: &random)
            let group = GroupID(number)
            let isRewrite = round % 9 == 0 && last[number, default: 0] > 4
            let first = last[number, default: 0] + 1 - (isRewrite ? 2 : 0)
            last[number] = first + UInt64.random(in: 0...3, using: &random)
            try await log.write([
                LogWrite(
                    group: group, hardState: round % 5 == 0 ? vote(round, number) : nil,
                    entries: commands(first...(last[number] ?? first), round))
            ]).get()
            if round == 30 { try await log.write([LogWrite(group: GroupID(9), hardState: vote(3, 3))]).get() }
            if round == 50 {
                for group in UInt64(1)...2 {
                    let index = last[group, default: 1] - 1
                    let entry = try #require(try log.all(GroupID(group), from: 1)?.first { $0.index.rawValue == index })
                    log.setDurableIndex(mark(index, entry.term.rawValue), of: GroupID(group))
                }
                _ = try await log.collectNow().get()
            }
        }
        var images: [TemporaryFolder] = []
        for step in UInt64(1)...4 {
            let write =
                step == 2
                ? LogWrite(group: group2, hardState: vote(500, 2))
                : LogWrite(
                    group: group1, entries: commands(last[1, default: 0] + 1...last[1, default: 0] + 1, 400 + step))
            if step != 2 { last[1, default: 0] += 1 }
            try await log.write([write]).get()
            images.append(try folder.copy())
        }
        log.close()
        return images
    }

    private static func outcome(_ folder: TemporaryFolder) -> Outcome {
        do {
            let (log, groups) = try RaftLog.open(directory: folder.path, options: .small(segmentBytes))
            defer { log.close() }
            var entries: [GroupID: [Entry]] = [:]
            for (group, recovered) in groups {
                entries[group] = try log.all(group, from: recovered.firstIndex.rawValue) ?? []
            }
            return .content(Content(groups: groups, entries: entries))
        } catch RaftLogError.corrupt {
            return .corrupt
        } catch {
            return .other("\(error)")
        }
    }

    /// Segments with records, oldest first; the next one may be there as well, full of zeros.
    private static func segments(_ folder: TemporaryFolder) throws -> [String] {
        try folder.names(endingIn: ".seg").filter { try folder.bytes($0).starts(with: Array("ZKLOG".utf8)) }
    }

    @Test(
        "a flipped bit at every 64th byte of every file is found, or costs nothing but the end that nothing vouches for"
    )
    func flippedBits() async throws {
        let images = try await Self.crashedLogs()
        let (before, image) = (Self.outcome(try images[2].copy()), images[3])
        let whole = Self.outcome(try image.copy())
        #expect(before != whole)
        var counts: [String: Int] = [:]
        for name in try image.names(endingIn: ".seg") + ["identity"] + image.names(endingIn: ".free") {
            let bytes = try image.bytes(name)
            for position in stride(from: 0, to: bytes.count, by: 64) {
                let copy = try image.copy()
                var damaged = bytes
                // Another byte of each 64 every time, so that all fields of records have their turn.
                let place = min(position + (position / 64 * 7) % 64, bytes.count - 1)
                damaged[place] ^= UInt8(1 << (position / 64 % 8))
                try copy.write(damaged, to: name)
                let outcome = Self.outcome(copy)
                switch outcome {
                case whole: counts["harmless", default: 0] += 1
                case before: counts["the last record cut off", default: 0] += 1
                case .corrupt:
                    counts["found", default: 0] += 1
                    #expect(try copy.bytes(name) == damaged, "the evidence was changed")
                default: Issue.record("\(name), byte \(place): \("\(outcome)".prefix(200))")
                }
            }
        }
        #expect(counts["found", default: 0] > 50, "\(counts)")
        #expect(counts["the last record cut off", default: 0] <= 2, "\(counts)")
        print(
            "log damage: \(counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "))")
    }

    @Test(
        "a last segment that ends at any byte of its last records opens as it was after one of them, and never otherwise"
    )
    func truncated() async throws {
        let images = try await Self.crashedLogs()
        let states = try images.map { Self.outcome(try $0.copy()) }
        let image = images[3]
        let name = try #require(try Self.segments(image).last)
        let bytes = try image.bytes(name)
        let end = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
        // The image before the four records has them as zeros.
        let first =
            zip(bytes, try images[0].bytes(name)).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
        #expect(first > 64 && end - first > 100)
        var seen: Set<Int> = []
        for length in first...bytes.count where length <= end || length % 64 == 0 {
            let copy = try image.copy()
            try copy.write(Array(bytes[..<length]), to: name)
            let outcome = Self.outcome(copy)
            if outcome == .corrupt { continue }
            let state = states.firstIndex(of: outcome)
            #expect(
                state != nil, "\(length) of \(bytes.count) bytes, records end at \(end): \("\(outcome)".prefix(200))")
            if let state { seen.insert(state) }
            if length >= end + 8 { #expect(state == 3) }
        }
        #expect(seen.count >= 3, "\(seen)")
    }

    @Test("an older segment that is cut short anywhere, or holds another's bytes, is found")
    func shortened() async throws {
        let image = try #require(try await Self.crashedLogs().last)
        let names = try Self.segments(image)
        #expect(names.count > 4)
        for name in names.dropLast() {
            let bytes = try image.bytes(name)
            let end = (bytes.lastIndex { $0 != 0 } ?? 0) + 1
            for length in stride(from: 0, to: end, by: 97) {
                let copy = try image.copy()
                try copy.write(Array(bytes[..<length]), to: name)
                let isFound = Self.outcome(copy) == .corrupt
                #expect(isFound, "\(name) with \(length) of \(end) bytes")
            }
            for other in names where other != name {
                let copy = try image.copy()
                try copy.write(try image.bytes(other), to: name)
                let isFound = Self.outcome(copy) == .corrupt
                #expect(isFound, "\(other) in the place of \(name)")
            }
        }
    }
}
