import Foundation
import RaftCore
import Storage
import Synchronization
import Testing

@Suite("Raft log that halts after a refusal") struct RaftLogHaltTests {
    let folder = TemporaryFolder()
    let disk = FaultyDisk()

    private func open() throws -> RaftLog {
        var options = RaftLogOptions.small(65_536, disk: disk)
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

    @Test("a refusal for want of room in the queue halts as well")
    func overloaded() async throws {
        var options = RaftLogOptions.small(1 << 20, disk: disk)
        options.haltsAfterRefusal = true
        options.queueBytesMax = 1_000
        let log = try RaftLog.open(directory: folder.path, options: options).log
        let gate = Gate()
        log.submit([LogWrite(group: GroupID(9), entries: commands(1...1, 1))]) { _ in gate.wait() }
        gate.awaitThread()
        // While the writer stands at the gate, one submission waits and the next finds no room.
        var refusals: [RaftLogError] = []
        let large = String(repeating: "x", count: 900)
        for index in UInt64(1)...40 where refusals.isEmpty {
            let result = Collected()
            log.submit([LogWrite(group: group1, entries: [command(index, 1, large)])]) { result.set($0) }
            if case .failure(let error)? = result.value { refusals.append(error) }
        }
        #expect(refusals == [.overloaded])
        let result = Collected()
        log.submit([LogWrite(group: group1, hardState: vote(2))]) { result.set($0) }
        gate.open()
        #expect(result.value.flatMap(Self.error) == .halted)
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
