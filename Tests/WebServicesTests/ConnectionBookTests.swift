import NIOCore
import Synchronization
import Testing

@testable import WebServices

@Suite("Places for connections")
struct ConnectionBookTests {
    /// Who was told to end, by name.
    private final class Ended: Sendable {
        private let all = Mutex<[String]>([])

        var names: [String] { all.withLock(\.self) }

        func add(_ name: String) { all.withLock { $0.append(name) } }
    }

    private let ended = Ended()

    private static func book(
        _ connections: Int, perAddress: Int = 100, told: Int = 0
    ) -> ConnectionBook {
        var limits = EdgeLimits()
        (limits.connectionsMax, limits.connectionsPerAddressMax) = (connections, perAddress)
        limits.toldConnectionsMax = told
        return ConnectionBook(limits: limits)
    }

    private static func at(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(0) + .seconds(seconds) }

    private func enter(
        _ book: ConnectionBook, _ name: String, _ address: UInt32, at seconds: Int64
    ) -> EdgeConnection? {
        book.enter(.v4(address), now: Self.at(seconds)) { [ended] in ended.add(name) }
    }

    @Test("a full book gives a newcomer the place of the longest idle connection of the address that has most")
    func crowdedOut() throws {
        let book = Self.book(4)
        let busy = try #require(enter(book, "busy", 1, at: 1))
        busy.note(idleSince: nil)
        let asked = try #require(enter(book, "asked", 1, at: 2))
        let idle = try #require(enter(book, "idle", 1, at: 3))
        let modest = try #require(enter(book, "modest", 2, at: 0))
        asked.note(idleSince: Self.at(9))
        #expect(enter(book, "third", 3, at: 10)?.refusal == nil)
        #expect(ended.names == ["idle"])
        // What has no place any more has none to give back.
        book.leave(idle)
        #expect(enter(book, "fourth", 4, at: 10)?.refusal == nil && ended.names == ["idle", "asked"])
        #expect(enter(book, "fifth", 5, at: 10) != nil && ended.names.count == 3, "now all have one")
        withExtendedLifetime(modest) {}
    }

    @Test("who has as many as anybody, or meets busy ones only, finds no place")
    func refused() throws {
        let book = Self.book(2, told: 1)
        let all = [try #require(enter(book, "a", 1, at: 1)), try #require(enter(book, "b", 1, at: 2))]
        let told = try #require(enter(book, "c", 1, at: 3))
        #expect(told.refusal == .tooManyConnections(2) && ended.names.isEmpty)
        #expect(enter(book, "d", 1, at: 3) == nil, "nor one to be told")
        for connection in all { connection.note(idleSince: nil) }
        // The other address has the place of the one that is told, to be told in its turn.
        #expect(enter(book, "e", 2, at: 4)?.refusal == .tooManyConnections(2) && ended.names == ["c"])
    }

    @Test("a connection that has begun a request when its place is gone stays, and counts")
    func stays() throws {
        let book = Self.book(1)
        let first = try #require(enter(book, "first", 1, at: 1))
        let second = try #require(enter(book, "second", 2, at: 2))
        first.note(idleSince: nil)
        book.stay(first)
        second.note(idleSince: nil)
        #expect(enter(book, "third", 3, at: 3) == nil, "two have one place")
        book.leave(first)
        #expect(enter(book, "third", 3, at: 3) == nil)
        book.leave(second)
        #expect(enter(book, "third", 3, at: 3) != nil)
    }

    @Test("addresses of IPv6 count by /56, as one household, and by /48, as two")
    func blocks() {
        let book = Self.book(100, perAddress: 2, told: 9)
        func isServed(_ text: String) -> Bool {
            let connection = book.enter(ClientAddress(text: text), now: Self.at(1)) {}
            return connection?.refusal == nil
        }
        #expect(isServed("2001:db8:0:100::1") && isServed("2001:db8:0:1ff::1"))
        #expect(!isServed("2001:db8:0:122::1"), "the same /56")
        #expect(isServed("2001:db8:0:200::1") && isServed("2001:db8:0:300::1"))
        #expect(!isServed("2001:db8:0:400::1"), "the same /48")
        #expect(isServed("2001:db8:1::1") && isServed("10.0.0.1"))
    }
}
