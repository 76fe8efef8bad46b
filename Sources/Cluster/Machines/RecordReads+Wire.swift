import Authorization
import RecordModel
package import RecordStore
package import Wire

extension RecordQuery: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        writer.field(4) { query.encode(to: &$0) }
        writer.field(5, UInt64(limit))
        if let cursor { writer.field(6, cursor) }
        if explains { writer.field(7, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller: Caller?
        var query: Query?
        var version: UInt64 = 0
        var limit = Limits.recordsPerPageMax
        var cursor: [UInt8]?
        var explains = false
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: query = try reader.message()
            case 5: limit = Int(truncatingIfNeeded: try reader.unsigned())
            case 6: cursor = try reader.array()
            case 7: explains = try reader.bool()
            default: try reader.skip()
            }
        }
        guard let zone, let caller, let query else { throw .missingField(1) }
        self.init(
            zone: zone, schemaVersion: version, caller: caller, query: query, limit: limit, cursor: cursor)
        self.explains = explains
    }
}

extension DatabaseQuery: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { database.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        writer.field(4) { query.encode(to: &$0) }
        writer.field(5, UInt64(limit))
        if let cursor { writer.field(6, cursor) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var database: DatabaseKey?
        var caller: Caller?
        var query: Query?
        var version: UInt64 = 0
        var limit = Limits.recordsPerPageMax
        var cursor: [UInt8]?
        while let field = try reader.nextField() {
            switch field {
            case 1: database = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: query = try reader.message()
            case 5: limit = Int(truncatingIfNeeded: try reader.unsigned())
            case 6: cursor = try reader.array()
            default: try reader.skip()
            }
        }
        guard let database, let caller, let query else { throw .missingField(1) }
        self.init(
            database: database, schemaVersion: version, caller: caller, query: query, limit: limit, cursor: cursor)
    }
}

extension ZoneChangesRequest: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        if let token { writer.field(4, token) }
        writer.field(5, UInt64(limit))
        if isReverse { writer.field(6, true) }
        guard let recordTypes else { return }
        writer.field(7, true)
        for type in recordTypes { writer.field(8, type) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller: Caller?
        var version: UInt64 = 0
        var limit = Limits.recordsPerPageMax
        var token: [UInt8]?
        var isReverse = false
        var recordTypes: [String]?
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: token = try reader.array()
            case 5: limit = Int(truncatingIfNeeded: try reader.unsigned())
            case 6: isReverse = try reader.bool()
            case 7: recordTypes = try reader.bool() ? [] : nil
            case 8: recordTypes?.append(try reader.string())
            default: try reader.skip()
            }
        }
        guard let zone, let caller else { throw .missingField(1) }
        self.init(
            zone: zone, schemaVersion: version, caller: caller, token: token, limit: limit, isReverse: isReverse,
            recordTypes: recordTypes)
    }
}

extension DatabaseChangesRequest: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { database.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        writer.field(4, incarnation)
        writer.field(5, after)
        writer.field(6, UInt64(limit))
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var database: DatabaseKey?
        var caller: Caller?
        var version: UInt64 = 0
        var incarnation: UInt64 = 0
        var after: UInt64 = 0
        var limit = Limits.recordsPerPageMax
        while let field = try reader.nextField() {
            switch field {
            case 1: database = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: incarnation = try reader.unsigned()
            case 5: after = try reader.unsigned()
            case 6: limit = Int(truncatingIfNeeded: try reader.unsigned())
            default: try reader.skip()
            }
        }
        guard let database, let caller else { throw .missingField(1) }
        self.init(
            database: database, schemaVersion: version, caller: caller, incarnation: incarnation, after: after,
            limit: limit)
    }
}

extension DatabaseChangesPage: WireCodable {
    package func encode(to writer: inout WireWriter) {
        for zone in zones {
            writer.field(1) { nested in
                nested.field(1) { zone.state.encode(to: &$0) }
                if zone.isDeleted { nested.field(2, true) }
            }
        }
        writer.field(2, incarnation)
        writer.field(3, position)
        if hasMore { writer.field(4, true) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(zones: [], incarnation: 0, position: 0, hasMore: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: zones.append(try Self.zone(from: try reader.nested()))
            case 2: incarnation = try reader.unsigned()
            case 3: position = try reader.unsigned()
            case 4: hasMore = try reader.bool()
            default: try reader.skip()
            }
        }
    }

    private static func zone(from reader: WireReader) throws(WireError) -> ChangedZone {
        var reader = reader
        var state: ZoneState?
        var isDeleted = false
        while let field = try reader.nextField() {
            switch field {
            case 1: state = try reader.message()
            case 2: isDeleted = try reader.bool()
            default: try reader.skip()
            }
        }
        guard let state else { throw .missingField(1) }
        return ChangedZone(state: state, isDeleted: isDeleted)
    }
}

extension IndexState: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, type)
        writer.field(2, field)
        writer.field(3, purpose)
        if isReady { writer.field(4, true) }
        writer.field(5, done)
        writer.field(6, total)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(type: "", field: "", purpose: "", isReady: false, done: 0, total: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: type = try reader.string()
            case 2: self.field = try reader.string()
            case 3: purpose = try reader.string()
            case 4: isReady = try reader.bool()
            case 5: done = try reader.unsigned()
            case 6: total = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}
