import Hummingbird
import Testing

@testable import WebServices

@Suite("What a node holds for its clients")
struct HeldBytesTests {
    private static func holder(_ container: String?, _ address: UInt32) -> ByteHolder {
        ByteHolder(container: container, address: .v4(address))
    }

    @Test("one container, and one address, get half, and leave the other half to others, who get a quarter each")
    func shares() {
        for isOneContainer in [false, true] {
            let budget = BodyBudget(bytesMax: 800)
            func greedy(_ number: UInt32) -> ByteHolder {
                isOneContainer ? Self.holder("a", number) : Self.holder("a\(number)", 1)
            }
            for number in 0..<4 { #expect(budget.take(100, for: greedy(UInt32(number)))) }
            #expect(!budget.take(1, for: greedy(9)), "half is taken")
            let other = Self.holder("b", 77)
            #expect(budget.take(200, for: other) && !budget.take(1, for: other))
            #expect(budget.take(200, for: Self.holder(nil, 78)))
            #expect(!budget.take(1, for: Self.holder("c", 79)), "all is taken")
            budget.release(100, of: greedy(0))
            #expect(budget.take(100, for: Self.holder("c", 79)) && !budget.take(100, for: greedy(0)))
            for number in 1..<4 { budget.release(100, of: greedy(UInt32(number))) }
            #expect(budget.take(200, for: greedy(0)), "what was given back can be had again")
        }
    }

    @Test("an address that leaves answers untaken is refused, at last cut off, and served again once it took them")
    func untaken() {
        var limits = EdgeLimits()
        (limits.unsentBytesPerAddressMax, limits.unsentBytesMax) = (800, 2_000)
        let book = ConnectionBook(limits: limits)
        func load(_ address: UInt32) -> AddressLoad? {
            book.enter(.v4(address), now: .now()) {}?.load
        }
        guard let greedy = load(1), let same = load(1), let modest = load(2), let third = load(3) else {
            Issue.record("nobody was served")
            return
        }
        #expect(greedy === same, "connections of one address count together")
        #expect(book.beginSending(800, to: greedy) && book.refusal(for: same) == nil)
        #expect(book.beginSending(800, to: greedy))
        #expect(book.refusal(for: same) == .tooMuchUnsent(800) && book.refusal(for: modest) == nil)
        #expect(!book.beginSending(1, to: same))
        #expect(book.beginSending(101, to: modest) && book.beginSending(400, to: third))
        #expect(book.refusal(for: modest) == .tooMuchUnsent(100), "the node has too much in all")
        book.taken(1_600, by: greedy)
        #expect([greedy, modest, third].allSatisfy { book.refusal(for: $0) == nil })
        #expect(book.beginSending(1_600, to: same))
    }
}
