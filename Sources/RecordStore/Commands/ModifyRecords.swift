package import Authorization
package import RecordModel
package import Wire

/// Changes of records of one zone, made by one caller in one request.
package struct ModifyRecords: Hashable, Sendable, WireMessage {
    /// A custom zone must exist; a default zone is made by the first record that is saved in it.
    package var zone: ZoneKey
    /// The schema version under which the edge checked the values; apply refuses any other with `needsSchema`.
    package var schemaVersion: UInt64
    /// Whose permissions apply, and whom the `modified` stamps of the saved records name.
    package var caller: Caller
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// All or nothing; counts in zones where `ZoneKey.isAtomic` only.
    package var isAtomic: Bool
    /// Nil: the outcome is not remembered, and a repeated command is applied again.
    package var idempotency: IdempotencyKey?
    /// Nil: what is stored is counted, but nothing is refused for its size.
    package var quota: QuotaTerms?
    /// At most `Limits.operationsMax`, at most one for each record name.
    package var operations: [RecordChange]
    /// The client's own name for its device, which is not notified of its own changes. From
    /// `FeatureLevel.notifications` on.
    package var client: String?
    /// How many earlier versions of each record are kept; 0: none are. From `FeatureLevel.versions` on.
    package var versionsMax: UInt64 = 0

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

    package static var blank: Self {
        ModifyRecords(zone: .blank, schemaVersion: 0, caller: Caller(user: nil), time: 0, operations: [])
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &time)
        try wire.field(5, &isAtomic, unless: false)
        try wire.field(6, &idempotency)
        try wire.field(8, &quota)
        try wire.field(7, &operations)
        try wire.field(9, &client)
        try wire.field(10, &versionsMax, unless: 0)
    }

    /// Why the whole request fails, whatever is stored; nil if the records decide.
    ///
    /// The edge asks before it sends a command on, so that what can only be refused is not logged; apply asks again.
    package var refusal: ServiceError? {
        if let refusal = ZoneRules.refusal(of: caller, in: zone) { return refusal }
        guard operations.count <= Limits.operationsMax else {
            return ServiceError(
                .badRequest, "\(operations.count) operations in one request, at most \(Limits.operationsMax)")
        }
        let members = operations.reduce(0) { sum, operation in
            operation.fields.reduce(sum) { $0 + ($1.value?.memberCount ?? 0) }
        }
        guard members <= Limits.listMembersPerRequestMax else {
            return ServiceError(
                .badRequest,
                """
                the lists of the request have \(members) members together, at most \(Limits.listMembersPerRequestMax): \
                send the records in several requests
                """)
        }
        return nil
    }
}

/// What makes the repetition of a request recognisable.
package struct IdempotencyKey: Hashable, Sendable, WireMessage {
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

    package static var blank: Self { IdempotencyKey(key: [], bodyHash: [], caller: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &key)
        try wire.field(2, &bodyHash)
        try wire.field(3, &caller)
        try wire.field(4, &position, unless: 0)
    }

    package func check() throws(WireError) {
        guard key.count == 16 else { throw .invalidValue(field: 1) }
        guard bodyHash.count == 32 else { throw .invalidValue(field: 2) }
    }
}

/// One operation on one record.
package struct RecordChange: Hashable, Sendable, WireMessage {
    /// CloudKit's operation types; the raw value is the one in the log.
    package enum Kind: UInt64, Hashable, Sendable, CaseIterable, WireValue {
        case create = 1
        case update, forceUpdate, replace, forceReplace, delete, forceDelete
    }

    /// A field to set, or to clear where the value is nil.
    package struct FieldChange: Hashable, Sendable, WireMessage {
        /// A field of the record type, or `___parent`; the operation fails for any other.
        package var name: String
        /// A value of the field's type, else the operation fails; nil clears the field.
        package var value: FieldValue?
        package init(name: String, value: FieldValue?) {
            self.name = name
            self.value = value
        }

        package static var blank: Self { RecordChange.FieldChange(name: "", value: nil) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &name)
            try wire.field(2, &value)
        }
    }

    /// Whether the record must, may or must not exist, and whether a save keeps the fields that it does not name.
    package var kind: Kind
    /// 1 to `Limits.nameLengthMax` characters; names are compared by bytes, not by Unicode equivalence.
    package var recordName: String
    /// Needed where the operation may create.
    package var recordType: String?
    /// Needed by `update`, `replace` and `delete`; not looked at by the others.
    package var changeTag: ChangeTag?
    /// The updates keep all other stored fields; `create` and the replacements keep only these; deletions ignore them.
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

    package static var blank: Self { RecordChange(.create, "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &kind)
        try wire.field(2, &recordName)
        try wire.field(3, &recordType)
        try wire.field(4, &changeTag)
        try wire.field(5, &fields)
    }

    /// Why the operation fails, whatever is stored; nil if the records decide.
    /// - Parameter type: the operation's type, if it names one that the schema has.
    package func refusal(as type: RecordType?, by caller: Caller, in zone: ZoneKey) -> ServiceError? {
        let length = recordName.count
        guard (1...Limits.nameLengthMax).contains(length) else {
            return ServiceError(
                .badRequest, "recordName has \(length) characters, 1 to \(Limits.nameLengthMax) are allowed")
        }
        if let type, let denial = denial(type, caller, zone) { return denial }
        return Self.refusal(ofRecordBytes: setBytes)
    }

    /// Bytes of the values that it sets.
    private var setBytes: Int {
        fields.reduce(0) { sum, field in sum + (field.value.map { field.name.utf8.count + $0.sizeBytes } ?? 0) }
    }

    /// Whether it sets more than a record may hold.
    package var isTooLarge: Bool { setBytes > Limits.recordSizeBytesMax }

    /// Why a record of this size may not be stored; nil if it may.
    static func refusal(ofRecordBytes bytes: Int) -> ServiceError? {
        if bytes <= Limits.recordSizeBytesMax { return nil }
        return ServiceError(.badRequest, "record is \(bytes) bytes, at most \(Limits.recordSizeBytesMax)")
    }

    /// Why the caller may not do it to any record of the type, not even one of its own making.
    private func denial(_ type: RecordType, _ caller: Caller, _ zone: ZoneKey) -> ServiceError? {
        if kind == .create, let refusal = UsersRules.refusalToCreate(recordName, type: type, by: caller, in: zone) {
            return refusal
        }
        if type.name == RecordType.usersName { return nil }
        let most = Permissions(of: caller, in: type, of: zone.database, isCreator: true)
        return switch kind {
        case .create: most.contains(.create) ? nil : Self.mayNotCreate(type)
        case .forceUpdate, .forceReplace: most.isDisjoint(with: [.create, .write]) ? Self.mayNotCreate(type) : nil
        case .update, .replace: most.contains(.write) ? nil : Self.mayNotChange
        case .delete, .forceDelete: nil
        }
    }

    static func mayNotCreate(_ type: RecordType) -> ServiceError {
        ServiceError(.accessDenied, "no permission to create records of type \(type.name)")
    }

    static let mayNotChange = ServiceError(.accessDenied, "no permission to change the record")
}

extension ModifyZone {
    /// Why nothing of the command can be done, whatever zones there are.
    var refusal: ServiceError? {
        if let refusal = ZoneRules.refusal(of: caller, inZonesOf: zone.database) { return refusal }
        guard !zone.isDefault else {
            return ServiceError(.badRequest, "the default zone can be neither created nor deleted")
        }
        guard (1...Limits.nameLengthMax).contains(zone.name.count) else {
            return ServiceError(
                .badRequest, "zoneName has \(zone.name.count) characters, 1 to \(Limits.nameLengthMax) are allowed")
        }
        return nil
    }
}

extension FieldValue {
    /// How many values a list holds; a sealed one counts as a single value.
    fileprivate var memberCount: Int {
        switch self {
        case .list(_, let members): members.count
        case .encrypted(let value): value.memberCount
        default: 0
        }
    }
}
