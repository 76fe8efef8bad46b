import Foundation
import GRDB
import RaftCore
import RecordModel
import Testing
import Wire

@testable import KeyValueStore

extension SplitMix64 {
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }

    /// A value of any kind, small.
    mutating func value(depth: Int = 0) -> PropertyValue {
        switch Int.random(in: 0..<(depth < 3 ? 8 : 6), using: &self) {
        case 0: return .string(pick(["", "a", "höher", "\u{0}x", String(repeating: "s", count: 20)]))
        case 1:
            return .data(
                (0..<Int.random(in: 0..<12, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) })
        case 2: return .int64(pick([0, 1, -1, .min, .max]))
        case 3: return .double(pick([0, -0.5, 1e300, .infinity]))
        case 4: return .date(pick([0, -1, 1_700_000_000_000]))
        case 5: return .bool(chance(50))
        case 6: return .array((0..<Int.random(in: 0..<4, using: &self)).map { _ in value(depth: depth + 1) })
        default:
            let entries = ["z", "a", "ä", ""].filter { _ in chance(50) }.map { key in
                PropertyValue.Entry(key: key, value: value(depth: depth + 1))
            }
            return PropertyValue(sorting: entries) ?? .bool(false)
        }
    }
}

/// What a store should do, in the plainest way: a dictionary and a list of all that ever happened.
struct KeyValueTwin {
    struct Event {
        var key: String
        var value: PropertyValue?
        var version: ChangeTag
    }

    var limits = KeyValueLimits.standard
    var incarnation: UInt64 = 1
    var sequence: UInt64 = 0
    var events: [Event] = []

    func last(_ key: String) -> Event? { events.last { $0.key == key } }

    /// Keys with a value, in byte order.
    var values: [(key: String, value: PropertyValue)] {
        Set(events.map(\.key)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            .compactMap { key in last(key)?.value.map { (key, $0) } }
    }

    var usage: KeyValueUsage {
        KeyValueUsage(keys: values.count, bytes: values.reduce(0) { $0 + $1.value.sizeBytes })
    }

    /// What no store takes: values, or all of them together, that are more than a store may hold.
    private func alone(_ writes: [KeyValueCommand.Write]) -> KeyValueRefusal? {
        let values = writes.compactMap { write in write.value.map { (write.key, $0.sizeBytes) } }
        if let (key, size) = values.first(where: { $0.1 > limits.valueBytesMax }) {
            return KeyValueRefusal(.valueBytes, key: key, actual: size, max: limits.valueBytesMax)
        }
        if values.count > limits.keysMax {
            return KeyValueRefusal(.keys, actual: values.count, max: limits.keysMax)
        }
        let sum = values.reduce(0) { $0 + $1.1 }
        return sum > limits.storeBytesMax
            ? KeyValueRefusal(.storeBytes, actual: sum, max: limits.storeBytesMax) : nil
    }

    mutating func apply(_ writes: [KeyValueCommand.Write]) -> KeyValueOutcome {
        if let refusal = alone(writes) { return .refused(refusal) }
        let stale = writes.filter { write in
            guard let expected = write.expectedVersion else { return false }
            let last = last(write.key)
            return expected == KeyValueTables.absent ? last?.value != nil : last?.version != expected
        }
        if !stale.isEmpty {
            return .conflict(
                stale.map { KeyValueConflict(key: $0.key, value: last($0.key)?.value, version: last($0.key)?.version) })
        }
        let before = self
        var versions: [ChangeTag?] = []
        for write in writes {
            if write.value == nil, last(write.key)?.value == nil {
                versions.append(nil)
                continue
            }
            sequence += 1
            versions.append(ChangeTag(incarnation: incarnation, sequence: sequence))
            events.append(
                Event(
                    key: write.key, value: write.value, version: ChangeTag(incarnation: incarnation, sequence: sequence)
                ))
        }
        var refusal: KeyValueRefusal?
        if usage.bytes > limits.storeBytesMax, usage.bytes > before.usage.bytes {
            refusal = KeyValueRefusal(.storeBytes, actual: usage.bytes, max: limits.storeBytesMax)
        }
        if usage.keys > limits.keysMax, usage.keys > before.usage.keys {
            refusal = KeyValueRefusal(.keys, actual: usage.keys, max: limits.keysMax)
        }
        if let refusal {
            self = before
            return .refused(refusal)
        }
        return .applied(versions: versions, usage: usage)
    }
}

/// A database in memory with the tables in it.
struct Shard {
    let queue: DatabaseQueue

    init() throws {
        queue = try DatabaseQueue()
        try queue.write { try KeyValueTables.create(in: $0) }
    }

    @discardableResult
    func apply(_ command: KeyValueCommand, limits: KeyValueLimits = .standard) throws -> KeyValueOutcome {
        try apply(command, at: command.time, limits: limits)
    }

    /// Applies a command at a time of the shard that is not the command's.
    @discardableResult
    func apply(
        _ command: KeyValueCommand, at time: Int64, level: FeatureLevel = FeatureLevel.supported.upperBound,
        limits: KeyValueLimits = .standard
    ) throws -> KeyValueOutcome {
        try queue.write { try KeyValueTables.apply(command, at: time, level: level, limits: limits, in: $0) }
    }

    /// Applies writes to the store that the tests use, at time 1000.
    @discardableResult
    func write(
        _ writes: [KeyValueCommand.Write], limits: KeyValueLimits = .standard, time: Int64 = 1000
    ) throws -> KeyValueOutcome {
        try apply(KeyValueCommand(store: .one, time: time, writes: writes), limits: limits)
    }

    func changes(since token: String?, limit: Int = 1024, of store: StoreKey = .one) throws -> KeyValueFeed {
        try queue.read { try KeyValueTables.changes(of: store, since: token, limit: limit, in: $0) }
    }

    func page(since token: String?, limit: Int = 1024) throws -> KeyValuePage {
        guard case .page(let page) = try changes(since: token, limit: limit) else {
            throw Unexpected(text: "no page after \(token ?? "nil")")
        }
        return page
    }

    func list(of store: StoreKey = .one) throws -> [KeyValueEntry] {
        try queue.read { try KeyValueTables.list(store, in: $0).entries }
    }

    /// Every byte that `stateHash` gives away.
    func state() throws -> [UInt8] {
        var bytes: [UInt8] = []
        try queue.read { db in try KeyValueTables.stateHash(in: db) { bytes.append(contentsOf: $0) } }
        return bytes
    }

    /// Invariant 1 of the design: the counters are what the rows say.
    func checkCounters(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let wrong = try queue.read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM kv_store WHERE
                        keys != (SELECT count(*) FROM kv_pair WHERE store = kv_store.id AND value IS NOT NULL)
                        OR bytes != (SELECT coalesce(sum(bytes), 0) FROM kv_pair WHERE store = kv_store.id)
                        OR tombstones != (SELECT count(*) FROM kv_pair WHERE store = kv_store.id AND value IS NULL)
                        OR sequence < (SELECT coalesce(max(sequence), 0) FROM kv_pair WHERE store = kv_store.id)
                    """)
        }
        #expect(wrong == 0, sourceLocation: sourceLocation)
    }
}

struct Unexpected: Error { var text: String }

extension StoreKey {
    static let one = StoreKey(container: "iCloud.com.example", environment: .production, user: "_u1")
    static let two = StoreKey(container: "iCloud.com.example", environment: .production, user: "_u2")
}

/// A plain write.
func set(_ key: String, _ value: PropertyValue) -> KeyValueCommand.Write {
    KeyValueCommand.Write(key: key, value: value)
}

/// A plain deletion.
func delete(_ key: String) -> KeyValueCommand.Write { KeyValueCommand.Write(key: key, value: nil) }

/// Text of so many bytes.
func filler(_ count: Int) -> PropertyValue { .string(String(repeating: "x", count: count)) }

extension KeyValueOutcome {
    var refusal: KeyValueRefusal? { if case .refused(let refusal) = self { refusal } else { nil } }
    var usage: KeyValueUsage? { if case .applied(_, let usage) = self { usage } else { nil } }
    var versions: [ChangeTag?]? { if case .applied(let versions, _) = self { versions } else { nil } }
    var conflicts: [KeyValueConflict]? { if case .conflict(let conflicts) = self { conflicts } else { nil } }
}
