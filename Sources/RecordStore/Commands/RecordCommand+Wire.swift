import Authorization
import RecordModel
package import Wire

extension ModifyZone: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, signed: time)
        writer.field(3, kind.rawValue)
        writer.field(4) { caller.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller = Caller(user: nil)
        var time: Int64 = 0
        var kind: Kind?
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: time = try reader.signed()
            case 3: kind = Kind(rawValue: try reader.unsigned())
            case 4: caller = try reader.message()
            default: try reader.skip()
            }
        }
        guard let zone else { throw .missingField(1) }
        guard let kind else { throw .invalidValue(field: 3) }
        self.init(kind, zone: zone, caller: caller, time: time)
    }
}

extension InstallSchema: WireEncodable, WireDecodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, environment.rawValue)
        writer.field(3, version)
        writer.field(4) { schema.encode(to: &$0) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var container = ""
        var environment: Environment?
        var version: UInt64 = 0
        var schema = Schema()
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2: environment = Environment(rawValue: try reader.string())
            case 3: version = try reader.unsigned()
            case 4: schema = try reader.message()
            default: try reader.skip()
            }
        }
        guard let environment else { throw .invalidValue(field: 2) }
        self.init(container: container, environment: environment, version: version, schema: schema)
    }
}

extension RecordCommand: WireEncodable, WireDecodable {
    /// The field's number says which command it is.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .modifyRecords(let command): writer.field(1) { command.encode(to: &$0) }
        case .modifyZone(let command): writer.field(2) { command.encode(to: &$0) }
        case .installSchema(let command): writer.field(3) { command.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var command: RecordCommand?
        while let field = try reader.nextField() {
            switch field {
            case 1: command = .modifyRecords(try reader.message())
            case 2: command = .modifyZone(try reader.message())
            case 3: command = .installSchema(try reader.message())
            default: try reader.skip()
            }
        }
        guard let command else { throw .missingField(1) }
        self = command
    }
}
