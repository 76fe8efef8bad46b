/// Reads CloudKit's schema language (`.ckdb`).
///
/// Keywords count in any case. A comma before the closing parenthesis is accepted, which Apple's tools never write.
/// The result is normalized: system fields are in it only where they carry an index, and grants to one role are one.
/// Source: "Integrating a Text-Based Schema into Your Workflow", and exports of public projects.
package struct SchemaParser {
    private var lexer: SchemaLexer
    var token: SchemaToken
    private var roles: [String] = []
    private var types: [RecordType] = []
    private var roleNames: Set<String> = []
    private var typeNames: Set<String> = []
    /// Grants name roles that may be created further down, so they are looked at last.
    private var grantedRoles: [(name: String, token: SchemaToken)] = []

    /// The schema that the text describes.
    /// - Throws: `SchemaError` for the first thing that is wrong.
    package static func parse(_ text: String) throws(SchemaError) -> Schema {
        var parser = try SchemaParser(text)
        return try parser.schema()
    }

    private init(_ text: String) throws(SchemaError) {
        lexer = SchemaLexer(text)
        token = try lexer.next()
    }

    private mutating func schema() throws(SchemaError) -> Schema {
        guard isKeyword("DEFINE") else {
            throw token.error("a schema begins with DEFINE SCHEMA, not with \(token.shown)")
        }
        try advance()
        try expect(keyword: "SCHEMA", after: "DEFINE")
        while token.kind != .end {
            if isKeyword("CREATE") {
                try createRole()
            } else if isKeyword("RECORD") {
                try recordType()
            } else {
                throw token.error("expected CREATE ROLE or RECORD TYPE, found \(token.shown)")
            }
        }
        for granted in grantedRoles where !SchemaRules.systemRoles.contains(granted.name) {
            guard roleNames.contains(granted.name) else { throw granted.token.error(Self.unknownRole(granted.name)) }
        }
        return Schema(roles: roles, types: types).normalized
    }

    private mutating func createRole() throws(SchemaError) {
        try advance()
        try expect(keyword: "ROLE", after: "CREATE")
        let start = token
        let name = try name(of: .role)
        if SchemaRules.systemRoles.contains(name) {
            throw start.error("every container has the role \"\(name)\"; remove this CREATE ROLE")
        }
        if let problem = SchemaRules.problem(name: name, of: .role) { throw start.error(problem) }
        guard roleNames.insert(name).inserted else {
            throw start.error("the role '\(name)' is created twice; remove one of the two")
        }
        roles.append(name)
        try expect(symbol: ";", after: "CREATE ROLE \(name)")
    }

    private mutating func recordType() throws(SchemaError) {
        try advance()
        try expect(keyword: "TYPE", after: "RECORD")
        let start = token
        let name = try name(of: .recordType)
        if let problem = SchemaRules.problem(name: name, of: .recordType) { throw start.error(problem) }
        guard typeNames.insert(name).inserted else {
            throw start.error("the record type '\(name)' is defined twice; join the two")
        }
        guard types.count < Limits.typesMax else {
            throw start.error("a schema has at most \(Limits.typesMax) record types; '\(name)' is one too many")
        }
        try expect(symbol: "(", after: "RECORD TYPE \(name)")
        var type = RecordType(name: name)
        var fieldNames: Set<String> = []
        while token.kind != .symbol(")") {
            if isKeyword("GRANT") { try grant(into: &type.grants) } else { try field(into: &type, &fieldNames) }
            if token.kind == .symbol(")") { break }
            guard token.kind == .symbol(",") else {
                throw token.error("expected ',' or ')' in record type '\(name)', found \(token.shown)")
            }
            try advance()
        }
        try advance()
        try expect(symbol: ";", after: "record type '\(name)'")
        // In order of their names.
        types.append(RecordType(name: name, fields: type.fields, grants: type.grants))
    }

    /// - Parameter names: of the type's fields so far.
    private mutating func field(into type: inout RecordType, _ names: inout Set<String>) throws(SchemaError) {
        let start = token
        let field = try field(inType: type.name)
        guard names.insert(field.name).inserted else {
            throw start.error("'\(type.name)' has the field '\(field.name)' twice; remove one of the two")
        }
        type.fields.append(field)
        guard field.isSystem || type.fields.count(where: { !$0.isSystem }) <= Limits.fieldsMax else {
            throw start.error(
                "a record type has at most \(Limits.fieldsMax) fields; '\(field.name)' of '\(type.name)' is one too "
                    + "many"
            )
        }
    }

    private mutating func grant(into grants: inout [Grant]) throws(SchemaError) {
        try advance()
        var permissions: Permissions = []
        while true {
            guard let named = Permissions.named.first(where: { isKeyword($0.word) }) else {
                throw token.error("expected READ, CREATE or WRITE after GRANT, found \(token.shown)")
            }
            permissions.formUnion(named.permission)
            try advance()
            guard token.kind == .symbol(",") else { break }
            try advance()
        }
        try expect(keyword: "TO", after: "the permissions of a GRANT")
        let start = token
        let role = try name(of: .role)
        grantedRoles.append((role, start))
        grants.append(Grant(role: role, permissions: permissions))
    }

    private static func unknownRole(_ name: String) -> String {
        "there is no role '\(name.prefix(60))'; add CREATE ROLE for it, or grant to \"_world\", \"_icloud\" or "
            + "\"_creator\""
    }
}

extension SchemaParser {
    mutating func advance() throws(SchemaError) { token = try lexer.next() }

    /// Whether the token is this keyword, in any case and not in quotation marks.
    func isKeyword(_ keyword: String) -> Bool {
        guard case .word(let word) = token.kind else { return false }
        return word.uppercased() == keyword
    }

    mutating func expect(keyword: String, after place: String) throws(SchemaError) {
        guard isKeyword(keyword) else { throw token.error("expected \(keyword) after \(place), found \(token.shown)") }
        try advance()
    }

    mutating func expect(symbol: Character, after place: String) throws(SchemaError) {
        guard token.kind == .symbol(symbol) else {
            throw token.error("expected '\(symbol)' after \(place), found \(token.shown)")
        }
        try advance()
    }

    /// A bare or quoted name, not yet judged beyond what quoting decides.
    mutating func name(of kind: SchemaRules.NameKind) throws(SchemaError) -> String {
        let start = token
        switch token.kind {
        case .quoted(let name):
            try advance()
            return name
        case .word(let name):
            if SchemaRules.reservedWords.contains(name.lowercased()) {
                throw start.error(
                    "'\(name)' is a reserved word; as the name of a \(kind.rawValue) write it \"\(name)\"")
            }
            if name.hasPrefix("_") {
                throw start.error("names of the system stand in quotation marks; write \"\(name.prefix(60))\"")
            }
            try advance()
            return name
        case .symbol, .end:
            throw start.error("expected the name of a \(kind.rawValue), found \(token.shown)")
        }
    }

    /// A field of a record type: name, type, index options.
    mutating func field(inType typeName: String) throws(SchemaError) -> FieldDefinition {
        let start = token
        let name = try name(of: .field)
        if SystemField(rawValue: name) == nil, let problem = SchemaRules.problem(name: name, of: .field) {
            throw start.error(problem)
        }
        let typeStart = token
        let type = try fieldType(of: name)
        if let system = SystemField(rawValue: name), type != system.type {
            throw typeStart.error(
                "the system field \"\(name)\" has the type \(system.type.schemaText); it cannot be \(type.schemaText)")
        }
        if let problem = SchemaRules.problem(type: type) { throw typeStart.error(problem) }
        let indexStart = token
        let indexes = try indexOptions(of: name)
        if let problem = SchemaRules.problem(indexes: indexes, on: type) {
            throw indexStart.error("field '\(name)': \(problem)")
        }
        return FieldDefinition(name: name, type: type, indexes: indexes)
    }

    private mutating func fieldType(of field: String) throws(SchemaError) -> FieldType {
        guard isKeyword("LIST") else { return try primitive(of: field) }
        try advance()
        try expect(symbol: "<", after: "LIST")
        if isKeyword("LIST") {
            throw token.error("a list of lists is not possible; use BYTES or a record type of its own")
        }
        var type = try primitive(of: field)
        try expect(symbol: ">", after: "the type of a list's members")
        type.isList = true
        return type
    }

    private mutating func primitive(of field: String) throws(SchemaError) -> FieldType {
        var isEncrypted = false
        if isKeyword("ENCRYPTED") {
            isEncrypted = true
            try advance()
        }
        guard let scalar = ScalarType.allCases.first(where: { isKeyword($0.rawValue) }) else {
            let types = ScalarType.allCases.map(\.rawValue).joined(separator: ", ")
            throw token.error(
                "expected the type of field '\(field)', found \(token.shown); types are \(types) and LIST<...>")
        }
        try advance()
        var type = FieldType(scalar, isEncrypted: isEncrypted)
        if isKeyword("PREFERRED") {
            if scalar != .number { throw token.error("only NUMBER has a preferred kind; remove PREFERRED AS") }
            try advance()
            try expect(keyword: "AS", after: "PREFERRED")
            guard let preferred = [ScalarType.int64, .double].first(where: { isKeyword($0.rawValue) }) else {
                throw token.error("a NUMBER is preferred as INT64 or DOUBLE, found \(token.shown)")
            }
            try advance()
            type.preferred = preferred
        }
        return type
    }

    private mutating func indexOptions(of field: String) throws(SchemaError) -> IndexOptions {
        var options: IndexOptions = []
        while let named = IndexOptions.named.first(where: { isKeyword($0.word) }) {
            if options.contains(named.option) {
                throw token.error("field '\(field)' has \(named.word) twice; remove one of the two")
            }
            options.insert(named.option)
            try advance()
        }
        if case .word = token.kind {
            throw token.error(
                "expected QUERYABLE, SEARCHABLE, SORTABLE, ',' or ')' after field '\(field)', found \(token.shown)")
        }
        return options
    }
}
