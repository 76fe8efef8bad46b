import Authorization
import KeyValueStore
import RecordModel
import RecordStore
package import Wire

extension ShardRead: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .lookup(let lookup): writer.field(1) { lookup.encode(to: &$0) }
        case .query(let query, let rendering):
            writer.field(2) { query.encode(to: &$0) }
            writer.field(3) { rendering.encode(to: &$0) }
        case .zones(let database): writer.field(4) { database.encode(to: &$0) }
        case .zone(let zone): writer.field(5) { zone.encode(to: &$0) }
        case .keyValue(let store, let read):
            writer.field(6) { store.encode(to: &$0) }
            writer.field(7) { read.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var read: ShardRead?
        var query: RecordQuery?
        var store: StoreKey?
        while let field = try reader.nextField() {
            switch field {
            case 1: read = .lookup(try reader.message())
            case 2: query = try reader.message()
            case 3:
                guard let query else { throw .missingField(2) }
                read = .query(query, try reader.message())
            case 4: read = .zones(try reader.message())
            case 5: read = .zone(try reader.message())
            case 6: store = try reader.message()
            case 7:
                guard let store else { throw .missingField(6) }
                read = .keyValue(store, try reader.message())
            default: try reader.skip()
            }
        }
        guard let read else { throw .missingField(1) }
        self = read
    }
}

extension ShardRead.Rendering: WireCodable {
    package func encode(to writer: inout WireWriter) {
        if numbersAsStrings { writer.field(1, true) }
        guard let desiredKeys else { return }
        writer.field(2, true)
        for key in desiredKeys { writer.field(3, key) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(desiredKeys: nil, numbersAsStrings: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: numbersAsStrings = try reader.bool()
            case 2: desiredKeys = try reader.bool() ? [] : nil
            case 3: desiredKeys?.append(try reader.string())
            default: try reader.skip()
            }
        }
    }
}

extension ShardRead.RecordLookup: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        for item in items {
            writer.field(4, item.name)
            writer.field(5) { item.rendering.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller: Caller?
        var version: UInt64 = 0
        var items: [(name: String, rendering: ShardRead.Rendering)] = []
        var name: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: name = try reader.string()
            case 5:
                guard let known = name else { throw .missingField(4) }
                items.append((known, try reader.message()))
                name = nil
            default: try reader.skip()
            }
        }
        guard let zone, let caller else { throw .missingField(1) }
        self.init(zone: zone, schemaVersion: version, caller: caller, items: items)
    }
}

extension ShardRead.KeyValueRead: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .get(let keys):
            writer.field(1, true)
            for key in keys { writer.field(2, key) }
        case .list(let after): writer.field(3, after ?? "")
        case .changes(let since, let limit):
            if let since { writer.field(4, since) }
            writer.field(5, UInt64(limit))
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var read: ShardRead.KeyValueRead?
        var keys: [String] = []
        var since: String?
        while let field = try reader.nextField() {
            switch field {
            case 1: read = try reader.bool() ? .get(keys: []) : nil
            case 2: keys.append(try reader.string())
            case 3:
                let after = try reader.string()
                read = .list(after: after.isEmpty ? nil : after)
            case 4: since = try reader.string()
            case 5: read = .changes(since: since, limit: Int(truncatingIfNeeded: try reader.unsigned()))
            default: try reader.skip()
            }
        }
        if case .get? = read { read = .get(keys: keys) }
        guard let read else { throw .missingField(1) }
        self = read
    }
}

extension RecordQuery: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { zone.encode(to: &$0) }
        writer.field(2, schemaVersion)
        writer.field(3) { caller.encode(to: &$0) }
        writer.field(4) { query.encode(to: &$0) }
        writer.field(5, UInt64(limit))
        if let cursor { writer.field(6, cursor) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var zone: ZoneKey?
        var caller: Caller?
        var query: Query?
        var version: UInt64 = 0
        var limit = Limits.recordsPerPageMax
        var cursor: [UInt8]?
        while let field = try reader.nextField() {
            switch field {
            case 1: zone = try reader.message()
            case 2: version = try reader.unsigned()
            case 3: caller = try reader.message()
            case 4: query = try reader.message()
            case 5: limit = Int(truncatingIfNeeded: try reader.unsigned())
            case 6: cursor = try reader.array()
            default: try reader.skip()
            }
        }
        guard let zone, let caller, let query else { throw .missingField(1) }
        self.init(
            zone: zone, schemaVersion: version, caller: caller, query: query, limit: limit, cursor: cursor)
    }
}
