import GRDB
import RaftCore
import Storage
import Testing
import Wire

@testable import Cluster

@Suite("What becomes of a damaged replica")
struct ReplicaDamageTests {
    private static let error = StorageMismatch("a value cannot be read")

    private func at(_ index: UInt64, applies: Bool = true, isDamaged: Bool = false, isVoter: Bool = true)
        -> ReplicaCondition
    {
        ReplicaCondition(
            ReplicaID(1), applied: LogIndex(index), applies: applies, isDamaged: isDamaged, isVoter: isVoter)
    }

    @Test("it is exchanged only where another voter is sound")
    func reading() {
        let damage = ReplicaDamage(Self.error, .reading, generation: 0)
        let own = at(7, isDamaged: true)
        // How far the other one is does not matter: this one goes on voting until it is replaced.
        #expect(damage.verdict(own: own, others: [at(6)]) == .exchange)
        #expect(damage.verdict(own: own, others: []) == .keep)
        let unsound = [at(9, isDamaged: true), at(9, applies: false), at(9, isVoter: false)]
        #expect(damage.verdict(own: own, others: unsound) == .keep)
    }

    @Test("an entry that none can apply costs no replica; one that others applied does, unless it goes on")
    func applying() {
        let damage = ReplicaDamage(Self.error, .applying, generation: 0)
        let own = at(7, applies: false, isDamaged: true)
        #expect(damage.verdict(own: own, others: [at(7), at(7, applies: false)]) == .keep)
        #expect(damage.verdict(own: own, others: [at(7), at(8)]) == .exchange)
        #expect(damage.verdict(own: at(8, isDamaged: true), others: [at(8)]) == .recovered)
    }

    @Test("one that cannot be opened is exchanged where another voter is sound")
    func opening() {
        let damage = ReplicaDamage(Self.error, .opening, generation: 0)
        #expect(damage.verdict(own: nil, others: [at(9)]) == .exchange)
        #expect(damage.verdict(own: nil, others: [at(0, isVoter: false), at(9, isDamaged: true)]) == .keep)
    }

    @Test("conditions come back as they were said")
    func wire() throws {
        for condition in [at(7), at(8, applies: false), at(9, isDamaged: true), at(9, isVoter: false)] {
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
        for code in [ResultCode.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ] {
            #expect(DataDamage.isDamage(DatabaseError(resultCode: code)), "a sector is lost")
        }
        for code in [ResultCode.SQLITE_IOERR_WRITE, .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_NOMEM] {
            #expect(!DataDamage.keepsFromApplying(DatabaseError(resultCode: code)))
        }
        #expect(DataDamage.isDamage(RaftLogError.corrupt(segment: "1.seg", position: 0, detail: "")))
        #expect(!DataDamage.keepsFromApplying(DiskError(operation: "pwrite", path: "/", code: 5)))
    }
}
