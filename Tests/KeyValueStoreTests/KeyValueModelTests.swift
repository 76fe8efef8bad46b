import GRDB
import RaftCore
import RecordModel
import Testing
import Wire

@testable import KeyValueStore

@Suite("Key-value store against a naive twin")
struct KeyValueModelTests {
    private static let keys = ["a", "b", "c", "dd", "e", "ä", "\u{0}", "Z"]

    private static func writes(_ twin: KeyValueTwin, using random: inout SplitMix64) -> [KeyValueCommand.Write] {
        keys.shuffled(using: &random).prefix(Int.random(in: 0...5, using: &random)).map { key in
            var write = KeyValueCommand.Write(key: key, value: random.chance(30) ? nil : random.value())
            if random.chance(5) { write.value = filler(Int.random(in: 90...130, using: &random)) }
            if random.chance(30) {
                let sequence = UInt64.random(in: 1...max(1, twin.sequence), using: &random)
                write.expectedVersion = random.pick([
                    twin.last(key)?.version ?? KeyValueTables.absent, KeyValueTables.absent,
                    ChangeTag(incarnation: twin.incarnation, sequence: sequence),
                    twin.last(key)?.version ?? KeyValueTables.absent,
                ])
            }
            return write
        }
    }

    @Test("Random batches have the same outcomes, values and usage", arguments: 0..<12)
    func batches(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var limits = KeyValueLimits()
        limits.keysMax = 6
        limits.storeBytesMax = 160
        limits.valueBytesMax = 120
        let shard = try Shard()
        let replica = try Shard()
        var twin = KeyValueTwin(limits: limits)
        var kinds: Set<String> = []
        for step in 0..<120 {
            if random.chance(3) {
                twin.incarnation += 1
                for one in [shard, replica] {
                    #expect(try one.queue.write { try KeyValueTables.startNewIncarnation(twin.incarnation, in: $0) })
                }
            }
            // The store exists from its first change on; before that it has the shard's incarnation all the same.
            let writes = Self.writes(twin, using: &random)
            let command = KeyValueCommand(store: .one, time: Int64(step), writes: writes)
            let outcome = try shard.apply(command, limits: limits)
            #expect(outcome == twin.apply(writes), "seed \(seed) step \(step)")
            #expect(try replica.apply(KeyValueCommand(decoding: command.encoded()), limits: limits) == outcome)
            kinds.insert(String("\(outcome)".prefix(3)))
        }
        #expect(kinds == ["app", "ref", "con"])
        let entries = try shard.list()
        #expect(entries.map(\.key) == twin.values.map(\.key))
        #expect(entries.map(\.value) == twin.values.map(\.value))
        #expect(entries.map(\.version) == twin.values.map { twin.last($0.key)?.version })
        #expect(try shard.state() == replica.state())
        try shard.checkCounters()
    }

    @Test("Following the feed at any page size gives every key's last state", arguments: [1, 2, 3, 7, 1024])
    func feeds(limit: Int) throws {
        var random = SplitMix64(seed: UInt64(limit))
        let shard = try Shard()
        var twin = KeyValueTwin()
        // Several devices, each as far as it happens to have read.
        var devices: [(values: [String: PropertyValue], token: String?)] = Array(repeating: ([:], nil), count: 3)
        for step in 0..<150 {
            let writes = Self.writes(twin, using: &random).map { KeyValueCommand.Write(key: $0.key, value: $0.value) }
            _ = twin.apply(writes)
            try shard.write(writes, time: Int64(step))
            let index = Int.random(in: 0..<devices.count, using: &random)
            _ = try read(shard, limit: limit, into: &devices[index])
        }
        for index in devices.indices {
            while try read(shard, limit: limit, into: &devices[index]) {}
            #expect(devices[index].values == Dictionary(uniqueKeysWithValues: twin.values), "limit \(limit)")
        }
    }

    /// Reads one page as a device would; whether there is more.
    private func read(
        _ shard: Shard, limit: Int, into device: inout (values: [String: PropertyValue], token: String?)
    ) throws -> Bool {
        let page = try shard.page(since: device.token, limit: limit)
        #expect(page.changes.count <= limit)
        #expect(page.changes.count == limit || !page.isMoreComing)
        for change in page.changes { device.values[change.key] = change.value }
        device.token = page.token
        return page.isMoreComing
    }

    @Test("Lists come in byte order at any page size", arguments: [1, 2, 3, 1024])
    func lists(limit: Int) throws {
        let shard = try Shard()
        try shard.write(Self.keys.map { set($0, .string($0)) } + [set("gone", .int64(1))])
        try shard.write([delete("gone")])
        var keys: [String] = []
        var after: String?
        repeat {
            let page = try shard.queue.read { try KeyValueTables.list(.one, after: after, limit: limit, in: $0) }
            #expect(page.entries.count <= limit)
            keys += page.entries.map(\.key)
            after = page.next
        } while after != nil
        #expect(keys == ["\u{0}", "Z", "a", "b", "c", "dd", "e", "ä"])
    }
}
