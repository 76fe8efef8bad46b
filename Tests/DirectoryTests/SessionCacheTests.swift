import RaftCore
import Testing

@testable import Directory

@Suite("Sessions in memory")
struct SessionCacheTests {
    private static func session(_ number: Int) -> Session {
        Session(
            token: Token(
                sessionID: "s\(number)", container: "app", accountID: "a\(number)", expires: 9, label: "", created: 1),
            accountName: "n\(number)")
    }

    private static func key(_ number: Int) -> SessionKey { .signIn(id: "s\(number)") }

    /// Reads a session and keeps it.
    private static func read(_ number: Int, _ cache: inout SessionCache) {
        let ticket = cache.began(key(number))
        cache.ended(key(number), ticket, session(number))
    }

    @Test("what was read is kept until it is over, whichever way it is named")
    func kept() {
        var cache = SessionCache(countMax: 10)
        #expect(cache.session(Self.key(1)) == nil)
        Self.read(1, &cache)
        #expect(cache.session(Self.key(1)) == Self.session(1))
        let made = Token(
            id: "t1", secretHash: [7], kind: .session(container: "app", accountID: "a1", expires: 9), label: "",
            created: 1)
        let key = SessionKey.secret(hash: [7])
        cache.ended(key, cache.began(key), Session(token: made, accountName: "n1"))
        #expect(cache.session(key)?.token == made)
        cache.remove(made)
        #expect(cache.session(key) == nil && cache.count == 1)
        cache.remove(Self.session(1).token)
        #expect(cache.session(Self.key(1)) == nil && cache.count == 0)
    }

    @Test("a session that ends while it is read is not kept, by whichever of two readings")
    func races() {
        var cache = SessionCache(countMax: 10)
        let (first, second) = (cache.began(Self.key(1)), cache.began(Self.key(1)))
        #expect(first != second)
        cache.remove(Self.session(1).token)
        // A reading that begins after the end finds nothing.
        let third = cache.began(Self.key(1))
        cache.ended(Self.key(1), first, Self.session(1))
        #expect(cache.session(Self.key(1)) == nil)
        cache.ended(Self.key(1), third, nil)
        cache.ended(Self.key(1), second, Self.session(1))
        #expect(cache.session(Self.key(1)) == nil)
        // The end of another one does no harm.
        let fourth = cache.began(Self.key(1))
        cache.remove(Self.session(2).token)
        cache.ended(Self.key(1), fourth, Self.session(1))
        #expect(cache.session(Self.key(1)) != nil)
        // Nor is anything kept that was read before everything was replaced.
        let fifth = cache.began(Self.key(3))
        cache.removeAll()
        cache.ended(Self.key(3), fifth, Self.session(3))
        #expect(cache.count == 0)
    }

    @Test("it is bounded, and what was used lately stays")
    func bounds() {
        var cache = SessionCache(countMax: 100)
        for number in 0..<1_000 {
            Self.read(number, &cache)
            #expect(cache.count <= 100)
            // In use all the time.
            #expect(cache.session(Self.key(0)) != nil)
            if number >= 20 { #expect(cache.session(Self.key(number - 20)) != nil) }
        }
        #expect(cache.session(Self.key(500)) == nil)
    }

    @Test("random use, readings and ends: it never has a session that is over, like a naive twin", arguments: 1...8)
    func twin(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var cache = SessionCache(countMax: 8)
        var living = Set(0..<20)
        var readings: [(number: Int, ticket: SessionCache.Ticket, found: Session?)] = []
        var hits = 0
        for _ in 0..<5_000 {
            let number = Int.random(in: 0..<20, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                living.remove(number)
                cache.remove(Self.session(number).token)
            case 1: living.insert(number)
            case 2...5:
                readings.append(
                    (number, cache.began(Self.key(number)), living.contains(number) ? Self.session(number) : nil))
            case 6...8 where !readings.isEmpty:
                let reading = readings.remove(at: Int.random(in: 0..<readings.count, using: &random))
                cache.ended(Self.key(reading.number), reading.ticket, reading.found)
            default:
                guard let session = cache.session(Self.key(number)) else { continue }
                hits += 1
                #expect(session == Self.session(number) && living.contains(number))
            }
            #expect(cache.count <= 8)
        }
        #expect(hits > 20)
    }
}
