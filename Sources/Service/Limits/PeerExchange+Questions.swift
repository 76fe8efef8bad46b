import Admission
import RecordModel
import Wire

extension PeerExchange {
    /// What the leader of a container's group is asked.
    enum Question: WireCodable, Hashable {
        case rates([RateReport])
        /// What a signature is, which was verified; where it is new it counts as used from then on. Who lost the answer
        /// asks again with the same nonce.
        case signature(RequestSignature, nonce: UInt64)
        /// Which key-value stores of the group changed since a mark that an earlier answer had.
        case stores(since: StoreJournal.Mark?)
    }

    /// The leader's answer about a signature.
    struct SignatureAnswer: WireCodable, Hashable {
        var verdict: ReplayGuard.Verdict
    }
}

extension PeerExchange.Question {
    /// 1 a report of a rate, several times; 2 to 4 key, date and Base64 of a signature, 5 the question's nonce; 6 that
    /// stores are asked for, 7 and 8 the mark.
    func encode(to writer: inout WireWriter) {
        switch self {
        case .rates(let reports): for report in reports { writer.field(1) { report.encode(to: &$0) } }
        case .signature(let signature, let nonce):
            writer.field(2, signature.keyID)
            writer.field(3, signature.date)
            writer.field(4, Base64.encode(signature.signature))
            writer.field(5, nonce)
        case .stores(let mark):
            writer.field(6, true)
            guard let mark else { return }
            writer.field(7, mark.journal)
            writer.field(8, mark.count)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var reports: [RateReport] = []
        var parts: [Int: String] = [:]
        var nonce: UInt64 = 0
        var isOfStores = false
        var mark: StoreJournal.Mark?
        while let field = try reader.nextField() {
            switch field {
            case 1: reports.append(try reader.message())
            case 2...4: parts[field] = try reader.string()
            case 5: nonce = try reader.unsigned()
            case 6: isOfStores = try reader.bool()
            case 7: mark = StoreJournal.Mark(journal: try reader.unsigned(), count: 0)
            case 8: mark?.count = try reader.unsigned()
            default: try reader.skip()
            }
        }
        if isOfStores {
            self = .stores(since: mark)
            return
        }
        guard !parts.isEmpty else {
            self = .rates(reports)
            return
        }
        guard
            let signature = try? RequestSignature(keyID: parts[2], date: parts[3], signature: parts[4])
        else { throw .invalidValue(field: 4) }
        self = .signature(signature, nonce: nonce)
    }
}

extension PeerExchange.SignatureAnswer {
    /// 1: 1 new, 2 used, 3 too old, 4 ahead; 2 by how many milliseconds.
    func encode(to writer: inout WireWriter) {
        switch verdict {
        case .new: writer.field(1, UInt64(1))
        case .used: writer.field(1, UInt64(2))
        case .tooOld: writer.field(1, UInt64(3))
        case .ahead(let milliseconds):
            writer.field(1, UInt64(4))
            writer.field(2, signed: milliseconds)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var number: UInt64 = 0
        var milliseconds: Int64 = 0
        while let field = try reader.nextField() {
            switch field {
            case 1: number = try reader.unsigned()
            case 2: milliseconds = try reader.signed()
            default: try reader.skip()
            }
        }
        switch number {
        case 1: verdict = .new
        case 2: verdict = .used
        case 3: verdict = .tooOld
        case 4: verdict = .ahead(milliseconds: milliseconds)
        default: throw .invalidValue(field: 1)
        }
    }
}
