import Authorization
import RecordModel
package import Wire

extension ModifyRecords: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        writer.field(4, signed: time)
        if isAtomic { writer.field(5, true) }
        if let idempotency { writer.field(6) { idempotency.encode(to: &$0) } }
        if let quota { writer.field(8) { quota.encode(to: &$0) } }
        for operation in operations { writer.field(7) { operation.encode(to: &$0) } }
        if let client { writer.field(9, client) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller: Caller?
        self.init(
            zone: ZoneKey(
                database: DatabaseKey(container: "", environment: .development, scope: .public, owner: ""), name: ""),
            schemaVersion: 0, caller: Caller(user: nil), time: 0, operations: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: schemaVersion = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: time = try reader.signed()
            case 5: isAtomic = try reader.bool()
            case 6: idempotency = try reader.message()
            case 7: operations.append(try reader.message())
            case 8: quota = try reader.message()
            case 9: client = try reader.string()
            default: try reader.skip()
            }
        }
        guard let zone else { throw .missingField(1) }
        guard let caller else { throw .missingField(3) }
        self.zone = zone
        self.caller = caller
    }
}

extension IdempotencyKey: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, key)
        writer.field(2, bodyHash)
        writer.field(3, caller)
        if position != 0 { writer.field(4, position) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(key: [], bodyHash: [], caller: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: key = try reader.array()
            case 2: bodyHash = try reader.array()
            case 3: caller = try reader.string()
            case 4: position = try reader.unsigned()
            default: try reader.skip()
            }
        }
        guard key.count == 16 else { throw .invalidValue(field: 1) }
        guard bodyHash.count == 32 else { throw .invalidValue(field: 2) }
    }
}

extension RecordChange: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, kind.rawValue)
        writer.field(2, recordName)
        if let recordType { writer.field(3, recordType) }
        if let changeTag { writer.field(4) { changeTag.encode(to: &$0) } }
        for field in fields { writer.field(5) { field.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var kind: Kind?
        self.init(.create, "")
        while let field = try reader.nextField() {
            switch field {
            case 1: kind = try reader.choice()
            case 2: recordName = try reader.string()
            case 3: recordType = try reader.string()
            case 4: changeTag = try reader.message()
            case 5: fields.append(try reader.message())
            default: try reader.skip()
            }
        }
        guard let kind else { throw .missingField(1) }
        self.kind = kind
    }
}

extension RecordChange.FieldChange: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, name)
        if let value { writer.field(2) { value.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(name: "", value: nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: value = try reader.message()
            default: try reader.skip()
            }
        }
    }
}
