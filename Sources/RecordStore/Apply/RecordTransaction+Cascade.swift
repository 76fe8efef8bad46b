import Authorization
import RecordModel

/// On whose behalf records go that refer to a deleted one.
struct CascadeWriter {
    let caller: Caller
    /// Nil where the caller never wrote to this shard.
    let callerID: Int64?
    let zone: OpenZone
    let schema: InstalledSchema

    /// Whether the caller may delete the record.
    func mayDelete(_ row: RecordRow) -> Bool {
        guard let type = schema.byID[row.typeID], !type.isUsers else { return false }
        return permissions(row, type).contains(.write)
    }

    func mayRead(_ row: RecordRow) -> Bool {
        schema.byID[row.typeID].map { permissions(row, $0).contains(.read) } ?? false
    }

    private func permissions(_ row: RecordRow, _ type: InstalledType) -> Permissions {
        let isCreator = caller.user != nil && callerID == row.createdBy
        return Permissions(of: caller, in: type.definition, of: zone.key.database, isCreator: isCreator)
    }
}

extension RecordTransaction {
    /// The rows of the records that refer to a name with DELETE_SELF since before a sequence, by id.
    private func sources(of target: String, before: Int64, zone: OpenZone) throws -> [Int64] {
        try SQLStatement(
            cached: "SELECT source FROM edge WHERE zone = ? AND target = ? AND action = 1 AND made < ? ORDER BY source",
            in: db
        ).all(.integer(zone.row.id), .text(target), .integer(before)) { $0.integer(0) }
    }

    /// Whether a record refers to a name with DELETE_SELF.
    func isTarget(_ name: String, zone: OpenZone) throws -> Bool {
        try SQLStatement(cached: "SELECT 1 FROM edge WHERE zone = ? AND target = ? AND action = 1 LIMIT 1", in: db)
            .first(.integer(zone.row.id), .text(name)) { _ in true } ?? false
    }

    /// A row without its body: a cascade may have thousands.
    func lightRow(_ id: Int64) throws -> RecordRow? {
        try SQLStatement(cached: Self.findLightRow, in: db).first(.integer(id)) { RecordRow($0) }
    }

    private static let findLightRow = "SELECT \(RecordRow.lightColumns) FROM record r WHERE r.id = ?"

    func row(_ id: Int64) throws -> RecordRow? {
        try SQLStatement(cached: Self.findRow, in: db).first(.integer(id)) { RecordRow($0) }
    }

    private static let findRow = "SELECT \(RecordRow.columns) FROM record r WHERE r.id = ?"

    /// The first other record, by row, that refers to one with VALIDATE and is not in `members`; what the schema lost
    /// holds nothing. Without its body.
    func holder(of row: RecordRow, outside members: Set<Int64>, _ writer: CascadeWriter) throws -> RecordRow? {
        var found: RecordRow?
        try SQLStatement(cached: Self.findHolders, in: db)
            .forEach([.integer(writer.zone.row.id), .text(row.name)]) { columns in
                let id = columns.integer(0)
                guard id != row.id, !members.contains(id), writer.schema.byID[columns.integer(2)] != nil else {
                    return true
                }
                found = RecordRow(columns)
                return false
            }
        return found
    }

    private static let findHolders = """
        SELECT \(RecordRow.lightColumns) FROM edge e JOIN record r ON r.id = e.source WHERE e.zone = ? AND e.target = ? AND e.action = 2 ORDER BY e.source
        """

    /// The record and all that go with it, nearest first and by row among equals; nil if they are more than `max`.
    ///
    /// - Parameter before: only references to the record itself that were made before this sequence count.
    func cascade(
        from row: RecordRow, before: Int64 = .max, max: Int, _ writer: CascadeWriter
    ) throws -> [RecordRow]? {
        try Invariant.check(!row.isDeleted, "what refers to the deleted record \(row.id) would go with it again")
        var found = [row]
        var seen: Set = [row.id]
        var next = 0
        while next < found.count {
            let sources = try sources(of: found[next].name, before: next == 0 ? before : .max, zone: writer.zone)
            for id in sources {
                guard seen.insert(id).inserted, let source = try lightRow(id), writer.mayDelete(source) else {
                    continue
                }
                guard found.count < max else { return nil }
                found.append(source)
            }
            next += 1
        }
        return found
    }
}
