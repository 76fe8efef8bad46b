import RaftCore
import RecordModel
import Testing

@testable import UbiquitousKeyValueStore

@Suite("Two processes of one user on one disk")
struct SharedDiskTests {
    /// A process as the engine runs it: takes over what is on disk, handles, writes.
    private struct Process {
        var core: PreferenceSync
        var seen = 0
        var unsaved: [PreferenceEdit] = []
        var isDirty = false
        var requests: [PreferenceBatch] = []
        var questions: [PreferenceTicket] = []
    }

    private struct World {
        var dice: SplitMix64
        var server = TwinServer()
        var disk = PreferenceCopy(device: "machine")
        var writes = 0
        var processes: [Process]
        var now: Int64 = 0
        var names = 0
        var failPercent = 0
        /// The last value of each key that was saved, or is only in memory.
        var last: [PreferenceKey: PropertyValue] = [:]

        init(seed: UInt64) {
            dice = SplitMix64(seed: seed)
            processes = (0..<2).map { _ in
                Process(core: PreferenceSync(account: "ann", copy: PreferenceCopy(device: "machine")))
            }
        }

        mutating func transact(_ index: Int, _ event: PreferenceEvent) {
            names += 1
            let moment = PreferenceMoment(milliseconds: now, batchID: "batch\(names)")
            var process = processes[index]
            if process.seen != writes {
                _ = process.core.adopt(disk, replaying: process.unsaved, at: moment)
                (process.seen, process.isDirty) = (writes, false)
            }
            let effects = process.core.handle(event, at: moment)
            if process.isDirty {
                let rows = process.core.copy.rows
                process.unsaved.removeAll { rows[$0.key]?.edit == nil && rows[$0.key]?.sent == nil }
            }
            if effects.persist || !process.unsaved.isEmpty || process.isDirty {
                process.isDirty = dice.percent(failPercent)
                if !process.isDirty {
                    writes += 1
                    (disk, process.seen, process.unsaved) = (process.core.copy, writes, [])
                }
            }
            if let batch = effects.upload { process.requests.append(batch) }
            if let ticket = effects.fetch { process.questions.append(ticket) }
            processes[index] = process
        }

        mutating func edit(_ index: Int, isSaved: Bool) {
            names += 1
            let key = PreferenceKey(["a", "b", "c"][Int.random(in: 0..<3, using: &dice)])
            let value: PropertyValue? = dice.percent(20) ? nil : .int64(Int64(names))
            let edit = PreferenceEdit(key: key, value: value)
            if isSaved { transact(index, .woken) }
            let effects = processes[index].core.edit(edit, at: PreferenceMoment(milliseconds: now, batchID: ""))
            if effects.persist {
                processes[index].unsaved.removeAll { $0.key == key }
                processes[index].unsaved.append(edit)
            }
            if isSaved { transact(index, .woken) }
            last[key] = value
        }

        /// One request of a process reaches the server; its answer may be lost.
        mutating func exchange(_ index: Int, losing: Int, forgetting: Int) {
            if let batch = processes[index].requests.popLast() {
                if dice.percent(forgetting) { server.forget(batch, of: "ann") }
                let answer = server.set(batch, user: "ann", device: "machine")
                let isLost = dice.percent(losing)
                transact(
                    index, .uploadAnswered(batch.id, isLost ? .unknown(retryAfterMilliseconds: nil) : answer))
            } else if let ticket = processes[index].questions.popLast() {
                let page = server.changes(user: "ann", since: ticket.since)
                transact(index, page.map { .pageArrived(ticket, $0) } ?? .tokenExpired(ticket))
            }
        }

        mutating func settle() {
            failPercent = 0
            for _ in 0..<30 {
                now += 61_000
                for index in 0..<2 {
                    transact(index, .changesSuspected)
                    for _ in 0..<20 { exchange(index, losing: 0, forgetting: 0) }
                }
            }
        }

        func check(_ seed: UInt64) {
            for process in processes {
                let seen = Dictionary(uniqueKeysWithValues: process.core.copy.visible.map { ($0.key, $0.value) })
                #expect(seen == server.stores["ann"]?.visible ?? [:], "seed \(seed)")
                #expect(process.core.isSettled, "seed \(seed)")
            }
        }
    }

    @Test("the last edit of each key counts, whichever process sends it", arguments: 1...30 as ClosedRange<UInt64>)
    func lastEdit(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<300 {
            world.now += Int64.random(in: 0...400, using: &world.dice)
            let index = Int.random(in: 0..<2, using: &world.dice)
            if world.dice.percent(30) {
                world.edit(index, isSaved: true)
            } else {
                world.exchange(index, losing: 20, forgetting: 15)
                world.transact(index, .woken)
            }
        }
        world.settle()
        world.check(seed)
        #expect(world.server.stores["ann"]?.visible == world.last, "seed \(seed)")
    }

    @Test(
        "a disk that fails now and then leaves both and the server the same", arguments: 1...30 as ClosedRange<UInt64>)
    func failingDisk(seed: UInt64) {
        var world = World(seed: seed)
        world.failPercent = 30
        for _ in 0..<300 {
            world.now += Int64.random(in: 0...400, using: &world.dice)
            let index = Int.random(in: 0..<2, using: &world.dice)
            if world.dice.percent(30) {
                world.edit(index, isSaved: false)
            } else {
                world.exchange(index, losing: 20, forgetting: 15)
                world.transact(index, .woken)
            }
        }
        world.settle()
        world.check(seed)
    }
}
