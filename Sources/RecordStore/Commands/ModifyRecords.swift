package import Authorization
package import RecordModel

/// Changes of records of one zone, made by one caller in one request.
package struct ModifyRecords: Hashable, Sendable {
    package var zone: ZoneKey
    /// The schema version under which the edge checked the values; apply refuses any other with `needsSchema`.
    package var schemaVersion: UInt64
    package var caller: Caller
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// All or nothing; counts in zones where `ZoneKey.isAtomic` only.
    package var isAtomic: Bool
    package var idempotency: IdempotencyKey?
    /// Nil: what is stored is counted, but nothing is refused for its size.
    package var quota: QuotaTerms?
    /// At most `Limits.operationsMax`, at most one for each record name.
    package var operations: [RecordChange]
    /// The device that asks, as it names itself: it is not told of its own changes. From
    /// `FeatureLevel.notifications` on.
    package var client: String?

    package init(
        zone: ZoneKey, schemaVersion: UInt64, caller: Caller, time: Int64, isAtomic: Bool = false,
        idempotency: IdempotencyKey? = nil, quota: QuotaTerms? = nil, operations: [RecordChange]
    ) {
        self.zone = zone
        self.schemaVersion = schemaVersion
        self.caller = caller
        self.time = time
        self.isAtomic = isAtomic
        self.idempotency = idempotency
        self.quota = quota
        self.operations = operations
    }
}

/// What makes the repetition of a request recognisable.
package struct IdempotencyKey: Hashable, Sendable {
    /// 16 bytes, a UUIDv7 whose time is checked: more than 24 h old or ahead is refused.
    package var key: [UInt8]
    /// SHA-256 of the request's body, 32 bytes.
    package var bodyHash: [UInt8]
    /// Whose key it is: a user, a server key or an API token, as text.
    package var caller: String
    /// Which of a request's commands it is, where a request makes several; else 0.
    package var position: UInt64

    package init(key: [UInt8], bodyHash: [UInt8], caller: String, position: UInt64 = 0) {
        self.key = key
        self.position = position
        self.bodyHash = bodyHash
        self.caller = caller
    }
}

/// One operation on one record.
package struct RecordChange: Hashable, Sendable {
    /// CloudKit's operation types; the raw value is the one in the log.
    package enum Kind: UInt64, Hashable, Sendable, CaseIterable {
        case create = 1
        case update, forceUpdate, replace, forceReplace, delete, forceDelete
    }

    /// A field to set, or to clear where the value is nil.
    package struct FieldChange: Hashable, Sendable {
        package var name: String
        package var value: FieldValue?
        package init(name: String, value: FieldValue?) {
            self.name = name
            self.value = value
        }
    }

    package var kind: Kind
    package var recordName: String
    /// Needed where the operation may create.
    package var recordType: String?
    /// Needed by `update`, `replace` and `delete`; not looked at by the others.
    package var changeTag: ChangeTag?
    package var fields: [FieldChange]

    package init(
        _ kind: Kind, _ recordName: String, type recordType: String? = nil, changeTag: ChangeTag? = nil,
        fields: [FieldChange] = []
    ) {
        self.kind = kind
        self.recordName = recordName
        self.recordType = recordType
        self.changeTag = changeTag
        self.fields = fields
    }
}
