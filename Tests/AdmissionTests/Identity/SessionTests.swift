import Admission
import RecordModel
import Testing

@Suite("Session tokens and tickets")
struct SessionTests {
    private static let signer = SessionSigner(clusterKey: [UInt8](repeating: 1, count: 32))
    private static let stranger = SessionSigner(clusterKey: [UInt8](repeating: 2, count: 32))

    private static func isUnreserved(_ text: String) -> Bool {
        text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
    }

    /// Every text that differs from this one in one character, or lacks its end.
    private static func damaged(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        var all = (0..<bytes.count).map { String(decoding: bytes[..<$0], as: UTF8.self) }
        for position in bytes.indices {
            for bit in 0..<7 {
                var changed = bytes
                changed[position] ^= 1 << UInt8(bit)
                all.append(String(decoding: changed, as: UTF8.self))
            }
        }
        return all + [text + "A", text + "=", " " + text, text + text]
    }

    @Test("a token says what it was made of, in characters that no client has to escape")
    func token() throws {
        for (id, issued) in [("5f", 0), ("session with ü", 1_453_760_143_000), ("x", .max), ("y", -1)]
            as [(String, Int64)]
        {
            let token = Self.signer.token(sessionID: id, issued: issued)
            #expect(Self.isUnreserved(token))
            let opened = try #require(Self.signer.open(token))
            #expect(opened.sessionID == id && opened.issued == issued)
        }
    }

    @Test("a token that was cut, lengthened or changed in any bit does not open")
    func damagedToken() {
        let token = Self.signer.token(sessionID: "0123456789abcdef", issued: 1_453_760_143_000)
        for text in Self.damaged(token) { #expect(Self.signer.open(text) == nil, "\(text)") }
    }

    @Test("the token of another cluster does not open, nor do tokens without a session")
    func foreign() {
        #expect(Self.signer.open(Self.stranger.token(sessionID: "5f", issued: 1)) == nil)
        #expect(Self.signer.open(Self.signer.token(sessionID: "", issued: 1)) == nil)
        #expect(Self.signer.open("") == nil)
        #expect(Self.signer.open("zks1_" + String(repeating: "A", count: 100_000)) == nil)
    }

    @Test("a ticket opens for its purpose until it expires, on every node of the cluster")
    func ticket() {
        let again = SessionSigner(clusterKey: [UInt8](repeating: 1, count: 32))
        for payload in [[], [7], [UInt8](repeating: 200, count: 3000)] as [[UInt8]] {
            let ticket = Self.signer.ticket(payload, purpose: "sign-in", expires: 1000)
            #expect(Self.isUnreserved(ticket))
            #expect(again.openTicket(ticket, purpose: "sign-in", now: 999) == payload)
            #expect(again.openTicket(ticket, purpose: "sign-in", now: 1000) == nil, "it has expired")
            #expect(again.openTicket(ticket, purpose: "sign-up", now: 999) == nil, "another purpose")
            #expect(Self.stranger.openTicket(ticket, purpose: "sign-in", now: 999) == nil, "another cluster")
        }
    }

    @Test("a ticket that was cut, lengthened or changed in any bit does not open; tokens are no tickets")
    func damagedTicket() {
        let ticket = Self.signer.ticket(Array("payload".utf8), purpose: "sign-in", expires: 1000)
        for text in Self.damaged(ticket) {
            #expect(Self.signer.openTicket(text, purpose: "sign-in", now: 0) == nil, "\(text)")
        }
        let token = Self.signer.token(sessionID: "5f", issued: 1)
        #expect(Self.signer.openTicket(token, purpose: "sign-in", now: 0) == nil)
        #expect(Self.signer.open(ticket) == nil)
    }

    @Test("a ticket does not show its payload, and two of one payload differ")
    func secrecy() throws {
        let payload = Array("api-token-of-ada".utf8)
        let first = Self.signer.ticket(payload, purpose: "sign-in", expires: 1000)
        let second = Self.signer.ticket(payload, purpose: "sign-in", expires: 1000)
        #expect(first != second)
        let sealed = try #require(Base64URL.decode(first.dropFirst("zkt1_".count)))
        #expect(!String(decoding: sealed, as: UTF8.self).contains("api-token"))
    }

    @Test("Base64URL takes one text for each value and no other characters")
    func base64URL() {
        for count in 0..<40 {
            let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 91 &+ 250) }
            let text = Base64URL.encode(value)
            #expect(Self.isUnreserved(text) && Base64URL.decode(text) == value)
        }
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
        for text in ["A", "+_8", "-/8", "-_8=", "-_9", "-_8 ", "AAAAA", "Ä"] {
            #expect(Base64URL.decode(text) == nil, "\(text)")
        }
    }
}
