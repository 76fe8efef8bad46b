extension SchemaParser {
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
