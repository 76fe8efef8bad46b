package import RecordModel

/// What became of a command.
package enum RecordOutcome: Hashable, Sendable {
    /// One item for each operation, in order; each stands alone.
    case records([ItemOutcome])
    /// Nothing was written: the failing items keep their code, the others have `ATOMIC_ERROR`.
    case atomicFailure([ItemOutcome])
    case zone(ZoneOutcome)
    case schemaInstalled
    /// A part of the maintenance was done; `hasMore` says whether another command has something to do.
    case maintained(hasMore: Bool)
    /// Nothing was written: the shard has another schema version (0: none). Where it is lower, install the schema and
    /// send the command again; where it is higher, check and encode the request anew.
    case needsSchema(installed: UInt64)
    /// Nothing was written: the shard lacks allotment. Have the ledger grant it, credit it, and send the command again,
    /// which is not remembered as a request that was answered.
    case needsAllotment(QuotaNeed)
    case quota(QuotaOutcome)
    /// Nothing was written: the whole request fails.
    case refused(ServiceError)
}

/// What became of one operation.
package enum ItemOutcome: Hashable, Sendable {
    case saved(SavedRecord)
    case deleted
    /// `serverRecord` is the stored record where a tag or an insertion clashed and the caller may read it, as long as
    /// the records of a command's outcome are not more than 4 MB.
    case failed(ServiceError, serverRecord: Record?)
}

/// What the store added to a saved record.
package struct SavedRecord: Hashable, Sendable {
    package var recordType: String
    package var changeTag: ChangeTag
    package var created: Stamp
    package var modified: Stamp
    /// All fields of the record, where they are others than those the operation set and the caller may read them;
    /// else nil.
    package var mergedFields: Fields?

    package init(recordType: String, changeTag: ChangeTag, created: Stamp, modified: Stamp, mergedFields: Fields?) {
        self.recordType = recordType
        self.changeTag = changeTag
        self.created = created
        self.modified = modified
        self.mergedFields = mergedFields
    }
}

/// What became of a zone command.
package enum ZoneOutcome: Hashable, Sendable {
    /// The zone as it is now, whether this command made it or an earlier one.
    case exists(ZoneState)
    case deleted
}

/// A zone as the shard knows it.
package struct ZoneState: Hashable, Sendable {
    package var name: String
    /// Grows when the zone is recreated or restored; 0 only for a default zone that nothing was written to yet.
    package var incarnation: UInt64
    /// The number of the zone's last change.
    package var sequence: UInt64

    package init(name: String, incarnation: UInt64, sequence: UInt64) {
        self.name = name
        self.incarnation = incarnation
        self.sequence = sequence
    }
}
