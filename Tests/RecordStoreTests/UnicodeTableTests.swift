import Foundation
import RecordModel
import Testing

@testable import RecordStore

/// Apply depends on Unicode's tables in the Swift runtime. Builds with other tables would make other rows of the same
/// commands, so replicas would differ. Where these tests fail after a change of the toolchain,
/// `Sources/RecordStore/DESIGN.md` says under "Unicode's tables" what to do; the figures alone must not be changed.
@Suite("Unicode's tables are those that replicas were made with")
struct UnicodeTableTests {
    /// The planes that have characters.
    private static let scalars = [0...0xD7FF, 0xE000...0x3FFFF, 0xE0000...0xE0FFF] as [ClosedRange<UInt32>]

    /// The FNV-1a hash of what each character becomes, in its neighbourhood.
    private func hash(_ transformed: (String) -> [UInt8]) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func fold(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for value in Self.scalars.joined() {
            guard let scalar = Unicode.Scalar(value) else { continue }
            for byte in transformed("a\(scalar)b\u{301}") { fold(byte) }
            fold(0xFF)
        }
        return String(hash, radix: 16)
    }

    @Test("words of texts")
    func words() {
        let hash = hash { text in
            Tokenizer.words(of: text).flatMap { $0.token + [$0.isPrefix ? 1 : 0] }
        }
        #expect(hash == "2c822e52b0dd7110")
    }

    @Test("the composed form of names")
    func composed() { #expect(hash { Array($0.precomposedStringWithCanonicalMapping.utf8) } == "9c6cdd4f513c0b85") }
}
