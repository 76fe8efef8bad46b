package import Wire

/// Some records of the audit log, one after the other.
package struct AuditPage: Hashable, Sendable {
    package var records: [AuditRecord]
    /// Whether more follow.
    package var moreComing: Bool
    /// The number that the first record must have: records before it were read before, or are past retention.
    package var firstSequence: UInt64
    /// The hash that the first record must follow, taken from the record before it, or from what is kept of the last
    /// one past retention.
    package var firstPreviousHash: [UInt8]

    package init(records: [AuditRecord], moreComing: Bool, firstSequence: UInt64, firstPreviousHash: [UInt8]) {
        self.records = records
        self.moreComing = moreComing
        self.firstSequence = firstSequence
        self.firstPreviousHash = firstPreviousHash
    }

    /// The number of the first record of the page that breaks the chain; nil if none does.
    package var firstBroken: UInt64? {
        guard let first = records.first else { return nil }
        if first.sequence != firstSequence || first.previousHash != firstPreviousHash { return firstSequence }
        return AuditRecord.verify(records)
    }
}

extension AuditPage: WireCodable {
    /// 1 record, 2 whether more follow, 3 first sequence, 4 first previous hash.
    package func encode(to writer: inout WireWriter) {
        for record in records { writer.field(1) { record.encode(to: &$0) } }
        writer.field(2, moreComing)
        writer.field(3, firstSequence)
        writer.field(4, firstPreviousHash)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(records: [], moreComing: false, firstSequence: 0, firstPreviousHash: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: records.append(try reader.message())
            case 2: moreComing = try reader.bool()
            case 3: firstSequence = try reader.unsigned()
            case 4: firstPreviousHash = try reader.array()
            default: try reader.skip()
            }
        }
    }
}
