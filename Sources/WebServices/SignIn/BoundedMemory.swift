import Crypto
import Directory
import Synchronization

/// What a node remembers for a while, by text that it must not keep as it is. In memory and for this node alone; when
/// it is full, the quarter that was touched longest ago is forgotten.
final class BoundedMemory<Value: Sendable>: Sendable {
    private struct Item {
        var value: Value
        var touched: Int64
    }

    private let items = Mutex<[[UInt8]: Item]>([:])
    private let countMax: Int

    init(countMax: Int) {
        precondition(countMax >= 4, "\(countMax) items")
        self.countMax = countMax
    }

    subscript(key: String) -> Value? {
        let hash = Self.hash(key)
        return items.withLock { $0[hash]?.value }
    }

    /// Changes what is remembered under a key, at `time` in milliseconds since 1970; nil forgets it.
    func change(_ key: String, time: Int64, _ change: (Value?) -> Value?) {
        let hash = Self.hash(key)
        items.withLock { items in
            guard let value = change(items[hash]?.value) else {
                items[hash] = nil
                return
            }
            if items[hash] == nil, items.count >= countMax { Self.makeRoom(&items, countMax) }
            items[hash] = Item(value: value, touched: time)
        }
    }

    private static func makeRoom(_ items: inout [[UInt8]: Item], _ countMax: Int) {
        let times = items.values.map(\.touched).sorted()
        var excess = items.count - 3 * countMax / 4
        let oldest = times[excess - 1]
        // Where several are of one moment, any will do.
        for (key, item) in items where item.touched <= oldest && excess > 0 {
            items[key] = nil
            excess -= 1
        }
    }

    private static func hash(_ key: String) -> [UInt8] { Array(SHA256.hash(data: Array(key.utf8))) }
}

/// Lock-outs that this node counts by itself.
final class LocalLockouts: Sendable {
    private let lockouts: BoundedMemory<Lockout>

    init(countMax: Int = 10_000) { lockouts = BoundedMemory(countMax: countMax) }

    func lockout(of name: String) -> Lockout? { lockouts[name] }

    /// Counts a failed attempt at `time`, in milliseconds since 1970.
    func note(_ name: String, time: Int64) {
        lockouts.change(name, time: time) { ($0 ?? Lockout(failures: 0, lockedUntil: 0)).counting(failureAt: time) }
    }

    func clear(_ name: String) { lockouts.change(name, time: 0) { _ in nil } }
}
