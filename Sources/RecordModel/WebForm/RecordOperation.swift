/// One operation of records/modify: what a client asks to be done to one record.
package struct RecordOperation: Hashable, Sendable {
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
}
