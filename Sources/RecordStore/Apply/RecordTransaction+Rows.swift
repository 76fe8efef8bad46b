import Authorization
import GRDB
import RecordModel
import Wire

extension RecordTransaction {
    func openDatabase(_ key: DatabaseKey) throws -> OpenDatabase {
        if let known = databases[key] { return known }
        let schema = try rows.schema(key)
        let row = try schema.flatMap { try rows.database(key, schemaID: $0.id) }
        let database = OpenDatabase(schema: schema, row: row)
        databases[key] = database
        return database
    }

    /// The live zone; nil if there is none.
    func openZone(_ key: ZoneKey) throws -> OpenZone? {
        if let known = zones[key] { return known }
        let database = try openDatabase(key.database)
        guard let databaseID = database.row?.id,
            let row = try rows.latestZone(databaseID: databaseID, name: key.name), row.state == ZoneLife.live
        else { return nil }
        let zone = OpenZone(key: key, database: database, row: row)
        zones[key] = zone
        return zone
    }

    /// The live zone of a row; nil if it is gone or retired.
    func openZone(id: Int64) throws -> OpenZone? {
        guard let key = try zoneKey(id: id), let zone = try openZone(key), zone.row.id == id else { return nil }
        return zone
    }

    private func zoneKey(id: Int64) throws -> ZoneKey? {
        let found = try db.first(
            """
            SELECT s.container, s.environment, d.scope, d.owner, z.name
            FROM zone z JOIN database d ON d.id = z.database JOIN schema s ON s.id = d.schema WHERE z.id = ?
            """, id
        ) { row -> ZoneKey? in
            guard let environment = Environment(column: row.integer(1)), let scope = Scope(column: row.integer(2))
            else {
                return nil
            }
            return ZoneKey(
                database: DatabaseKey(
                    container: row.text(0), environment: environment, scope: scope, owner: row.text(3)),
                name: row.text(4))
        }
        return found ?? nil
    }

    /// The database of a row; nil if it is gone.
    private func openDatabase(id: Int64) throws -> OpenDatabase? {
        let found = try db.first(
            """
            SELECT s.container, s.environment, d.scope, d.owner FROM database d JOIN schema s ON s.id = d.schema
            WHERE d.id = ?
            """, id
        ) { row -> DatabaseKey? in
            guard let environment = Environment(column: row.integer(1)), let scope = Scope(column: row.integer(2))
            else {
                return nil
            }
            return DatabaseKey(container: row.text(0), environment: environment, scope: scope, owner: row.text(3))
        }
        return try found?.map { try openDatabase($0) }
    }

    /// Counts what rows of zones grew by, by zone.
    func count(_ growth: [Int64: Int64]) throws {
        for (zoneID, bytes) in growth.sorted(by: { $0.key < $1.key }) { try count(bytes, zoneID: zoneID) }
    }

    /// Counts what rows of a zone grew by, which may have been deleted. Rows of what is no zone any more count nowhere.
    func count(_ bytes: Int64, zoneID: Int64) throws {
        if bytes == 0 { return }
        if let zone = try openZone(id: zoneID) { return zone.count(QuotaAmounts(bytes: bytes)) }
        let databaseID = try db.first("SELECT database FROM zone WHERE id = ? AND state = 1", zoneID) { $0.integer(0) }
        guard let databaseID else { return }
        try db.run("UPDATE zone SET bytes = bytes + ? WHERE id = ?", bytes, zoneID)
        try db.checkOneRow("\(bytes) bytes of the deleted zone \(zoneID)")
        try count(bytes, databaseID: databaseID)
    }

    /// Counts what rows of a database grew by that are in no live zone.
    func count(_ bytes: Int64, databaseID: Int64) throws {
        if bytes == 0 { return }
        guard let database = try openDatabase(id: databaseID) else { return }
        try Invariant.check(database.row?.id == databaseID, "database \(databaseID) is not found by its key")
        database.row?.used.bytes += bytes
        database.isChanged = true
    }

    func makeSchemaRow(container: String, environment: Environment) throws -> SchemaRow {
        if let found = try rows.schema(container: container, environment: environment) { return found }
        try db.run(
            "INSERT INTO schema VALUES (NULL, ?, ?, 0, 0, 0, ?)", container, environment.column, Schema().encoded())
        return SchemaRow(id: db.lastInsertedRowID, version: 0, generation: 0, revision: 0)
    }

    func makeDatabase(_ key: DatabaseKey) throws -> DatabaseRow {
        let database = try openDatabase(key)
        if let row = database.row { return row }
        let schema = try makeSchemaRow(container: key.container, environment: key.environment)
        let incarnation = try incarnationFloor(schemaID: schema.id)
        try db.run(
            "INSERT INTO database VALUES (NULL, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)", schema.id, key.scope.column,
            key.owner, incarnation)
        let row = DatabaseRow(id: db.lastInsertedRowID, incarnation: incarnation, sequence: 0, zones: 0)
        // A container that was purged below the level left its own.
        if level >= .endedAllotments { try AssetTables.forget(database: row.id, in: db) }
        database.schema = schema
        database.row = row
        return row
    }

    /// Makes a zone that does not live, with an incarnation above every earlier one of its name.
    func makeZone(_ key: ZoneKey) throws -> OpenZone {
        let database = try makeDatabase(key.database)
        let databaseID = database.id
        let earlier = try rows.latestZone(databaseID: databaseID, name: key.name)
        let floor = try openDatabase(key.database).schema.map { try incarnationFloor(schemaID: $0.id) }
        // The database's is above those of zones that were forgotten.
        let least = max(floor ?? incarnationFloor, level < .countedRows ? 0 : database.incarnation)
        let incarnation = max(least, (earlier?.incarnation ?? 0) + 1)
        try Invariant.check(
            earlier?.state != ZoneLife.live, "zone '\(key.name)' would be made again while \(earlier?.id ?? 0) lives")
        try db.run(
            "INSERT INTO zone VALUES (NULL, ?, ?, ?, 0, ?, ?, 0, 0, 0, 0, 0)", databaseID, key.name, incarnation, stamp,
            ZoneLife.live)
        try Invariant.check(
            incarnation > earlier?.incarnation ?? 0,
            "zone '\(key.name)' would be made with incarnation \(incarnation), as \(earlier?.id ?? 0) had")
        let row = ZoneRow(id: db.lastInsertedRowID, incarnation: incarnation, sequence: 0, state: ZoneLife.live)
        if let earlier, earlier.state == ZoneLife.tombstone {
            try db.run("DELETE FROM zone WHERE id = ?", earlier.id)
            try db.checkOneRow("the tombstone \(earlier.id) of zone '\(key.name)'")
        }
        let zone = OpenZone(key: key, database: try openDatabase(key.database), row: row)
        zone.hasEdges = false
        zones[key] = zone
        return zone
    }

    /// Gives a custom zone the next place in its database's feed, once a command.
    func touch(_ zone: OpenZone) throws(InvariantViolation) {
        try Invariant.check(zone.row.state == ZoneLife.live, "zone \(zone.row.id) is changed and does not live")
        try Invariant.check(zone.database.row != nil, "zone \(zone.row.id) is changed and has no database")
        try Invariant.check(
            zone.lastCommand <= commandNumber, "zone \(zone.row.id) changed by command \(zone.lastCommand) already")
        zone.isChanged = true
        guard zone.lastCommand != commandNumber, !zone.key.isDefault else { return }
        zone.lastCommand = commandNumber
        let sequence = (zone.database.row?.sequence ?? 0) + 1
        zone.database.row?.sequence = sequence
        zone.database.isChanged = true
        zone.row.changedAt = sequence
    }

    /// Lets readers see that indexes or stray fields of a schema have changed.
    func revise(schemaID: Int64) throws {
        try db.run("UPDATE schema SET revision = revision + 1 WHERE id = ?", schemaID)
        try db.checkOneRow("a revision of schema \(schemaID)")
    }

    func schema(id: Int64) throws -> InstalledSchema {
        guard let row = try rows.schema(id: id) else { return .none }
        return try tables.installedSchema(row, in: db)
    }

    func indexedRecord(_ row: RecordRow, fields: Fields) throws -> IndexedRecord {
        IndexedRecord(
            name: row.name, sequence: row.sequence,
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)), fields: fields)
    }

    /// The next sequence of a zone.
    func nextSequence(_ zone: OpenZone) throws(InvariantViolation) -> Int64 {
        try touch(zone)
        zone.row.sequence += 1
        return zone.row.sequence
    }

    /// The number of a caller; nil if it never wrote here.
    func knownUserID(_ caller: Caller) throws -> Int64? {
        guard let name = caller.user else { return UserNameCache.anonymous }
        if let known = userIDs[name] { return known }
        guard let id = try rows.userID(name) else { return nil }
        userIDs[name] = id
        names.remember(name, id: id)
        return id
    }

    func makeUserID(_ caller: Caller) throws -> Int64 {
        if let known = try knownUserID(caller) { return known }
        guard let name = caller.user else { return UserNameCache.anonymous }
        try db.run("INSERT INTO user VALUES (NULL, ?)", name)
        let id = db.lastInsertedRowID
        userIDs[name] = id
        names.remember(name, id: id)
        return id
    }
}

/// What a savepoint brings back of the values that are kept beside the tables.
struct KeptState {
    /// A zone as it was.
    private struct KeptZone {
        let zone: OpenZone
        let row: ZoneRow
        let isChanged: Bool
        let lastCommand: Int

        init(_ zone: OpenZone) {
            (self.zone, row, isChanged, lastCommand) = (zone, zone.row, zone.isChanged, zone.lastCommand)
        }

        func restore() {
            (zone.row, zone.isChanged, zone.lastCommand, zone.hasEdges) = (row, isChanged, lastCommand, nil)
        }
    }

    private let zones: [ZoneKey: KeptZone]
    private let database: OpenDatabase
    private let schema: SchemaRow?
    private let databaseRow: DatabaseRow?
    private let databaseIsChanged: Bool
    private let names: UserNameCache
    private let userIDs: [String: Int64]
    private let hasJobs: Bool
    private let matcherMark: Int

    init(_ transaction: RecordTransaction, database: OpenDatabase) {
        zones = transaction.zones.mapValues(KeptZone.init)
        self.database = database
        schema = database.schema
        databaseRow = database.row
        databaseIsChanged = database.isChanged
        names = transaction.names
        userIDs = transaction.userIDs
        hasJobs = transaction.hasJobs
        matcherMark = transaction.matcher.mark
    }

    /// - Parameter key: the zone that the batch is of. Below `FeatureLevel.wholeUndoing` it is the only one.
    func restore(of key: ZoneKey, in transaction: RecordTransaction) {
        if transaction.level >= .wholeUndoing {
            transaction.zones = zones.mapValues(\.zone)
            for kept in zones.values { kept.restore() }
        } else {
            transaction.zones[key] = zones[key]?.zone
            zones[key]?.restore()
        }
        database.schema = schema
        database.row = databaseRow
        database.isChanged = databaseIsChanged
        transaction.names = names
        transaction.userIDs = userIDs
        transaction.hasJobs = hasJobs
        transaction.matcher.forget(after: matcherMark)
    }
}
