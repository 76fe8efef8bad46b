import Authorization
import RecordModel
package import RecordStore
package import Wire

extension RecordQuery: WireMessage {
    package static var blank: Self {
        RecordQuery(
            zone: .blank, schemaVersion: 0, caller: Caller(user: nil), query: .blank, limit: Limits.recordsPerPageMax,
            cursor: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.required(4, &query)
        try wire.field(5, &limit)
        try wire.field(6, &cursor)
        try wire.field(7, &explains, unless: false)
    }
}

extension DatabaseQuery: WireMessage {
    package static var blank: Self {
        DatabaseQuery(
            database: .blank, schemaVersion: 0, caller: Caller(user: nil), query: .blank,
            limit: Limits.recordsPerPageMax, cursor: nil)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.required(4, &query)
        try wire.field(5, &limit)
        try wire.field(6, &cursor)
    }
}

extension ZoneChangesRequest: WireMessage {
    package static var blank: Self {
        ZoneChangesRequest(zone: .blank, schemaVersion: 0, caller: Caller(user: nil), limit: Limits.recordsPerPageMax)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &token)
        try wire.field(5, &limit)
        try wire.field(6, &isReverse, unless: false)
        try wire.field(7, &recordTypes, members: 8)
    }
}

extension DatabaseChangesRequest: WireMessage {
    package static var blank: Self {
        DatabaseChangesRequest(
            database: .blank, schemaVersion: 0, caller: Caller(user: nil), incarnation: 0, after: 0,
            limit: Limits.recordsPerPageMax)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &database)
        try wire.field(2, &schemaVersion)
        try wire.required(3, &caller)
        try wire.field(4, &incarnation)
        try wire.field(5, &after)
        try wire.field(6, &limit)
    }
}

extension DatabaseChangesPage: WireMessage {
    package static var blank: Self { DatabaseChangesPage(zones: [], incarnation: 0, position: 0, hasMore: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &zones)
        try wire.field(2, &incarnation)
        try wire.field(3, &position)
        try wire.field(4, &hasMore, unless: false)
    }
}

extension ChangedZone: WireMessage {
    package static var blank: Self { ChangedZone(state: .blank, isDeleted: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &state)
        try wire.field(2, &isDeleted, unless: false)
    }
}

extension IndexState: WireMessage {
    package static var blank: Self { IndexState(type: "", field: "", purpose: "", isReady: false, done: 0, total: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &type)
        try wire.field(2, &field)
        try wire.field(3, &purpose)
        try wire.field(4, &isReady, unless: false)
        try wire.field(5, &done)
        try wire.field(6, &total)
    }
}
