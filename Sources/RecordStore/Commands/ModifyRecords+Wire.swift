import Authorization
import RecordModel
package import Wire

extension ModifyRecords: WireMessage {
    package static var blank: Self {
        ModifyRecords(zone: .blank, schemaVersion: 0, caller: Caller(user: nil), time: 0, operations: [])
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &time)
        try wire.field(5, &isAtomic, unless: false)
        try wire.field(6, &idempotency)
        try wire.field(8, &quota)
        try wire.field(7, &operations)
        try wire.field(9, &client)
    }
}

extension IdempotencyKey: WireMessage {
    package static var blank: Self { IdempotencyKey(key: [], bodyHash: [], caller: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &key)
        try wire.field(2, &bodyHash)
        try wire.field(3, &caller)
        try wire.field(4, &position, unless: 0)
    }

    package func check() throws(WireError) {
        guard key.count == 16 else { throw .invalidValue(field: 1) }
        guard bodyHash.count == 32 else { throw .invalidValue(field: 2) }
    }
}

extension RecordChange: WireMessage {
    package static var blank: Self { RecordChange(.create, "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &kind)
        try wire.field(2, &recordName)
        try wire.field(3, &recordType)
        try wire.field(4, &changeTag)
        try wire.field(5, &fields)
    }
}

extension RecordChange.FieldChange: WireMessage {
    package static var blank: Self { RecordChange.FieldChange(name: "", value: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &value)
    }
}

extension RecordChange.Kind: WireValue {}
