/// What every schema must keep, whether it comes from text, from the console or from a first save in development.
///
/// Each check answers nil, or a sentence that says what is wrong and what to do.
package enum SchemaRules {
    /// The roles that every container has.
    package static let systemRoles = ["_creator", "_icloud", "_world"]

    /// Words that stand for themselves only in quotation marks, in lower case.
    package static let reservedWords = ["grant", "preferred", "queryable", "searchable", "sortable"]

    /// What a name names.
    package enum NameKind: String, Sendable {
        case recordType = "record type"
        case field = "field"
        case role = "role"
    }

    /// Whether a name may be given to a user's type, field or role: a letter, then letters, digits, underscores and, in
    /// the names of the types and fields that CloudKit itself brings such as `cloudkit.share`, dots; at most 255
    /// characters, ASCII.
    package static func problem(name: String, of kind: NameKind) -> String? {
        let shown = "'\(name.prefix(60))'"
        if name.isEmpty { return "the name of a \(kind.rawValue) is empty; give it at least one letter" }
        if name.utf8.count > Limits.nameLengthMax {
            return "the name \(shown) has \(name.utf8.count) characters; shorten it to \(Limits.nameLengthMax)"
        }
        if name.hasPrefix("_") {
            return "\(shown) begins with an underscore, which only names of the system do; choose another name"
        }
        guard let first = name.utf8.first, isLetter(first) else {
            return "\(shown) does not begin with a letter; choose another name"
        }
        let mayHaveDots = kind != .role && name.hasPrefix("cloudkit.") && name.utf8.count > "cloudkit.".utf8.count
        for byte in name.utf8 where !SchemaLexer.isWordByte(byte) && !(mayHaveDots && byte == UInt8(ascii: ".")) {
            return "\(shown) holds a character that a \(kind.rawValue)'s name cannot have; "
                + "use letters, digits and underscores"
        }
        return nil
    }

    /// Whether a schema is small enough to be kept and sent whole.
    package static func problem(sizeOf schema: Schema) -> String? { problem(size: schema.encodedSize) }

    /// Whether a schema of so many bytes is small enough to be kept and sent whole.
    static func problem(size: Int) -> String? {
        if size <= Limits.schemaBytesMax { return nil }
        return "it would have \(size) bytes, at most \(Limits.schemaBytesMax) are possible; "
            + "remove types and fields that nothing uses, or give shorter names"
    }

    /// Whether a field of this type may have these indexes.
    package static func problem(indexes: IndexOptions, on type: FieldType) -> String? {
        if indexes.isEmpty { return nil }
        let words = indexes.words.joined(separator: " ")
        if type.isEncrypted { return "an ENCRYPTED field cannot have an index; remove \(words) or ENCRYPTED" }
        if type.scalar == .asset { return "an ASSET cannot have an index; remove \(words)" }
        if indexes.contains(.sortable), type.isList {
            return "a list has no order to sort by; remove SORTABLE"
        }
        if indexes.contains(.searchable), type.scalar != .string {
            return "only STRING and LIST<STRING> can be searched for words; remove SEARCHABLE"
        }
        return nil
    }

    /// Whether the parts of a type go together.
    package static func problem(type: FieldType) -> String? {
        if type.isEncrypted {
            switch type.scalar {
            case .asset: return "assets are always encrypted; write ASSET without ENCRYPTED"
            case .reference: return "a REFERENCE must stay readable to the server; remove ENCRYPTED"
            case .number: return "a NUMBER cannot be encrypted; write ENCRYPTED INT64 or ENCRYPTED DOUBLE"
            case .string, .int64, .double, .timestamp, .bytes, .location: break
            }
        }
        if let preferred = type.preferred {
            if type.scalar != .number { return "only NUMBER has a preferred kind; remove PREFERRED AS" }
            if preferred != .int64, preferred != .double {
                return "a NUMBER is preferred as INT64 or DOUBLE, not as \(preferred.rawValue)"
            }
        }
        return nil
    }

    /// Whether a field may stand in a record type: name, type and indexes together.
    package static func problem(field: FieldDefinition) -> String? {
        if let system = SystemField(rawValue: field.name) {
            if field.type != system.type {
                return "the system field \"\(field.name)\" has the type \(system.type.schemaText); it cannot be "
                    + "\(field.type.schemaText)"
            }
        } else if let problem = problem(name: field.name, of: .field) {
            return problem
        }
        return problem(type: field.type) ?? problem(indexes: field.indexes, on: field.type)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte | 0x20 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): true
        default: false
        }
    }
}
