import Authorization
import RecordModel
package import Wire

extension ModifyZone: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, signed: time)
        writer.field(3, kind.rawValue)
        writer.field(4) { caller.encode(to: &$0) }
        writer.field(5, schemaVersion)
        if let idempotency { writer.field(6) { idempotency.encode(to: &$0) } }
        if let client { writer.field(7, client) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller = Caller(user: nil)
        var time: Int64 = 0
        var kind: Kind?
        var schemaVersion: UInt64 = 0
        var idempotency: IdempotencyKey?
        var client: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: time = try reader.signed()
            case 3: kind = try reader.choice()
            case 4: caller = try reader.message()
            case 5: schemaVersion = try reader.unsigned()
            case 6: idempotency = try reader.message()
            case 7: client = try reader.string()
            default: try reader.skip()
            }
        }
        guard let zone else { throw .missingField(1) }
        guard let kind else { throw .missingField(3) }
        self.init(
            kind, zone: zone, caller: caller, time: time, schemaVersion: schemaVersion, idempotency: idempotency)
        self.client = client
    }
}

extension InstallSchema: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, environment.rawValue)
        writer.field(3, version)
        writer.field(4) { schema.encode(to: &$0) }
        writer.field(5, generation)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var container = ""
        var environment: Environment?
        var version: UInt64 = 0
        var generation: UInt64 = 0
        var schema = Schema()
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2: environment = try reader.choice()
            case 3: version = try reader.unsigned()
            case 4: schema = try reader.message()
            case 5: generation = try reader.unsigned()
            default: try reader.skip()
            }
        }
        guard let environment else { throw .missingField(2) }
        self.init(
            container: container, environment: environment, version: version, generation: generation, schema: schema)
    }
}

extension Maintain: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, signed: time)
        writer.field(2, rowsMax)
        writer.field(3, signed: retention.tombstoneAgeMax)
        writer.field(4, retention.tombstonesMax)
        if retention.assetGrace != AssetReference.graceMilliseconds { writer.field(5, signed: retention.assetGrace) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(time: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: time = try reader.signed()
            case 2: rowsMax = try reader.unsigned()
            case 3: retention.tombstoneAgeMax = try reader.signed()
            case 4: retention.tombstonesMax = try reader.unsigned()
            case 5: retention.assetGrace = try reader.signed()
            default: try reader.skip()
            }
        }
    }
}

extension RecordCommand: WireEncodable, WireDecodable {
    /// The field's number says which command it is.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .modifyRecords(let command): writer.field(1) { command.encode(to: &$0) }
        case .modifyZone(let command): writer.field(2) { command.encode(to: &$0) }
        case .installSchema(let command): writer.field(3) { command.encode(to: &$0) }
        case .maintain(let command): writer.field(4) { command.encode(to: &$0) }
        case .quota(let command): writer.field(5) { command.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: RecordCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .modifyRecords(try reader.message())
            case 2: command = .modifyZone(try reader.message())
            case 3: command = .installSchema(try reader.message())
            case 4: command = .maintain(try reader.message())
            case 5: command = .quota(try reader.message())
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}
