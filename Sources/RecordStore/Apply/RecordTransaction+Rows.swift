import Authorization
import GRDB
import RecordModel
import Wire

extension RecordTransaction {
    func openDatabase(_ key: DatabaseKey) throws -> OpenDatabase {
        if let known = databases[key] { return known }
        var database = OpenDatabase(schemaID: nil, version: 0, id: nil)
        if let schema = try rows.schema(key) {
            database.schemaID = schema.id
            database.version = schema.version
            database.id = try rows.databaseID(key, schemaID: schema.id)
        }
        databases[key] = database
        return database
    }

    /// The live zone; nil if there is none.
    func openZone(_ key: ZoneKey) throws -> ZoneRow? {
        if let known = zones[key] { return known.row }
        guard let databaseID = try openDatabase(key.database).id,
            let row = try rows.latestZone(databaseID: databaseID, name: key.name), row.state == ZoneLife.live
        else { return nil }
        zones[key] = OpenZone(row: row)
        return row
    }

    func makeSchemaRow(container: String, environment: Environment) throws -> Int64 {
        let key = DatabaseKey(container: container, environment: environment, scope: .public, owner: "")
        if let found = try rows.schema(key) { return found.id }
        try SQLStatement(cached: "INSERT INTO schema VALUES (NULL, ?, ?, 0, ?)", in: db)
            .run(.text(container), .integer(environment.column), .blob(Schema().encoded()))
        return db.lastInsertedRowID
    }

    func makeDatabase(_ key: DatabaseKey) throws -> Int64 {
        var database = try openDatabase(key)
        if let id = database.id { return id }
        let schemaID = try makeSchemaRow(container: key.container, environment: key.environment)
        try SQLStatement(cached: "INSERT INTO database VALUES (NULL, ?, ?, ?)", in: db)
            .run(.integer(schemaID), .integer(key.scope.column), .text(key.owner))
        let id = db.lastInsertedRowID
        database.schemaID = schemaID
        database.id = id
        databases[key] = database
        return id
    }

    /// Makes a zone that does not live, with an incarnation above every earlier one of its name.
    func makeZone(_ key: ZoneKey) throws -> ZoneRow {
        let databaseID = try makeDatabase(key.database)
        let earlier = try rows.latestZone(databaseID: databaseID, name: key.name)
        let incarnation = max(incarnationFloor, (earlier?.incarnation ?? 0) + 1)
        try SQLStatement(cached: "INSERT INTO zone VALUES (NULL, ?, ?, ?, 0, ?, ?)", in: db).run(
            .integer(databaseID), .text(key.name), .integer(incarnation), .integer(time), .integer(ZoneLife.live))
        let row = ZoneRow(id: db.lastInsertedRowID, incarnation: incarnation, sequence: 0, state: ZoneLife.live)
        if let earlier, earlier.state == ZoneLife.tombstone {
            try SQLStatement(cached: "DELETE FROM zone WHERE id = ?", in: db).run(.integer(earlier.id))
        }
        zones[key] = OpenZone(row: row)
        return row
    }

    /// The next sequence of a zone; its row is written by `finish`.
    func nextSequence(_ key: ZoneKey) throws -> (zone: ZoneRow, sequence: Int64) {
        var zone: OpenZone
        if let row = try openZone(key) {
            zone = zones[key] ?? OpenZone(row: row)
        } else {
            zone = OpenZone(row: try makeZone(key))
        }
        zone.row.sequence += 1
        zone.isChanged = true
        zones[key] = zone
        return (zone.row, zone.row.sequence)
    }

    /// The number of a caller; nil if it never wrote here.
    func knownUserID(_ caller: Caller) throws -> Int64? {
        guard let name = caller.user else { return StampNames.anonymous }
        if let known = userIDs[name] { return known }
        guard let id = try rows.userID(name) else { return nil }
        userIDs[name] = id
        names.remember(name, id: id)
        return id
    }

    func makeUserID(_ caller: Caller) throws -> Int64 {
        if let known = try knownUserID(caller) { return known }
        guard let name = caller.user else { return StampNames.anonymous }
        try SQLStatement(cached: "INSERT INTO user VALUES (NULL, ?)", in: db).run(.text(name))
        let id = db.lastInsertedRowID
        userIDs[name] = id
        names.remember(name, id: id)
        return id
    }
}
