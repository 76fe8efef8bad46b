package import Authorization
package import KeyValueStore
package import RecordModel
package import RecordStore
package import Wire

/// What a shard is asked to read. The answer's bytes are described with each case.
package enum ShardRead: Sendable {
    /// The elements of a `records` array, one for each name.
    case lookup(RecordLookup)
    /// The elements of a `records` array, and a cursor.
    case query(RecordQuery, Rendering)
    /// `[ZoneState]`, of the database's zones on this shard.
    case zones(DatabaseKey)
    /// `[ZoneState]` of one or none.
    case zone(ZoneKey)
    /// A JSON object.
    case keyValue(StoreKey, KeyValueRead)

    /// How records are rendered.
    package struct Rendering: Hashable, Sendable {
        package var desiredKeys: [String]?
        package var numbersAsStrings: Bool

        package init(desiredKeys: [String]?, numbersAsStrings: Bool) {
            self.desiredKeys = desiredKeys
            self.numbersAsStrings = numbersAsStrings
        }
    }

    /// Records of one zone by name, rendered one by one.
    package struct RecordLookup: Sendable {
        package var zone: ZoneKey
        package var schemaVersion: UInt64
        package var caller: Caller
        package var items: [(name: String, rendering: Rendering)]

        package init(
            zone: ZoneKey, schemaVersion: UInt64, caller: Caller, items: [(name: String, rendering: Rendering)]
        ) {
            self.zone = zone
            self.schemaVersion = schemaVersion
            self.caller = caller
            self.items = items
        }
    }

    /// A read of a store of the key-value sidecar.
    package enum KeyValueRead: Hashable, Sendable {
        case get(keys: [String])
        case list(after: String?)
        case changes(since: String?, limit: Int)
    }
}

/// The zones that a shard answered with.
package struct ZoneStates: Hashable, Sendable, WireCodable {
    package var states: [ZoneState]

    package init(states: [ZoneState]) { self.states = states }

    package func encode(to writer: inout WireWriter) {
        for state in states { writer.field(1) { state.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        states = []
        while let field = try reader.nextField() {
            if field == 1 { states.append(try reader.message()) } else { try reader.skip() }
        }
    }
}
