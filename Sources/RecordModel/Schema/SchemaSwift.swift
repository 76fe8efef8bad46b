/// Swift code for a schema's records: for each record type a struct with a property for each field, over a `CKRecord`.
package enum SchemaSwift {
    /// The code as a source file; it needs CloudKit, here or on Apple's platforms.
    /// - Parameter type: the one type that is wanted; nil: all.
    package static func code(of schema: Schema, type: String? = nil) -> String {
        var names = Names(
            taken: ["CKRecord", "CKAsset", "CLLocation", "Data", "Date", "Double", "Int64", "String", "UUID"])
        var parts = ["import CloudKit\nimport CoreLocation\nimport Foundation"]
        for each in schema.normalized.types {
            let name = names.name(each.name, isType: true)
            if type == nil || each.name == type { parts.append(code(of: each, named: name)) }
        }
        return parts.joined(separator: "\n\n") + "\n"
    }

    private static func code(of type: RecordType, named name: String) -> String {
        var names = Names(taken: ["record", "recordType", "init", "self"])
        var lines = [
            "/// A record of the type \(literal(type.name)).",
            "struct \(name) {",
            "    static let recordType = \(literal(type.name))",
            "    let record: CKRecord",
            "",
            "    init(recordID: CKRecord.ID = CKRecord.ID(recordName: UUID().uuidString)) {",
            "        record = CKRecord(recordType: Self.recordType, recordID: recordID)",
            "    }",
            "",
            "    /// Nil for a record of another type.",
            "    init?(_ record: CKRecord) {",
            "        guard record.recordType == Self.recordType else { return nil }",
            "        self.record = record",
            "    }",
        ]
        for field in type.fields where !field.isSystem {
            let (property, swift) = (names.name(field.name, isType: false), swiftType(of: field.type))
            let values = field.type.isEncrypted ? "record.encryptedValues" : "record"
            let place = "\(values)[\(literal(field.name))]"
            lines += [
                "",
                "    var \(property): \(swift)? {",
                "        get { \(place) as? \(swift) }",
                "        nonmutating set { \(place) = newValue }",
                "    }",
            ]
        }
        return (lines + ["}"]).joined(separator: "\n")
    }

    private static func swiftType(of type: FieldType) -> String {
        let element =
            switch type.preferred ?? type.scalar {
            case .string: "String"
            case .int64: "Int64"
            case .double, .number: "Double"
            case .timestamp: "Date"
            case .bytes: "Data"
            case .location: "CLLocation"
            case .reference: "CKRecord.Reference"
            case .asset: "CKAsset"
            }
        return type.isList ? "[\(element)]" : element
    }

    /// A schema's name as Swift writes a text: it has letters, digits, underscores and dots only.
    private static func literal(_ name: String) -> String { "\"\(name)\"" }

    /// Names of schemas as names in Swift, each once.
    private struct Names {
        var taken: Set<String>

        mutating func name(_ given: String, isType: Bool) -> String {
            // Names that CloudKit itself brings have dots.
            var name = String(given.map { $0 == "." ? "_" : $0 })
            if isType, let first = name.first { name = first.uppercased() + name.dropFirst() }
            let base = name
            var number = 2
            while !taken.insert(name).inserted {
                name = "\(base)\(number)"
                number += 1
            }
            return SchemaSwift.reserved.contains(name) ? "`\(name)`" : name
        }
    }

    /// Words that Swift takes as names in backticks only.
    private static let reserved: Set<String> = [
        "Any", "Protocol", "Self", "Type", "as", "associatedtype", "break", "case", "catch", "class", "continue",
        "default", "defer", "deinit", "do", "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for",
        "func", "guard", "if", "import", "in", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup",
        "private", "protocol", "public", "repeat", "rethrows", "return", "static", "struct", "subscript", "super",
        "switch", "throw", "throws", "true", "try", "typealias", "var", "where", "while",
    ]
}
