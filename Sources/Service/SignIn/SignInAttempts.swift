package import Admission
import Crypto
import Directory
import RecordModel
import Synchronization
package import Wire

/// What a node remembers of attempts to sign in or up, in memory and for itself.
package struct SignInAttempts: Sendable {
    /// By address.
    private let limiter = AddressLimiter(perMinute: 30, burst: 30, addressesMax: 50_000)
    /// Lock-outs of names that no account has, so that a lock-out does not tell which names exist. Each node counts its
    /// own, while those of accounts are the cluster's: who asks several nodes can tell them apart.
    let decoys = LocalLockouts()
    let places = KnownPlaces()

    /// The lock-out that an attempt is held against: that of the place it comes from, where that is known.
    func lockout(at place: String?, else ofName: Lockout?) -> Lockout? {
        if let place { places.lockouts.lockout(of: place) } else { ofName }
    }

    /// Counts an attempt.
    /// - Parameter now: nanoseconds of the node's monotonic clock.
    /// - Throws: `THROTTLED` where there were too many from this address.
    func count(of address: String, now: UInt64) throws(RequestFailure) {
        guard !limiter.decide(address, now: now) else { return }
        let seconds = max(1, (limiter.retryAfterMilliseconds(address, now: now) + 999) / 1_000)
        throw .throttled(
            "Too many attempts from this address: try again in \(Self.words(Int64(seconds))).",
            retryAfterSeconds: Double(seconds))
    }

    /// - Throws: `THROTTLED` where a name is locked.
    static func require(_ lockout: Lockout?, isOverAt now: Int64) throws(RequestFailure) {
        guard let seconds = secondsLeft(of: lockout, now) else { return }
        throw .throttled(
            "Too many wrong passwords for this name: try again in \(words(seconds)).",
            retryAfterSeconds: Double(seconds))
    }

    /// How long a name is still locked; nil where it is not.
    static func secondsLeft(of lockout: Lockout?, _ now: Int64) -> Int64? {
        guard let lockout, lockout.isLocked(at: now) else { return nil }
        return max(1, (lockout.lockedUntil - now + 999) / 1_000)
    }

    /// Such as `1 second` or `15 minutes`.
    package static func words(_ seconds: Int64) -> String {
        let (count, unit) = seconds < 100 ? (seconds, "second") : ((seconds + 59) / 60, "minute")
        return count == 1 ? "1 \(unit)" : "\(count) \(unit)s"
    }
}

/// A browser in which somebody signed in to an account before, or as an administrator, by a sealed cookie that says so
/// on every node.
///
/// Attempts from there have a limit of their own, so that others who guess at the name cannot keep its owner out. It is
/// no proof of who it is: the password is still asked for.
package struct KnownBrowser: Hashable, Sendable {
    private static let purpose = "known-browser"
    /// How long a browser stays known.
    package static let lifetimeSeconds: Int64 = 180 * 86_400

    /// Or an administrator's `lockoutKey`.
    var accountID: String
    /// Random, 32 hexadecimal digits: attempts are counted by it.
    var id: String

    /// What a cookie holds; nil where this cluster did not seal it, or it has expired.
    package init?(sealed text: String, by signer: SessionSigner, now: Int64) {
        guard let payload = signer.openTicket(text, purpose: Self.purpose, now: now),
            let known = try? KnownBrowser(decoding: payload)
        else { return nil }
        self = known
    }

    init(accountID: String, id: String) {
        self.accountID = accountID
        self.id = id
    }

    /// What a cookie of it holds, from now on.
    package func sealed(by signer: SessionSigner, now: Int64) -> String {
        signer.ticket(encoded(), purpose: Self.purpose, expires: now + 1_000 * Self.lifetimeSeconds)
    }
}

extension KnownBrowser: WireMessage {
    package static var blank: Self { KnownBrowser(accountID: "", id: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &accountID)
        try wire.field(2, &id)
    }
}

/// Where this node saw people sign in before, and how often they failed since, each place for itself.
///
/// Browsers are known on every node by their cookie; addresses, of programs that keep no cookies, on the node that they
/// signed in at.
final class KnownPlaces: Sendable {
    let lockouts = LocalLockouts()
    private let addresses = BoundedMemory<Int64>(countMax: 50_000)
    private static let lifetimeMilliseconds: Int64 = 30 * 86_400_000

    /// A name for the place of an attempt on an account; nil for one that is not known.
    func place(of accountID: String, browser: KnownBrowser?, address: String, now: Int64) -> String? {
        if let browser, browser.accountID == accountID { return "browser \(browser.id)" }
        let key = Self.key(accountID, address)
        guard let seen = addresses[key], now - seen < Self.lifetimeMilliseconds else { return nil }
        return key
    }

    /// That somebody signed in to the account from there.
    func didSignIn(_ accountID: String, address: String, now: Int64) {
        if address.isEmpty { return }
        addresses.change(Self.key(accountID, address), time: now) { _ in now }
    }

    private static func key(_ accountID: String, _ address: String) -> String { "address \(accountID) \(address)" }
}

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
}
