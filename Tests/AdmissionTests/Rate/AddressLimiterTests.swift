import Testing

@testable import Admission

@Suite("Attempts of one address")
struct AddressLimiterTests {
    private let second: UInt64 = 1_000_000_000

    @Test("a burst, then one at a time, and the wait that is told is the wait that is needed")
    func rate() {
        let limiter = AddressLimiter(perMinute: 60, burst: 5, addressesMax: 1_000)
        let start = 100 * second
        for _ in 0..<5 { #expect(limiter.decide("192.0.2.1", now: start)) }
        #expect(!limiter.allows("192.0.2.1", now: start))
        #expect(!limiter.decide("192.0.2.1", now: start))
        #expect(limiter.retryAfterMilliseconds("192.0.2.1", now: start) == 1_000)
        #expect(limiter.decide("192.0.2.2", now: start), "another address is another matter")
        #expect(!limiter.decide("192.0.2.1", now: start + second - 1))
        #expect(limiter.decide("192.0.2.1", now: start + second))
        #expect(!limiter.decide("192.0.2.1", now: start + second))
    }

    @Test("asking without counting costs nothing")
    func allows() {
        let limiter = AddressLimiter(perMinute: 1, burst: 1, addressesMax: 1_000)
        for _ in 0..<10 { #expect(limiter.allows("192.0.2.1", now: second)) }
        #expect(limiter.decide("192.0.2.1", now: second))
        #expect(!limiter.allows("192.0.2.1", now: 60 * second))
        #expect(limiter.allows("192.0.2.1", now: 61 * second))
    }

    @Test("an address is one IPv4 address or one /64, however it is written")
    func blocks() {
        #expect(AddressBlock("192.0.2.1") == .v4(0xC000_0201))
        #expect(AddressBlock("::ffff:192.0.2.1") == .v4(0xC000_0201))
        #expect(AddressBlock("::FFFF:c000:201") == .v4(0xC000_0201))
        #expect(AddressBlock("2001:db8:1:2::5") == .v6(0x2001_0DB8_0001_0002))
        #expect(AddressBlock("[2001:DB8:1:2:3:4:5:6]") == .v6(0x2001_0DB8_0001_0002))
        #expect(AddressBlock("fe80::1%eth0") == .v6(0xFE80_0000_0000_0000))
        #expect(AddressBlock("::1") == .v6(0))
        #expect(AddressBlock("2001:db8:1:3::5") != AddressBlock("2001:db8:1:2::5"))
        let others = [
            "", "unix:/run/x", "1.2.3", "1.2.3.4.5", "1.2.3.256", "+1.2.3.4", ":::", "1::2::3", "12345::", "g::",
            "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "::1.2.3.4:5",
        ]
        for text in others { #expect(AddressBlock(text) == .other(text), "\(text)") }
    }

    @Test("a flood of addresses does not fill the memory, nor make the worst one forgotten")
    func bounded() {
        let limiter = AddressLimiter(perMinute: 6, burst: 3, addressesMax: 160)
        let start = 100 * second
        for _ in 0..<3 { _ = limiter.decide("203.0.113.9", now: start) }
        for number in 0..<5_000 {
            _ = limiter.decide("10.0.\(number / 250).\(number % 250)", now: start + UInt64(number))
        }
        #expect(limiter.count <= 160)
        #expect(!limiter.allows("203.0.113.9", now: start + 5_000))
    }
}
