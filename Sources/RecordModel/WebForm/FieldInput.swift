/// A field's value as a client sent it. What it means depends on the record type's schema, so it is kept as JSON until
/// `resolve` is called with the field's definition.
package struct FieldInput: Hashable, Sendable {
    /// The type as the client wrote it, if any.
    package var type: String?
    /// The value as the client sent it, not yet converted; null clears a record's field.
    package var json: JSONValue
    /// Whether the client marks the value as encrypted.
    package var isEncrypted = false
}

extension FieldInput {
    /// Reads `{value, type}`.
    init(form json: JSONValue) throws(FormError) {
        guard case .object = json else { throw .expected("an object with \"value\" and \"type\"", json) }
        guard let value = json["value"] else { throw FormError("is missing; null clears the field", at: "value") }
        let form = try Form(json)
        self.init(
            type: try form.string("type"), json: value, isEncrypted: try form.bool("isEncrypted") ?? false)
    }
}

/// A field that an operation names: its new value, or nil to clear it. The record's `parent` is the field `___parent`.
package struct FieldChange: Hashable, Sendable {
    /// The field's name in the schema.
    package var name: String
    /// The new value, not yet converted to the schema's type; nil clears the field.
    package var value: FieldInput?
}

extension FieldChange {
    /// Reads one member of `fields`. Null, `{}` and a null value clear the field.
    init(form member: JSONValue.Member) throws(FormError) {
        if member.key.hasPrefix("___") {
            throw FormError("is a system field, which clients cannot write", at: member.key)
        }
        name = member.key
        value = try at(member.key) { () throws(FormError) -> FieldInput? in
            try Names.checkIdentifier(member.key)
            if member.value.isNull || member.value == .object([]) { return nil }
            let input = try FieldInput(form: member.value)
            return input.json.isNull ? nil : input
        }
    }

    /// Reads the member `parent` of a record, `{recordName}`; null clears it.
    init(parent json: JSONValue) throws(FormError) {
        name = SystemField.parent.rawValue
        if json.isNull { return }
        let form = try Form(json)
        guard let parent = try form.string("recordName") else { throw FormError("is missing", at: "recordName") }
        try at("recordName") { () throws(FormError) in try Names.checkPrintable(parent) }
        // A parent holds its children together for sharing; it neither deletes nor guards them.
        if let action = try form.string("action"), action != Reference.Action.none.rawValue {
            throw FormError("'\(action)' is not for a parent, whose action is NONE", at: "action")
        }
        value = FieldInput(type: ScalarType.reference.rawValue, json: json)
    }
}

/// What a client states about a value's type.
enum StatedType: Hashable {
    case none
    /// What an empty list is called, by us and by CloudKit.
    case unknownList
    case type(FieldType)

    /// Reads CloudKit's name of a type.
    init(_ input: FieldInput) throws(FormError) {
        guard let name = input.type else {
            self = .none
            return
        }
        if name == "UNKNOWN_LIST" {
            self = .unknownList
            return
        }
        var base = name
        let isEncrypted = base.hasPrefix("ENCRYPTED_")
        if isEncrypted { base.removeFirst("ENCRYPTED_".count) }
        let isList = base.hasSuffix("_LIST")
        if isList { base.removeLast("_LIST".count) }
        switch base {
        case "NUMBER_INT64": base = "INT64"
        case "NUMBER_DOUBLE": base = "DOUBLE"
        case "ASSETID": base = "ASSET"
        default: break
        }
        guard let scalar = ScalarType(rawValue: base), scalar != .number else {
            throw FormError(
                "state one such as STRING, INT64_LIST or TIMESTAMP, or leave it out",
                words: "Invalid value, unknown type '\(name)'")
        }
        self = .type(FieldType(scalar, isList: isList, isEncrypted: isEncrypted))
    }

    fileprivate var isEncrypted: Bool {
        if case .type(let type) = self { type.isEncrypted } else { false }
    }
}

extension FieldInput {
    /// The value that this stands for in the field `name`; nil clears the field.
    ///
    /// With a definition the value is converted to the schema's type; a type that the client states must be the same.
    /// Without one (a field that is new to the schema) the stated type counts, else the value's own looks. The value of
    /// an encrypted field is `.encrypted`, still in the clear.
    /// - Parameter zone: the zone of the record that holds the field; references to it lose their zone, and references
    ///   to another are refused. nil keeps zones as they are.
    /// - Parameter assets: finds the files of ASSET values; without it they are refused.
    /// - Throws: `BAD_REQUEST` naming the field; a retry does not help.
    package func resolve(
        field name: String, definition: FieldDefinition?, zone: ZoneID? = nil, assets: AssetResolver? = nil
    ) throws(ServiceError) -> FieldValue? {
        try service { () throws(FormError) in
            try at(name == SystemField.parent.rawValue ? "parent" : "fields.\(name).value") { () throws(FormError) in
                try resolve(
                    as: definition?.type, with: ValueConverter(zone: zone, asset: assets?.resolver(of: name)))
            }
        }
    }

    func resolve(as known: FieldType?, with converter: ValueConverter) throws(FormError) -> FieldValue? {
        let stated = try StatedType(self)
        if json.isNull { return nil }
        let isEncrypted = known?.isEncrypted ?? (isEncrypted || stated.isEncrypted)
        if !isEncrypted, self.isEncrypted || stated.isEncrypted {
            throw FormError(
                "send the value without isEncrypted, or add another field of an ENCRYPTED type to the schema",
                words: "Attempt to save encrypted data in non encrypted field type")
        }
        let value = try plain(as: known, stated: stated, with: converter)
        guard isEncrypted else { return value }
        guard value.type.scalar != .reference else {
            throw FormError("a REFERENCE cannot be encrypted: the server must be able to read it")
        }
        guard value.type.scalar != .asset else {
            throw FormError("an ASSETID is not marked as encrypted: leave isEncrypted out")
        }
        return .encrypted(value)
    }

    /// The value, not looking at whether it is an encrypted field's.
    private func plain(
        as known: FieldType?, stated: StatedType, with converter: ValueConverter
    ) throws(FormError) -> FieldValue {
        if case .array(let members) = json, members.isEmpty { return try emptyList(known, stated) }
        let target = try Self.target(of: known, stated: stated, json: json)
        guard target.isList else {
            return try converter.convert(json, to: target.scalar)
        }
        guard case .array(let members) = json else { throw .invalid(target, json) }
        guard members.count <= Limits.listCountMax else {
            throw FormError("\(members.count) members given, at most \(Limits.listCountMax) in a list")
        }
        var values: [FieldValue] = []
        values.reserveCapacity(members.count)
        for (index, member) in members.enumerated() {
            values.append(
                try at("[\(index)]") { () throws(FormError) in try converter.convert(member, to: target.scalar) })
        }
        return .list(target.scalar, values)
    }

    /// An empty list says nothing about its type, so the schema's counts, whatever list type was stated.
    private func emptyList(_ known: FieldType?, _ stated: StatedType) throws(FormError) -> FieldValue {
        let type: FieldType
        switch (known, stated) {
        case (let known?, .type(let given)) where !given.isList || !known.isList: throw .mismatch(known, given)
        case (let known?, _): type = known
        case (nil, .type(let given)): type = given
        case (nil, _):
            throw FormError("an empty list has no type: state one such as STRING_LIST, or add the field to the schema")
        }
        guard type.isList else { throw .invalid(type, json) }
        return .list(type.scalar == .number ? type.preferred ?? .int64 : type.scalar, [])
    }

    /// The type to convert to.
    private static func target(
        of known: FieldType?, stated: StatedType, json: JSONValue
    ) throws(FormError) -> FieldType {
        guard var known else {
            if case .type(let given) = stated { return given }
            let inferred = try ValueConverter.infer(json)
            if stated == .unknownList, !inferred.isList { throw .expected("an array", json) }
            return inferred
        }
        if known.scalar == .number {
            known = FieldType(
                known.preferred ?? openNumber(stated, json), isList: known.isList, isEncrypted: known.isEncrypted)
        }
        switch stated {
        case .type(let given) where given.scalar != known.scalar || given.isList != known.isList:
            throw .mismatch(known, given)
        case .unknownList where !known.isList: throw .invalid(known, json)
        default: return known
        }
    }

    /// The kind of a number whose kind the schema leaves open: the one stated, else by looks.
    private static func openNumber(_ stated: StatedType, _ json: JSONValue) -> ScalarType {
        if case .type(let given) = stated { return given.scalar == .double ? .double : .int64 }
        let numbers = json.array ?? [json]
        let hasFraction = numbers.contains { number in
            switch number {
            case .number: true
            case .string(let text): if case .number = JSONParser.parseNumber(text) { true } else { false }
            default: false
            }
        }
        return hasFraction ? .double : .int64
    }
}

extension FormError {
    /// CloudKit's words for a value of the wrong type, and what was there instead.
    static func invalid(_ type: FieldType, _ json: JSONValue) -> FormError {
        FormError("found \(json.kind)", words: "Invalid value, expected type \(type.webName)")
    }

    static func invalid(_ scalar: ScalarType, _ why: String) -> FormError {
        FormError(why, words: "Invalid value, expected type \(FieldType(scalar).webName)")
    }

    static func mismatch(_ known: FieldType, _ stated: FieldType) -> FormError {
        FormError(
            "the type stated is \(stated.webName)", words: "Invalid value, expected type \(known.webName)")
    }
}
