import Admission
import Crypto
import Foundation
import RaftCore
import Testing

@testable import Cluster
@testable import Service

@Suite("Used signatures, through changes of the leader")
struct SignatureMemoryTests {
    private static let start: Int64 = 1_767_225_600_000

    private func signature(_ second: Int) throws -> RequestSignature {
        let der = try P256.Signing.PrivateKey().signature(for: [UInt8(second % 256)]).derRepresentation
        return try #require(
            try RequestSignature(
                keyID: String(repeating: "0", count: 64),
                date: String(format: "2026-01-01T00:%02d:%02dZ", second / 60, second % 60),
                signature: der.base64EncodedString()))
    }

    /// A lead that began so many seconds after midnight, at a second after midnight.
    private func lead(_ term: UInt64, since: UInt64, at second: UInt64) -> Leadership {
        Leadership(
            group: GroupID(3), term: Term(term), since: .zero.adding(milliseconds: 5_000_000 + since * 1_000),
            now: .zero.adding(milliseconds: 5_000_000 + second * 1_000))
    }

    private func ask(
        _ memory: SignatureMemory, _ signature: RequestSignature, _ leadership: Leadership, second: Int64,
        isAlone: Bool = false, isSure: Bool = true
    ) -> ReplayGuard.Verdict {
        memory.admit(
            signature, nonce: .random(in: .min ... .max), as: leadership, isAlone: isAlone, isSure: isSure,
            now: Self.start + second * 1_000)
    }

    @Test("what one leader let through, the next one does not, and says to sign anew")
    func failover() throws {
        let used = try signature(10)
        let (first, second) = (SignatureMemory(), SignatureMemory())
        #expect(ask(first, used, lead(1, since: 0, at: 10), second: 10) == .new)
        #expect(ask(first, used, lead(1, since: 0, at: 11), second: 11) == .used)
        #expect(ask(second, used, lead(2, since: 12, at: 20), second: 20) == .tooOld)
        #expect(ask(second, try signature(13), lead(2, since: 12, at: 20), second: 20) == .tooOld, "clocks differ")
        #expect(ask(second, try signature(14), lead(2, since: 12, at: 20), second: 20) == .new)
        // The first leads again: others may have led between.
        #expect(ask(first, used, lead(3, since: 30, at: 40), second: 40) == .used)
        #expect(ask(first, try signature(25), lead(3, since: 30, at: 40), second: 40) == .tooOld)
        #expect(ask(first, try signature(35), lead(3, since: 30, at: 40), second: 40) == .new)
    }

    @Test("a leader whose clock is wrong for a moment lets nothing of earlier leaders in, and is not held up for long")
    func wrongClock() throws {
        let memory = SignatureMemory()
        // It is an hour behind when it is asked first.
        #expect(
            ask(memory, try signature(13), lead(2, since: 12, at: 20), second: -3_580)
                == .ahead(milliseconds: 3_593_000))
        #expect(ask(memory, try signature(11), lead(2, since: 12, at: 21), second: 21) == .tooOld)
        let used = try signature(15)
        #expect(ask(memory, used, lead(2, since: 12, at: 21), second: 21) == .new)
        // It is an hour ahead, and leads again with the right time.
        #expect(ask(memory, try signature(20), lead(2, since: 12, at: 22), second: 3_622) == .tooOld)
        #expect(ask(memory, used, lead(3, since: 30, at: 33), second: 33) == .tooOld)
        #expect(ask(memory, try signature(32), lead(3, since: 30, at: 33), second: 33) == .new)
    }

    @Test("a clock that came right keeps signatures out for a window, also where no other node ever leads")
    func cameRight() throws {
        let memory = SignatureMemory()
        func ask(_ dated: Int, at second: UInt64, ahead: Int64 = 0) throws -> ReplayGuard.Verdict {
            self.ask(
                memory, try signature(dated), lead(1, since: 12, at: second), second: Int64(second) + ahead,
                isAlone: true)
        }
        #expect(try ask(15, at: 20, ahead: 3_600) == .tooOld)
        #expect(try ask(22, at: 23) == .tooOld)
        #expect(try ask(600, at: 622) == .tooOld)
        #expect(try ask(620, at: 623) == .new)
        #expect(try ask(12, at: 624) == .tooOld)
        // Behind for less than that lets nothing in that was dated before the lead began.
        #expect(try ask(1, at: 700, ahead: -695) == .tooOld)
        #expect(try ask(2, at: 1_200, ahead: -1_195) == .tooOld)
        #expect(try ask(1_250, at: 1_260) == .new)
        #expect(try ask(3, at: 1_320, ahead: -1_310) == .tooOld)
    }

    @Test("a clock that was right, and is then behind its peer's for long, lets nothing of an earlier lead in")
    func cameWrong() throws {
        let memory = SignatureMemory()
        // Of two nodes neither can tell which of their clocks is wrong.
        func ask(_ dated: Int, at second: UInt64, ahead: Int64 = 0, isSure: Bool = true) throws -> ReplayGuard.Verdict {
            self.ask(
                memory, try signature(dated), lead(2, since: 12, at: second), second: Int64(second) + ahead,
                isSure: isSure)
        }
        #expect(try ask(15, at: 20) == .new)
        #expect(try ask(5, at: 700, ahead: -690, isSure: false) == .tooOld)
        #expect(try ask(6, at: 1_290, ahead: -1_280) == .tooOld)
        // It was not sure all the time.
        #expect(try ask(7, at: 1_301, ahead: -1_290, isSure: false) == .tooOld)
        #expect(try ask(8, at: 1_310, ahead: -1_300) == .tooOld)
        #expect(try ask(9, at: 1_895, ahead: -1_885) == .tooOld)
        #expect(try ask(1_900, at: 1_911) == .new)
    }

    @Test("a node that is alone refuses what is dated before its own start only")
    func alone() throws {
        let memory = SignatureMemory()
        #expect(ask(memory, try signature(12), lead(1, since: 12, at: 13), second: 13, isAlone: true) == .tooOld)
        #expect(ask(memory, try signature(13), lead(1, since: 12, at: 13), second: 13, isAlone: true) == .new)
        #expect(
            ask(memory, try signature(15), lead(1, since: 12, at: 13), second: 13, isAlone: true)
                == .ahead(milliseconds: 2_000))
    }
}
