package import Wire

extension DatabaseKey: WireMessage {
    package static var blank: Self { DatabaseKey(container: "", environment: .development, scope: .public, owner: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &container)
        try wire.required(2, &environment.code)
        try wire.required(3, &scope.code)
        try wire.required(4, &owner)
    }
}

extension ZoneKey: WireMessage {
    package static var blank: Self { ZoneKey(database: .blank, name: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.required(2, &name)
    }
}

extension ZoneID: WireMessage {
    package static var blank: Self { ZoneID(name: "", owner: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.field(2, &owner)
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
