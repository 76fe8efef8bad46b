import RecordModel
import Testing

@Suite("UUIDs of version 7")
struct UUIDv7Tests {
    @Test("text has the order of time and says when it was made")
    func order() {
        let first = UUIDv7(milliseconds: 1_700_000_000_000, random: (.max, .max))
        let second = UUIDv7(milliseconds: 1_700_000_000_001, random: (0, 0))
        #expect(first.text < second.text)
        #expect(first.text == "018BCFE5-6800-7FFF-BFFF-FFFFFFFFFFFF")
        #expect(second.text == "018BCFE5-6801-7000-8000-000000000000")
        #expect(second.milliseconds == 1_700_000_000_001)
    }

    @Test("bytes and text of either case are read back")
    func roundTrip() {
        let uuid = UUIDv7(milliseconds: 1_700_000_000_000, random: (0x123, 0x4567_89AB_CDEF_0123))
        #expect(UUIDv7(uuid.text) == uuid)
        #expect(UUIDv7(uuid.text.lowercased()) == uuid)
        #expect(UUIDv7(uuid.bytes) == uuid)
        #expect(uuid.bytes.count == 16)
    }

    @Test("sixteen bytes of anything become one of version 7")
    func version() {
        let uuid = UUIDv7([UInt8](repeating: 0, count: 16))
        #expect(uuid.text == "00000000-0000-7000-8000-000000000000")
    }

    @Test(
        "what is no UUID of version 7 is refused",
        arguments: [
            "", "no uuid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "018BCFE5-6800-7FFF-BFFF-FFFFFFFFFFF",
            "018BCFE5-6800-7FFF-BFFF-FFFFFFFFFFFFF", "018BCFE568007FFFBFFFFFFFFFFFFFFF",
            "018BCFE5-6800-7FFF-BFFF-FFFFFFFFFFFG", "018BCFE56-800-7FFF-BFFF-FFFFFFFFFFFF",
        ])
    func refused(text: String) {
        #expect(UUIDv7(text) == nil)
    }
}
