import Foundation
import RaftCore
import Storage
import Synchronization
import Testing

@Suite("Raft log that halts after a refusal") struct RaftLogHaltTests {
    let folder = TemporaryFolder()
    let disk = FaultyDisk()

    private func open(segmentBytes: Int = 65_536) throws -> RaftLog {
        var options = RaftLogOptions.small(segmentBytes, disk: disk)
        options.haltsAfterRefusal = true
        return try RaftLog.open(directory: folder.path, options: options).log
    }

    private static func error(_ result: Result<Void, RaftLogError>) -> RaftLogError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test("what comes after entries that found no space is refused, hard states too, until the caller goes on in order")
    func order() async throws {
        let log = try open()
        let entries = LogWrite(group: group1, hardState: vote(1, 2), entries: commands(1...3, 1))
        let later = LogWrite(group: group1, hardState: vote(5, 3))
        disk.fail { call, path in call == .write && path.hasSuffix(".seg") ? ENOSPC : nil }
        #expect(Self.error(await log.write([entries])) == .diskFull)
        disk.fail(nil)
        // The disk has space again, but the older hard state must not land behind the newer one.
        #expect(Self.error(await log.write([later])) == .halted)
        log.resume()
        try await log.write([entries]).get()
        try await log.write([later]).get()
        log.close()
        let (again, groups) = try RaftLog.open(directory: folder.path, options: .small(65_536, disk: disk))
        #expect(groups[group1]?.hardState == vote(5, 3))
        #expect(try again.all(group1, from: 1) == commands(1...3, 1))
    }

    @Test("a submission that comes while an earlier one is being refused is told so after it")
    func orderOfRefusals() async throws {
        let log = try open(segmentBytes: 4_096)
        let results = Results()
        let (writer, sync) = (Gate(), Gate())
        log.submit([LogWrite(group: group2, entries: commands(1...1, 1))]) { _ in writer.wait() }
        writer.awaitThread()
        disk.fail { call, path in
            if call == .sync, path.hasSuffix(".seg") { sync.wait() }
            return call == .write && path.hasSuffix(".tmp") ? ENOSPC : nil
        }
        // Both are written together: the first one's sync runs when the second one has found no room for its segments.
        let text = String(repeating: "x", count: 300)
        log.submit([LogWrite(group: group1, hardState: vote(1, 2))]) { results.add("vote", $0) }
        log.submit([LogWrite(group: group1, entries: commands(1...40, 1, text))]) { results.add("entries", $0) }
        writer.open()
        sync.awaitThread()
        log.submit([LogWrite(group: group1, hardState: vote(5, 3))]) { results.add("newer vote", $0) }
        #expect(results.all == [])
        sync.open()
        await log.drain()
        #expect(results.all == ["vote: durable", "entries: diskFull", "newer vote: halted"])
        disk.fail(nil)
        log.close()
    }

    @Test(
        "want of room in the queue refuses what comes, in its turn and until the caller goes on, and nothing that was taken"
    )
    func overloaded() async throws {
        var options = RaftLogOptions.small(1 << 20, disk: disk)
        options.haltsAfterRefusal = true
        options.queueBytesMax = 1_000
        let log = try RaftLog.open(directory: folder.path, options: options).log
        let results = Results()
        let gate = Gate()
        log.submit([LogWrite(group: group2, entries: commands(1...1, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        let large = String(repeating: "x", count: 900)
        let second = LogWrite(group: group1, entries: [command(2, 1, large)])
        let third = LogWrite(group: group1, hardState: vote(2))
        log.submit([LogWrite(group: group1, entries: [command(1, 1, large)])]) { results.add("first", $0) }
        log.submit([second]) { results.add("second", $0) }
        // There is room for it, but it must not land before the second one.
        log.submit([third]) { results.add("third", $0) }
        gate.open()
        await log.drain()
        #expect(results.all == ["first: durable", "second: overloaded", "third: overloaded"])
        log.resume()
        try await log.write([second]).get()
        try await log.write([third]).get()
        #expect(try log.all(group1, from: 1) == [command(1, 1, large), command(2, 1, large)])
        log.close()
    }

    @Test("what is written together with a refused submission, and behind it, is refused as well")
    func behindInOneBatch() async throws {
        let log = try open()
        let results = Results()
        let gate = Gate()
        log.submit([LogWrite(group: group1, entries: commands(1...2, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        log.submit([LogWrite(group: group1, entries: commands(5...5, 1))]) { results.add("behind a gap", $0) }
        log.submit([LogWrite(group: group1, hardState: vote(2))]) { results.add("vote", $0) }
        gate.open()
        await log.drain()
        #expect(results.all.count == 2 && results.all.last == "vote: halted", "\(results.all)")
        #expect(log.held(of: group1)?.hardState == HardState())
        log.close()
    }

    @Test("a group written twice in one submission goes on from the later end in the same batch")
    func twiceInOneSubmission() async throws {
        let log = try open()
        let gate = Gate()
        log.submit([LogWrite(group: group2, entries: commands(1...1, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        // While the writer stands at the gate, both submissions wait, to be encoded together.
        let (first, second) = (Collected(), Collected())
        log.submit([
            LogWrite(group: group1, entries: commands(1...10, 1)),
            LogWrite(group: group1, entries: commands(11...20, 1)),
        ]) { first.set($0) }
        await withCheckedContinuation { waiting in
            log.submit([LogWrite(group: group1, entries: commands(21...21, 1))]) {
                second.set($0)
                waiting.resume()
            }
            gate.open()
        }
        #expect(first.value.flatMap(Self.error) == nil && second.value.flatMap(Self.error) == nil)
        #expect(try log.all(group1, from: 1) == commands(1...21, 1))
        log.close()
    }
}

/// The result of a submission that may be refused at once.
private final class Collected: Sendable {
    private let result = Mutex<Result<Void, RaftLogError>?>(nil)
    var value: Result<Void, RaftLogError>? { result.withLock { $0 } }
    func set(_ new: Result<Void, RaftLogError>) { result.withLock { $0 = new } }
}

/// What became of submissions, in the order in which it was told.
private final class Results: Sendable {
    private let told = Mutex<[String]>([])
    var all: [String] { told.withLock { $0 } }

    func add(_ name: String, _ result: Result<Void, RaftLogError>) {
        switch result {
        case .success: told.withLock { $0.append("\(name): durable") }
        case .failure(let error): told.withLock { $0.append("\(name): \(error)") }
        }
    }
}

extension RaftLog {
    /// Waits until everything submitted before was answered.
    fileprivate func drain() async { _ = await collectNow() }
}
