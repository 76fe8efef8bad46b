import Testing

@testable import Service

@Suite("When memory that was freed is given back")
struct HeapTrimTests {
    private static let mebibyte: UInt64 = 1 << 20

    @Test("much more than the least there was, once it grows no more")
    func looks() {
        var trim = HeapTrim()
        let looks: [(mebibytes: UInt64, trims: Bool)] = [
            (100, false), (110, false), (90, false), (200, false), (600, false), (590, true), (217, false),
            (218, false), (218, true), (95, false), (95, false),
        ]
        for (mebibytes, trims) in looks {
            #expect(trim.looked(residentBytes: mebibytes * Self.mebibyte) == trims, "\(mebibytes)")
        }
    }
}
