import Foundation
import RaftCore
import Storage
import Synchronization
import TestSupport
import Testing

@Suite("Raft log on a failing disk") struct RaftLogFaultTests {
    let folder = TemporaryFolder()
    let disk = FaultyDisk()

    private func open(segmentBytes: Int = 65_536) throws -> RaftLog {
        try RaftLog.open(directory: folder.path, options: .small(segmentBytes, disk: disk)).log
    }

    private static func isSegment(_ path: String) -> Bool { path.hasSuffix(".seg") }

    @Test("what waits while the writer is busy becomes one write and one sync, completed in order") func groupCommit()
        async throws
    {
        let log = try open()
        let gate = Gate()
        try await log.write([LogWrite(group: group1, entries: commands(1...1, 1))]).get()
        let before = log.counters
        let order = Mutex<[UInt64]>([])
        log.submit([LogWrite(group: group1, entries: commands(2...2, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        await withCheckedContinuation { all in
            for group in UInt64(10)..<60 {
                log.submit([LogWrite(group: GroupID(group), entries: commands(1...1, 1))]) { _ in
                    order.withLock { $0.append(group) }
                    if group == 59 { all.resume() }
                }
            }
            gate.open()
        }
        let after = log.counters
        // One for the entry that held the gate, and one for the fifty.
        #expect(after.appends - before.appends == 51)
        #expect(after.syncs - before.syncs == 2)
        #expect(after.batches - before.batches == after.syncs - before.syncs)
        #expect(order.withLock { $0 } == Array(10..<60))
    }

    @Test("short writes are gone on with") func shortWrites() async throws {
        let log = try open()
        disk.limitWrites(to: 7)
        try await log.write([LogWrite(group: group1, entries: commands(1...9, 1))]).get()
        disk.limitWrites(to: .max)
        log.close()
        let again = try open()
        #expect(try again.all(group1, from: 1) == commands(1...9, 1))
    }

    @Test("a failed sync is never retried: everything after it fails the same way") func failedSync() async throws {
        let log = try open()
        try await log.write([LogWrite(group: group1, entries: commands(1...1, 1))]).get()
        disk.fail { call, path in call == .sync && Self.isSegment(path) ? EIO : nil }
        let first = await log.write([LogWrite(group: group1, entries: commands(2...2, 1))])
        disk.fail(nil)
        let syncs = log.counters.syncs
        let second = await log.write([LogWrite(group: group1, entries: commands(2...2, 1))])
        for result in [first, second] {
            guard case .failure(.failed(EIO, _)) = result else {
                Issue.record("\(result)")
                continue
            }
        }
        #expect(log.counters.syncs == syncs)
        #expect(try log.all(group1, from: 1) == commands(1...1, 1))
        guard case .failure(.failed) = await log.collectNow() else { throw TestFailure("collected on a failed log") }
    }

    @Test("an I/O error while writing stops the log") func failedWrite() async throws {
        let log = try open()
        disk.fail { call, path in call == .write && Self.isSegment(path) ? EIO : nil }
        _ = await log.write([LogWrite(group: group1, entries: commands(1...1, 1))])
        disk.fail(nil)
        guard case .failure(.failed(EIO, _)) = await log.write([LogWrite(group: group1, entries: commands(1...1, 1))])
        else { throw TestFailure("went on") }
    }

    @Test("a sector that cannot be read is damage, at the start and later, and nothing is changed for it")
    func unreadable() async throws {
        let log = try open()
        try await log.write([LogWrite(group: group1, entries: commands(1...9, 1))]).get()
        let segment = try #require(try folder.names(endingIn: ".seg").first)
        disk.fail { call, path in call == .read && path.hasSuffix(segment) ? EIO : nil }
        func expectDamage(_ body: () throws -> Void) throws {
            do {
                try body()
                Issue.record("read what cannot be read")
            } catch RaftLogError.corrupt(segment, _, let detail) {
                #expect(detail.contains("errno \(EIO)"))
            }
        }
        try expectDamage { _ = try log.all(group1, from: 1) }
        let crashed = try folder.copy()
        log.close()
        let names = try crashed.names(endingIn: "")
        try expectDamage { _ = try RaftLog.open(directory: crashed.path, options: .small(65_536, disk: disk)) }
        #expect(try crashed.names(endingIn: "") == names)
        // A call that fails for another reason says nothing of the data.
        disk.fail { call, _ in call == .read ? ENOMEM : nil }
        do throws(RaftLogError) {
            _ = try RaftLog.open(directory: crashed.path, options: .small(65_536, disk: disk))
            Issue.record("opened a log that cannot be read")
        } catch {
            guard case .failed(ENOMEM, _) = error else { throw TestFailure("\(error)") }
        }
        disk.fail(nil)
        let (again, _) = try RaftLog.open(directory: crashed.path, options: .small(65_536, disk: disk))
        #expect(try again.all(group1, from: 1) == commands(1...9, 1))
    }

    @Test("a full disk fails the batch only, and its remains never come back") func fullDisk() async throws {
        let log = try open()
        try await log.write([LogWrite(group: group1, entries: commands(1...1, 1))]).get()
        let writes = Mutex(0)
        disk.limitWrites(to: 100)
        // The first writes go through, so that whole records of the failed batch are in the file.
        disk.fail { call, path in
            guard call == .write, Self.isSegment(path) else { return nil }
            return writes.withLock { count in
                count += 1
                return count > 4 ? ENOSPC : nil
            }
        }
        let failed = await log.write([LogWrite(group: group1, entries: commands(2...20, 1))])
        #expect(throws: RaftLogError.diskFull) { try failed.get() }
        disk.fail(nil)
        disk.limitWrites(to: .max)
        let gap = await log.write([LogWrite(group: group1, entries: commands(21...21, 1))])
        #expect(throws: RaftLogError.outOfOrder(group: group1, first: LogIndex(21), last: LogIndex(1))) {
            try gap.get()
        }
        try await log.write([LogWrite(group: group1, entries: commands(2...2, 1))]).get()
        // Without the orderly end: its record would cover up the remains.
        let crashed = try folder.copy()
        log.close()
        let (again, groups) = try RaftLog.open(directory: crashed.path, options: .small(65_536))
        #expect(groups[group1]?.lastLog.index == LogIndex(2))
        #expect(try again.all(group1, from: 1) == commands(1...2, 1))
    }

    @Test("on a full disk only what frees space may use the reserve, until there is room again") func reserve()
        async throws
    {
        let log = try open(segmentBytes: 4_096)
        // Once the second segment is begun, the background thread makes the third and the reserve.
        while try folder.names(endingIn: "reserve.free").isEmpty { await Task.yield() }
        disk.fail { call, path in call == .write && path.hasSuffix(".tmp") ? ENOSPC : nil }
        var index: UInt64 = 0
        var result = Result<Void, RaftLogError>.success(())
        while case .success = result {
            index += 1
            result = await log.write([LogWrite(group: group1, entries: commands(index...index, 1))])
        }
        #expect(throws: RaftLogError.diskFull) { try result.get() }
        for term in UInt64(1)...60 { try await log.write([LogWrite(group: group1, hardState: vote(term))]).get() }
        var deletion = LogWrite(group: group1, entries: commands(index...index, 1))
        let refused = await log.write([deletion])
        #expect(throws: RaftLogError.diskFull) { try refused.get() }
        deletion.mayUseReserve = true
        try await log.write([deletion]).get()
        disk.fail(nil)
        try await log.write([LogWrite(group: group1, entries: commands(index + 1...index + 100, 1))]).get()
        log.close()
        let (again, groups) = try RaftLog.open(directory: folder.path, options: .small())
        #expect(groups[group1]?.hardState == vote(60))
        #expect(try again.all(group1, from: 1) == commands(1...index + 100, 1))
    }

    @Test("more than the queue's bound is refused at once") func overload() async throws {
        var options = RaftLogOptions.small(1 << 20)
        options.queueBytesMax = 10_000
        let (log, _) = try RaftLog.open(directory: folder.path, options: options)
        let gate = Gate()
        let refused = Mutex(0)
        log.submit([LogWrite(group: group1, entries: commands(1...1, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        for index in UInt64(2)...200 {
            log.submit([LogWrite(group: group1, entries: commands(index...index, 1))]) { result in
                if case .failure(.overloaded) = result { refused.withLock { $0 += 1 } }
            }
        }
        #expect(refused.withLock { $0 } > 50)
        gate.open()
        log.close()
    }
}

/// Holds the log's thread until a test lets it go.
final class Gate: Sendable {
    private let (reached, opened) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))

    func wait() {
        reached.signal()
        opened.wait()
    }

    /// Returns when the log's thread stands at the gate: what is submitted then waits.
    func awaitThread() { reached.wait() }

    func open() { opened.signal() }
}
