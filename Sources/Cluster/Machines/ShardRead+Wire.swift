import Authorization
import Directory
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
        case .zones(let database, let version):
            writer.field(8, version)
            writer.field(4) { database.encode(to: &$0) }
        case .zone(let zone, let version):
            writer.field(8, version)
            writer.field(5) { zone.encode(to: &$0) }
        case .keyValue(let store, let read, let numbersAsStrings):
            Self.write(store, read, numbersAsStrings: numbersAsStrings, to: &writer)
        case .databaseQuery(let query, let rendering):
            writer.field(9) { query.encode(to: &$0) }
            writer.field(3) { rendering.encode(to: &$0) }
        case .zoneChanges(let request, let rendering):
            writer.field(10) { request.encode(to: &$0) }
            writer.field(3) { rendering.encode(to: &$0) }
        case .versions(let request, let rendering): writer.parts(39, request, rendering)
        case .databaseChanges(let request): writer.field(11) { request.encode(to: &$0) }
        case .indexes(let key, let version):
            writer.field(8, version)
            writer.field(12, key.container)
            writer.field(13, key.environment.rawValue)
        case .usage(let request): writer.field(14) { request.encode(to: &$0) }
        case .ledger(let database): writer.field(17) { database.encode(to: &$0) }
        case .earlierOutcome(let command): writer.field(30) { command.encode(to: &$0) }
        case .subscriptions(let read): read.write(31, to: &writer)
        case .notifications(let read): read.write(32, to: &writer)
        case .isDelivered(let marks): ShardList(marks).write(33, to: &writer)
        case .level: writer.field(34, true)
        case .countsAsset(let sha256): writer.field(35, sha256)
        case .logReader(let subscriber, let name): writer.parts(36, subscriber, name)
        case .subscribers(let read): read.write(37, to: &writer)
        case .hasSentCopies: writer.field(38, true)
        }
    }

    private static func write(
        _ store: StoreKey, _ read: KeyValueRead, numbersAsStrings: Bool, to writer: inout WireWriter
    ) {
        if numbersAsStrings { writer.field(40, true) }
        writer.field(6) { store.encode(to: &$0) }
        writer.field(7) { read.encode(to: &$0) }
    }

    /// What was read so far of a request: its parts come in the order in which they are written.
    private struct Parts {
        var version: UInt64 = 0
        var query: RecordQuery?
        var databaseQuery: DatabaseQuery?
        var zoneChanges: ZoneChangesRequest?
        var store: StoreKey?
        var numbersAsStrings = false
        var container: String?

        /// The container, and the environment that the field names.
        func key(_ environment: String, field: Int) throws(WireError) -> SchemaKey {
            guard let container else { throw .missingField(12) }
            guard let environment = Environment(rawValue: environment) else { throw .invalidValue(field: field) }
            return SchemaKey(container: container, environment: environment)
        }

        func rendered(_ rendering: Rendering) throws(WireError) -> ShardRead {
            if let query { return .query(query, rendering) }
            if let databaseQuery { return .databaseQuery(databaseQuery, rendering) }
            if let zoneChanges { return .zoneChanges(zoneChanges, rendering) }
            throw .missingField(2)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var read: ShardRead?
        var parts = Parts()
        while let field = try reader.nextField() {
            switch field {
            case 1: read = .lookup(try reader.message())
            case 2: parts.query = try reader.message()
            case 3: read = try parts.rendered(try reader.message())
            case 4: read = .zones(try reader.message(), schemaVersion: parts.version)
            case 5: read = .zone(try reader.message(), schemaVersion: parts.version)
            case 6: parts.store = try reader.message()
            case 7:
                guard let store = parts.store else { throw .missingField(6) }
                read = .keyValue(store, try reader.message(), numbersAsStrings: parts.numbersAsStrings)
            case 8: parts.version = try reader.unsigned()
            case 9: parts.databaseQuery = try reader.message()
            case 10: parts.zoneChanges = try reader.message()
            case 11: read = .databaseChanges(try reader.message())
            case 12: parts.container = try reader.string()
            case 13:
                read = .indexes(try parts.key(try reader.string(), field: 13), schemaVersion: parts.version)
            case 14: read = .usage(try reader.message())
            case 17: read = .ledger(try reader.message())
            case 30: read = .earlierOutcome(try reader.message())
            case 31: read = .subscriptions(try reader.message())
            case 32: read = .notifications(try reader.message())
            case 33: read = .isDelivered(try reader.message(ShardList<OutboxMark>.self).elements)
            case 34: read = try reader.bool() ? .level : nil
            case 35: read = .countsAsset(try reader.array())
            case 36: read = try reader.parts { .logReader($0, name: $1) }
            case 37: read = .subscribers(try reader.message())
            case 38: read = try reader.bool() ? .hasSentCopies : nil
            case 39: read = try reader.parts { .versions($0, $1) }
            case 40: parts.numbersAsStrings = try reader.bool()
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
        switch assets {
        case .sizes: break
        case .checksums: writer.field(8, true)
        case .links(let origin, let expires):
            writer.field(4, signed: expires)
            writer.field(5, origin)
        case .receipts(let zone, let user, let expires):
            writer.field(4, signed: expires)
            writer.field(6, user)
            writer.field(7) { zone.encode(to: &$0) }
        case .linksAndReceipts(let origin, let user, let expires):
            writer.field(4, signed: expires)
            writer.field(6, user)
            writer.field(10, origin)
        }
        if leavesSealed { writer.field(9, true) }
        guard let desiredKeys else { return }
        writer.field(2, true)
        for key in desiredKeys { writer.field(3, key) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(desiredKeys: nil, numbersAsStrings: false)
        var expires: Int64 = 0
        var user = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: numbersAsStrings = try reader.bool()
            case 2: desiredKeys = try reader.bool() ? [] : nil
            case 3: desiredKeys?.append(try reader.string())
            case 4: expires = try reader.signed()
            case 5: assets = .links(origin: try reader.string(), expires: expires)
            case 6: user = try reader.string()
            case 8: assets = try reader.bool() ? .checksums : .sizes
            case 9: leavesSealed = try reader.bool()
            case 10: assets = .linksAndReceipts(origin: try reader.string(), user: user, expires: expires)
            case 7: assets = .receipts(zone: try reader.message(), user: user, expires: expires)
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
        case .usage: writer.field(6, true)
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
            case 6: read = try reader.bool() ? .usage : nil
            default: try reader.skip()
            }
        }
        if case .get? = read { read = .get(keys: keys) }
        guard let read else { throw .missingField(1) }
        self = read
    }
}
