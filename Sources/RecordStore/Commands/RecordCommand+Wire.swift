import Authorization
import RecordModel
package import Wire

extension ModifyZone: WireMessage {
    package static var blank: Self {
        ModifyZone(.create, zone: .blank, caller: Caller(user: nil), time: 0, schemaVersion: 0, idempotency: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &time)
        try wire.required(3, &kind)
        try wire.field(4, &caller)
        try wire.field(5, &schemaVersion)
        try wire.field(6, &idempotency)
        try wire.field(7, &client)
    }
}

extension InstallSchema: WireMessage {
    package static var blank: Self {
        InstallSchema(container: "", environment: .development, version: 0, generation: 0, schema: Schema())
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.required(2, &environment)
        try wire.field(3, &version)
        try wire.field(4, &schema)
        try wire.field(5, &generation)
    }
}

extension Maintain: WireMessage {
    package static var blank: Self { Maintain(time: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &time)
        try wire.field(2, &rowsMax)
        try wire.field(3, &retention.tombstoneAgeMax)
        try wire.field(4, &retention.tombstonesMax)
        try wire.field(5, &retention.assetGrace, unless: AssetReference.graceMilliseconds)
    }
}

extension RecordCommand: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .modifyRecords(let command): command.write(1, to: &writer)
        case .modifyZone(let command): command.write(2, to: &writer)
        case .installSchema(let command): command.write(3, to: &writer)
        case .maintain(let command): command.write(4, to: &writer)
        case .quota(let command): command.write(5, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .modifyRecords(try reader.message())
        case 2: self = .modifyZone(try reader.message())
        case 3: self = .installSchema(try reader.message())
        case 4: self = .maintain(try reader.message())
        case 5: self = .quota(try reader.message())
        default: return nil
        }
    }
}

extension ModifyZone.Kind: WireValue {}
