import Foundation
import RaftCore
import Storage
import Testing

@Suite("Raft log after damage") struct RaftLogDamageTests {
    private static let segment = "0000000000000001.seg"

    /// A log of ten acknowledged batches as a crash leaves it, and where its records end.
    private static func crashedLog() async throws -> (folder: TemporaryFolder, end: Int) {
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        for index in UInt64(1)...8 {
            try await log.write([LogWrite(group: group1, entries: commands(index...index, 1))]).get()
        }
        try await log.write([LogWrite(group: group1, hardState: vote(2, 1))]).get()
        let crashed = try folder.copy()
        log.close()
        let bytes = try crashed.bytes(segment)
        return (crashed, (bytes.lastIndex { $0 != 0 } ?? 0) + 1)
    }

    private enum Outcome: Equatable { case entries(UInt64, HardState), corrupt }

    private static func outcome(_ folder: TemporaryFolder) throws -> Outcome {
        do {
            let (log, groups) = try RaftLog.open(directory: folder.path, options: .small(1_024))
            guard let group = groups[group1] else { return .entries(0, HardState()) }
            let last = group.lastLog.index.rawValue
            #expect(try log.all(group1, from: 1) == (last == 0 ? [] : commands(1...last, 1)))
            return .entries(last, group.hardState)
        } catch RaftLogError.corrupt(let segment, _, _) {
            #expect(segment == Self.segment)
            return .corrupt
        }
    }

    @Test("zeros from any byte on leave a prefix") func lostEnd() async throws {
        let (folder, end) = try await Self.crashedLog()
        let bytes = try folder.bytes(Self.segment)
        var last: UInt64 = 0
        for cut in 64...end {
            let copy = try folder.copy(of: ["identity"])
            try copy.write(Array(bytes[..<cut]) + [UInt8](repeating: 0, count: bytes.count - cut), to: Self.segment)
            guard case .entries(let entries, let hardState) = try Self.outcome(copy) else {
                Issue.record("a torn write taken for damage at \(cut)")
                return
            }
            #expect(entries >= last)
            if cut < end { #expect(hardState == HardState()) } else { #expect(hardState == vote(2, 1)) }
            last = entries
        }
        #expect(last == 8)
    }

    @Test("a flipped bit below the watermark is damage; above it the record is cut off; never is there wrong data")
    func flippedBits() async throws {
        let (folder, end) = try await Self.crashedLog()
        let bytes = try folder.bytes(Self.segment)
        var outcomes: [Outcome] = []
        for position in 0..<(end + 64) {
            let copy = try folder.copy(of: ["identity"])
            var damaged = bytes
            damaged[position] ^= UInt8(1 << (position % 8))
            try copy.write(damaged, to: Self.segment)
            outcomes.append(try Self.outcome(copy))
            if outcomes[position] == .corrupt { #expect(try copy.bytes(Self.segment) == damaged) }
        }
        // All of the last record, which nothing later vouches for, may be taken for torn; nothing before may.
        let lastRecord = outcomes.firstIndex { $0 != .corrupt } ?? 0
        #expect(lastRecord > end - 48 && lastRecord < end)
        #expect(outcomes[lastRecord..<end].allSatisfy { $0 == .entries(8, HardState()) })
        #expect(outcomes[(lastRecord + 40)...].allSatisfy { $0 == .entries(8, vote(2, 1)) })
    }

    @Test("after an orderly end damage to any record is found") func orderlyEnd() async throws {
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        try await log.write([LogWrite(group: group1, entries: commands(1...1, 1))]).get()
        log.close()
        var bytes = try folder.bytes(Self.segment)
        bytes[100] ^= 1
        try folder.write(bytes, to: Self.segment)
        #expect(try Self.outcome(folder) == .corrupt)
    }

    @Test(
        "what a torn write left never comes back, also where there is no room for a copy of its segment",
        arguments: [true, false])
    func tornRemains(_ hasRoom: Bool) async throws {
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        try await log.write([LogWrite(group: group1, entries: commands(1...1, 1))]).get()
        try await log.write([LogWrite(group: group1, entries: commands(2...5, 1))]).get()
        let crashed = try folder.copy()
        log.close()
        // The first record of the second batch is lost, those after it are on the disk.
        var bytes = try crashed.bytes(Self.segment)
        bytes[64 + 56 + 40] ^= 1
        try crashed.write(bytes, to: Self.segment)
        let disk = FaultyDisk()
        if !hasRoom { disk.fail { call, path in call == .write && !path.hasSuffix(Self.segment) ? ENOSPC : nil } }
        let (again, groups) = try RaftLog.open(directory: crashed.path, options: .small(1_024, disk: disk))
        disk.fail(nil)
        #expect(groups[group1]?.lastLog.index == LogIndex(1))
        // The same record again: only zeroing keeps the remains from following it.
        try await again.write([LogWrite(group: group1, entries: commands(2...2, 1))]).get()
        let crashedAgain = try crashed.copy()
        again.close()
        let (_, recovered) = try RaftLog.open(directory: crashedAgain.path, options: .small(1_024))
        #expect(recovered[group1]?.lastLog.index == LogIndex(2))
    }

    @Test("damage in an older segment, a missing segment and a damaged identity are found") func olderSegments()
        async throws
    {
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        for index in UInt64(1)...60 {
            try await log.write([LogWrite(group: group1, entries: commands(index...index, 1))]).get()
        }
        log.close()
        let second = "0000000000000002.seg"
        for position in [0, 70, 300] {
            let copy = try folder.copy()
            var bytes = try copy.bytes(second)
            bytes[position] ^= 4
            try copy.write(bytes, to: second)
            let error = #expect(throws: RaftLogError.self) {
                _ = try RaftLog.open(directory: copy.path, options: .small(1_024))
            }
            guard case .corrupt(second, _, _) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        // The one in use, whose loss only the prepared one behind it shows, and all before it.
        var segments = try listFolder(at: folder.path).filter { $0.hasSuffix(".seg") }.sorted()
        try #require(segments.count >= 4)
        if try folder.bytes(segments[segments.count - 1])[0..<5] == Array("ZKLOG".utf8)[...] {
            // The log was closed before the next one was prepared.
            let number = String(segments.count + 1)
            segments.append(String(repeating: "0", count: 16 - number.count) + number + ".seg")
            try folder.write([UInt8](repeating: 0, count: 1_024), to: segments[segments.count - 1])
        }
        for missing in segments.dropLast() + ["identity"] {
            let copy = try folder.copy()
            try removeFile(at: "\(copy.path)/\(missing)")
            let error = #expect(throws: RaftLogError.self) {
                _ = try RaftLog.open(directory: copy.path, options: .small(1_024))
            }
            guard case .corrupt = error else {
                Issue.record("\(missing): \(String(describing: error))")
                continue
            }
        }
    }

    @Test("damage found while reading entries is reported") func damagedRead() async throws {
        let folder = TemporaryFolder()
        let (log, _) = try RaftLog.open(directory: folder.path, options: .small(1_024))
        try await log.write([LogWrite(group: group1, entries: commands(1...3, 1))]).get()
        var bytes = try folder.bytes(Self.segment)
        bytes[64 + 40] ^= 1
        let file = try DiskFile(path: "\(folder.path)/\(Self.segment)", flags: 2)
        _ = try bytes.withUnsafeBytes { try file.write($0, at: 0) }
        #expect(throws: RaftLogError.self) { try log.all(group1, from: 1) }
        #expect(try log.all(group1, from: 2) == commands(2...3, 1))
    }
}
