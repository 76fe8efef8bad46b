/// One operation of records/modify: what a client asks to be done to one record.
package struct RecordOperation: Hashable, Sendable {
    /// What to do, and whether the record must exist or have a certain version.
    package var kind: Kind
    /// 1 to 255 printable ASCII characters; nil, for `create` only, asks the server to make one.
    package var recordName: String?
    /// Present where the operation may create the record.
    package var recordType: String?
    /// The version that the client means to change, as it wrote it; present exactly where `kind.checksTag`.
    package var changeTag: String?
    /// The fields named, each once, in the client's order, the parent last as `___parent`; empty for deletions.
    package var fields: [FieldChange]
    /// The fields to return; nil leaves it to the request.
    package var desiredKeys: [String]?
    /// Whether numbers return as strings; nil leaves it to the request.
    package var numbersAsStrings: Bool?

    package init(
        _ kind: Kind, recordName: String?, recordType: String? = nil, changeTag: String? = nil,
        fields: [FieldChange] = []
    ) {
        self.kind = kind
        self.recordName = recordName
        self.recordType = recordType
        self.changeTag = changeTag
        self.fields = fields
    }

    /// What to do; the raw value is the one on the wire.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case create, update, forceUpdate, replace, forceReplace, delete, forceDelete

        /// Whether a stale change tag refuses the operation.
        package var checksTag: Bool { self == .update || self == .replace || self == .delete }
        /// Whether a missing record is created.
        package var mayCreate: Bool { self == .create || self == .forceUpdate || self == .forceReplace }
        /// Whether the record is deleted; such an operation has neither a record type nor fields.
        package var isDelete: Bool { self == .delete || self == .forceDelete }
    }
}

extension RecordOperation {
    /// Reads `{operationType, record, desiredKeys}`.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        let kindName = try form.need("operationType")
        guard let kind = kindName.string.flatMap(Kind.init(rawValue:)) else {
            let known = Kind.allCases.map(\.rawValue).joined(separator: ", ")
            let found = kindName.string.map { "'\($0)'" } ?? kindName.kind
            throw FormError("expected one of \(known), found \(found)", at: "operationType")
        }
        let record = try form.need("record")
        self = try at("record") { () throws(FormError) in try RecordOperation(kind, record: record) }
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings()
    }

    /// Reads a record. `zoneID`, `pluginFields`, `created` and the like, which clients echo, are ignored.
    private init(_ kind: Kind, record json: JSONValue) throws(FormError) {
        let form = try Form(json)
        let name = try form.string("recordName")
        if let name {
            let isUser = try form.string("recordType") == RecordType.usersName
            try at("recordName") { () throws(FormError) in
                try Names.checkRecord(name, mayCreate: kind.mayCreate && !isUser)
            }
        } else if kind != .create {
            throw FormError("is missing; \(kind.rawValue) needs it", at: "recordName")
        }
        self.init(kind, recordName: name)
        let tag = try form.string("recordChangeTag")
        if kind.checksTag {
            guard let tag, !tag.isEmpty else {
                let other = kind == .update ? "forceUpdate" : kind == .replace ? "forceReplace" : "forceDelete"
                throw FormError("is missing; \(kind.rawValue) needs it, \(other) does not", at: "recordChangeTag")
            }
            changeTag = tag
        }
        if kind.isDelete { return }
        try Self.refuseWhatIsNotBuilt(form)
        recordType = try form.string("recordType")
        if let recordType {
            try at("recordType") { () throws(FormError) in try Names.checkIdentifier(recordType) }
        } else if kind.mayCreate {
            throw FormError("is missing; \(kind.rawValue) needs it", at: "recordType")
        }
        fields = try form.nested("fields", Self.fields) ?? []
        // Null is said, not left out: it takes the record from under its parent.
        if let parent = json["parent"] {
            fields.append(try at("parent") { () throws(FormError) in try FieldChange(parent: parent) })
        }
    }

    private static func refuseWhatIsNotBuilt(_ form: Form) throws(FormError) {
        let version = "not built yet in this version of Zonekeeper"
        if let type = try form.string("recordType"), type.lowercased().hasPrefix("cloudkit.share") {
            throw FormError("sharing is \(version)", at: "recordType")
        }
        if form["forRecord"] != nil { throw FormError("sharing is \(version)", at: "forRecord") }
        if try form.bool("createShortGUID") == true { throw FormError("sharing is \(version)", at: "createShortGUID") }
    }

    private static func fields(_ json: JSONValue) throws(FormError) -> [FieldChange] {
        guard case .object(let members) = json else { throw .expected("an object", json) }
        guard members.count <= Limits.fieldsMax else {
            throw FormError("\(members.count) given, at most \(Limits.fieldsMax) in a record")
        }
        var changes: [FieldChange] = []
        changes.reserveCapacity(members.count)
        for member in members { changes.append(try FieldChange(form: member)) }
        return changes
    }

    /// A field and what it gets; nil clears it.
    package struct Value: Hashable, Sendable {
        /// The field's name in the schema; `___parent` for the parent.
        package var name: String
        /// A value of the schema's type; nil clears the field.
        package var value: FieldValue?
    }

    /// Where an operation is to happen.
    package struct Place: Hashable, Sendable {
        /// The container's name.
        package var container: String
        /// Saves may extend the schema in development only.
        package var environment: Environment
        /// The kind of database; the public one takes no values of encrypted fields.
        package var scope: Scope
        /// The record's zone; references to another zone are refused.
        package var zone: ZoneID
        /// Whether saves extend the schema; never in production.
        package let schemaGrows: Bool
        /// The bytes of the schema, where they are known: to measure it again for each operation is dear.
        package let schemaBytes: Int?

        package init(
            container: String, environment: Environment, scope: Scope, zone: ZoneID, schemaGrows: Bool = true,
            schemaBytes: Int? = nil
        ) {
            self.schemaGrows = schemaGrows && environment == .development
            self.schemaBytes = schemaBytes
            self.container = container
            self.environment = environment
            self.scope = scope
            self.zone = zone
        }
    }

    /// The operation's fields with their values converted to the schema's types, in its order; the parent among them as
    /// `___parent`, encrypted fields as `.encrypted`. Fields that the schema does not know and that are cleared are
    /// left out: they hold nothing.
    /// - Parameter assets: finds the files of ASSET values; without it they are refused.
    /// - Throws: `BAD_REQUEST` if the schema lacks the type or a field, or a value does not fit; a retry does not help.
    ///   `TRY_AGAIN_LATER` if the environment is development and the schema could be extended (`SchemaExtension`).
    package func values(
        in schema: Schema, at place: Place, assets: AssetResolver? = nil
    ) throws(ServiceError) -> [Value] {
        if kind.isDelete { return [] }
        guard let recordType else {
            guard fields.allSatisfy({ $0.name == SystemField.parent.rawValue }) else {
                throw ServiceError(.badRequest, "recordType is missing: without it the fields cannot be checked")
            }
            var values: [Value] = []
            for field in fields { values.append(try parent(field, place.zone)) }
            return values
        }
        if let refusal = SchemaExtension.refusal(of: self, in: schema, at: place) { throw refusal }
        guard let type = schema.type(named: recordType) else { return [] }
        let table = FieldTable(type, asking: fields.count)
        var values: [Value] = []
        values.reserveCapacity(fields.count)
        for field in fields {
            if let value = try self.value(field, of: table, at: place, assets) { values.append(value) }
        }
        return values
    }

    private func value(
        _ field: FieldChange, of type: FieldTable, at place: Place, _ assets: AssetResolver?
    ) throws(ServiceError) -> Value? {
        if field.name == SystemField.parent.rawValue { return try parent(field, place.zone) }
        guard let definition = type[field.name] else { return nil }
        let value = try field.value.map { input throws(ServiceError) in
            try input.resolve(field: field.name, definition: definition, zone: place.zone, assets: assets)
        }
        if definition.type.isEncrypted, place.scope == .public, value != nil {
            throw SchemaExtension.noEncryption(field.name)
        }
        return Value(name: field.name, value: value ?? nil)
    }

    private func parent(_ field: FieldChange, _ zone: ZoneID) throws(ServiceError) -> Value {
        let definition = FieldDefinition(name: field.name, type: SystemField.parent.type)
        let value = try field.value.map { input throws(ServiceError) in
            try input.resolve(field: field.name, definition: definition, zone: zone)
        }
        return Value(name: field.name, value: value ?? nil)
    }
}

/// The body of records/modify.
package struct ModifyRecordsRequest: WebRequest, Hashable {
    /// At most `Limits.operationsMax`; no two name the same record.
    package var operations: [RecordOperation]
    /// The zone of every record; the default zone if the client names none.
    package var zoneID: ZoneID
    /// All or nothing; used in custom zones only.
    package var isAtomic: Bool
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    /// Whether the answer writes INT64, DOUBLE and TIMESTAMP values as strings; an operation may override it.
    package var numbersAsStrings: Bool

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try ModifyRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        operations = try form.array("operations", max: Limits.operationsMax) { json throws(FormError) in
            try RecordOperation(form: json)
        }
        zoneID = try form.zoneID()
        isAtomic = try form.bool("atomic") ?? true
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
        try checkNames()
    }

    private func checkNames() throws(FormError) {
        var places: [String: Int] = [:]
        places.reserveCapacity(operations.count)
        for (index, operation) in operations.enumerated() {
            guard let name = operation.recordName else { continue }
            if let earlier = places.updateValue(index, forKey: name) {
                throw FormError(
                    "operations[\(earlier)] is for '\(name)' too; at most one operation for a record in one request",
                    at: "operations[\(index)].record.recordName")
            }
        }
    }
}

/// The body of records/lookup.
package struct LookupRecordsRequest: WebRequest, Hashable {
    /// A record to look up.
    package struct Item: Hashable, Sendable {
        /// 1 to 255 printable ASCII characters.
        package var recordName: String
        /// The fields to return; nil leaves it to the request.
        package var desiredKeys: [String]?
    }

    /// At most `Limits.recordsPerPageMax`, in the order in which results must come; a name may occur twice.
    package var records: [Item]
    /// The zone of every record; the default zone if the client names none.
    package var zoneID: ZoneID
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    /// Whether the answer writes INT64, DOUBLE and TIMESTAMP values as strings.
    package var numbersAsStrings: Bool

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try LookupRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        records = try form.array("records", max: Limits.recordsPerPageMax) { json throws(FormError) in
            let record = try Form(json)
            guard let name = try record.string("recordName") else { throw FormError("is missing", at: "recordName") }
            try at("recordName") { () throws(FormError) in try Names.checkRecord(name, mayCreate: false) }
            return Item(recordName: name, desiredKeys: try record.desiredKeys())
        }
        zoneID = try form.zoneID()
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
    }
}

/// The body of records/versions, an extension: what a record was before it was changed or deleted.
package struct RecordVersionsRequest: WebRequest, Hashable {
    /// The record's.
    package var recordName: String
    /// Where it is or was.
    package var zoneID: ZoneID
    /// The tag of the last version of the page before; nil for the newest.
    package var before: ChangeTag?
    /// 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int
    /// Whether INT64, DOUBLE and TIMESTAMP values come as texts.
    package var numbersAsStrings: Bool

    /// - Throws: `BAD_REQUEST` that names the member at fault.
    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try RecordVersionsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        guard let name = try form.string("recordName") else { throw FormError("is missing", at: "recordName") }
        try at("recordName") { () throws(FormError) in try Names.checkRecord(name, mayCreate: false) }
        recordName = name
        zoneID = try form.zoneID()
        before = try form.string("before").map { text throws(FormError) in
            guard let tag = ChangeTag(text) else { throw FormError("is no change tag", at: "before") }
            return tag
        }
        resultsLimit = try form.resultsLimit() ?? Limits.recordsPerPageMax
        numbersAsStrings = try form.numbersAsStrings() ?? false
    }
}

/// The body of records/changes, the older form of changes/zone for one zone; and what a client wants of one zone in
/// changes/zone.
package struct RecordChangesRequest: WebRequest, Hashable {
    /// The zone to read, which the client must name, here or beside `zones`.
    package var zoneID: ZoneID
    /// Where the page before ended, as the server gave it; nil for the beginning.
    package var syncToken: String?
    /// 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    /// The record types to return; nil is all.
    package var desiredRecordTypes: [String]?
    /// Newest first.
    package var isReverse: Bool
    /// Whether the answer writes INT64, DOUBLE and TIMESTAMP values as strings.
    package var numbersAsStrings: Bool
}

extension RecordChangesRequest {
    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in
            try RecordChangesRequest(Form(json), ZoneChangesRequestForm.Defaults())
        }
    }
}
