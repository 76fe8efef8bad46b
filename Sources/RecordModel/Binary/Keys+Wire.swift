package import Wire

extension DatabaseKey: WireCodable {
    /// 1 container, 2 environment, 3 scope, 4 owner.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, environment.wireCode)
        writer.field(3, scope.wireCode)
        writer.field(4, owner)
    }

    /// - Throws: `WireError` if a part is missing or unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var container: String?
        var environment: Environment?
        var scope: Scope?
        var owner: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2: environment = try reader.code(field)
            case 3: scope = try reader.code(field)
            case 4: owner = try reader.string()
            default: try reader.skip()
            }
        }
        self.init(
            container: try required(container, 1), environment: try required(environment, 2),
            scope: try required(scope, 3), owner: try required(owner, 4))
    }
}

extension ZoneKey: WireCodable {
    /// 1 database, 2 name.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { database.encode(to: &$0) }
        writer.field(2, name)
    }

    /// - Throws: `WireError` if a part is missing or unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var database: DatabaseKey?
        var name: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: database = try reader.message()
            case 2: name = try reader.string()
            default: try reader.skip()
            }
        }
        self.init(database: try required(database, 1), name: try required(name, 2))
    }
}

extension ZoneID: WireCodable {
    /// 1 name, 2 owner (left out for the caller).
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        if let owner { writer.field(2, owner) }
    }

    /// - Throws: `WireError` if the name is missing; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var owner: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: owner = try reader.string()
            default: try reader.skip()
            }
        }
        self.init(name: try required(name, 1), owner: owner)
    }
}

extension WireReader {
    /// The current field as a case of an enumeration.
    mutating func code<Code: WireCoded>(_ field: Int) throws(WireError) -> Code {
        guard let code = Code(wireCode: try unsigned()) else { throw .unknownValue(field: field) }
        return code
    }
}

/// The value of a field that a message cannot do without.
func required<Value>(_ value: Value?, _ field: Int) throws(WireError) -> Value {
    guard let value else { throw .missingField(field) }
    return value
}
