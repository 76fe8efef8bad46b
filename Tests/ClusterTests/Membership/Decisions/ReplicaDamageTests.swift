import GRDB
import RaftCore
import Storage
import Testing
import Wire

@testable import Cluster

@Suite("What becomes of a damaged replica")
struct ReplicaDamageTests {
    private static let error = StorageMismatch("a value cannot be read")

    private func at(_ index: UInt64, applies: Bool = true, isDamaged: Bool = false) -> ReplicaCondition {
        ReplicaCondition(applied: LogIndex(index), applies: applies, isDamaged: isDamaged)
    }

    @Test("it is given up only where another one is sound and as far")
    func reading() {
        let damage = ReplicaDamage(Self.error, .reading)
        let own = at(7, isDamaged: true)
        #expect(damage.verdict(own: own, others: [at(7)], isLed: false) == .giveUp)
        #expect(damage.verdict(own: own, others: [at(6), at(9)], isLed: false) == .giveUp)
        #expect(damage.verdict(own: own, others: [], isLed: true) == .keep)
        #expect(damage.verdict(own: own, others: [at(6)], isLed: true) == .keep)
        #expect(
            damage.verdict(own: own, others: [at(9, isDamaged: true), at(9, applies: false)], isLed: true) == .keep)
    }

    @Test("an entry that none can apply costs no replica; one that others applied does, unless it goes on")
    func applying() {
        let damage = ReplicaDamage(Self.error, .applying)
        let own = at(7, applies: false, isDamaged: true)
        #expect(damage.verdict(own: own, others: [at(7), at(7, applies: false)], isLed: true) == .keep)
        #expect(damage.verdict(own: own, others: [at(7), at(8)], isLed: true) == .giveUp)
        #expect(damage.verdict(own: at(8, isDamaged: true), others: [at(8)], isLed: true) == .recovered)
    }

    @Test("one that cannot be opened is given up once the group has a leader and a sound copy")
    func opening() {
        let damage = ReplicaDamage(Self.error, .opening)
        #expect(damage.verdict(own: nil, others: [at(0)], isLed: true) == .giveUp)
        #expect(damage.verdict(own: nil, others: [at(9)], isLed: false) == .keep)
        #expect(damage.verdict(own: nil, others: [at(9, isDamaged: true)], isLed: true) == .keep)
    }

    @Test("conditions come back as they were said")
    func wire() throws {
        for condition in [at(7), at(8, applies: false), at(9, isDamaged: true)] {
            #expect(try ReplicaCondition(decoding: condition.encoded()) == condition)
        }
    }

    @Test("what a machine may do better later is no damage")
    func errors() {
        for code in [ResultCode.SQLITE_BUSY, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_NOMEM, .SQLITE_CANTOPEN] {
            #expect(!DataDamage.keepsFromApplying(DatabaseError(resultCode: code)))
        }
        for code in [ResultCode.SQLITE_CONSTRAINT, .SQLITE_CONSTRAINT_UNIQUE, .SQLITE_ERROR, .SQLITE_MISMATCH] {
            #expect(DataDamage.keepsFromApplying(DatabaseError(resultCode: code)))
            #expect(!DataDamage.isDamage(DatabaseError(resultCode: code)), "a request may be at fault")
        }
        #expect(DataDamage.isDamage(DatabaseError(resultCode: .SQLITE_CORRUPT)) && DataDamage.isDamage(Self.error))
        #expect(!DataDamage.keepsFromApplying(DiskError(operation: "pwrite", path: "/", code: 5)))
    }
}
