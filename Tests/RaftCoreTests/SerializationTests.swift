import RaftCore
import Testing
import Wire

@Suite("Messages as bytes")
struct SerializationTests {
    @Test("a term or an index beyond 2^62 is refused: what comes after it must be a number, too")
    func bounds() throws {
        func decoded(term: UInt64 = 1, previous: UInt64 = 0) throws -> Message {
            let request = AppendRequest(
                previous: LogPosition(index: LogIndex(previous), term: Term(1)), entries: [], commit: .zero)
            let message = Message(from: ReplicaID(1), to: ReplicaID(2), term: Term(term), body: .appendRequest(request))
            return try Message(decoding: message.encoded())
        }
        let last: UInt64 = 1 << 62 - 1
        #expect(try decoded(term: last, previous: last).term == Term(last))
        #expect(throws: WireError.malformed) { try decoded(term: last + 1) }
        #expect(throws: WireError.malformed) { try decoded(term: .max) }
        #expect(throws: WireError.malformed) { try decoded(previous: .max) }
    }
}
