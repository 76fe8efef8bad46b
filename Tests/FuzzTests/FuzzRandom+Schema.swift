import RecordModel

extension FuzzRandom {
    static let schemaWords = [
        "DEFINE ", "SCHEMA ", "CREATE ", "ROLE ", "RECORD ", "TYPE ", "GRANT ", "READ ", "WRITE ", "TO ", "LIST", "<",
        ">",
        "(", ")", ",", ";", " STRING ", " ENCRYPTED ", " NUMBER ", " PREFERRED ", " AS ", " QUERYABLE ", " sortable ",
        " SEARCHABLE", "\"_world\"", "\"", "//", "--", "/*", "*/", "\n", "\r", "\r\n", "\t", "a", "b INT64,",
        "\"grant\"",
        "\"___recordID\" REFERENCE,", "\"___parent\"", "\\", "ä", "\u{0}", "\u{FEFF}", "T", " LOCATION", " REFERENCE",
        "\"cloudkit.share\"", "LIST<ENCRYPTED BYTES>", "NUMBER PREFERRED AS DOUBLE", "moderator", "7",
    ]

    /// Text of words of the language in any order.
    mutating func schemaWords() -> String {
        var text = chance(85) ? "DEFINE SCHEMA " : ""
        for _ in 0..<below(5) {
            guard chance(60) else {
                text += pick(Self.schemaWords)
                continue
            }
            text += "RECORD TYPE \(name())\(below(3)) ("
            for _ in 0..<below(8) { text += pick(Self.schemaWords) }
            text += chance(80) ? ");" : ""
        }
        return text
    }

    /// A schema that keeps every rule.
    mutating func schema() -> Schema {
        let roles = ["Editor", "grant", "moderator"].filter { _ in chance(40) }
        let names = ["Note", "cloudkit.share", "CD_Item", "sortable", "Users"].filter { _ in chance(40) }
        return Schema(roles: roles, types: names.map { recordType($0, roles: roles) })
    }

    mutating func recordType(_ name: String, roles: [String] = []) -> RecordType {
        var fields: [FieldDefinition] = []
        for name in ["a", "title", "count", "when", "place", "owner", "tags", "data", "Queryable", "cloudkit.type"]
        where chance(60) { fields.append(field(name, fieldType())) }
        for system in SystemField.allCases where chance(50) { fields.append(field(system.rawValue, system.type)) }
        var grants: [Grant] = []
        for role in SchemaRules.systemRoles + roles where chance(50) {
            grants.append(Grant(role: role, permissions: Permissions(rawValue: UInt8(below(8)))))
        }
        return RecordType(name: name, fields: fields, grants: grants)
    }

    private mutating func fieldType() -> FieldType {
        while true {
            let scalar = pick(ScalarType.allCases)
            let type = FieldType(
                scalar, isList: chance(30), isEncrypted: chance(20),
                preferred: scalar == .number && chance(50) ? .double : nil)
            if SchemaRules.problem(type: type) == nil { return type }
        }
    }

    private mutating func field(_ name: String, _ type: FieldType) -> FieldDefinition {
        var field = FieldDefinition(name: name, type: type)
        for named in IndexOptions.named where chance(70) && SchemaRules.problem(indexes: named.option, on: type) == nil
        {
            field.indexes.insert(named.option)
        }
        return field
    }
}
