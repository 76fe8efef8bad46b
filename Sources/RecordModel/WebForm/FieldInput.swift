/// A field's value as a client sent it. What it means depends on the record type's schema, so it is kept as JSON until
/// `resolve` is called with the field's definition.
package struct FieldInput: Hashable, Sendable {
    /// The type that the client states, as it wrote it; nil if it states none.
    package var type: String?
    package var json: JSONValue
    /// Whether the client marks the value as encrypted.
    package var isEncrypted: Bool

    package init(type: String? = nil, json: JSONValue, isEncrypted: Bool = false) {
        self.type = type
        self.json = json
        self.isEncrypted = isEncrypted
    }

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
    package var name: String
    package var value: FieldInput?

    package init(name: String, value: FieldInput?) {
        self.name = name
        self.value = value
    }

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
}
