import RecordModel

/// What a record's index rows are made from.
struct IndexedRecord {
    var name: String
    var sequence: Int64
    var created: Stamp
    var modified: Stamp
    var fields: Fields

    /// The record's keys in one index, ascending; none where it has no value.
    func keys(in index: InstalledIndex) -> [IndexKey] {
        guard let system = index.system else { return index.type.indexKeys(fields[index.name]) }
        return switch system {
        case .recordID: [.bytes(Array(name.utf8))]
        case .createTime: [.number(created.timestamp)]
        case .modTime: [.number(modified.timestamp)]
        case .createdBy: [.bytes(Array(created.user.utf8))]
        case .modifiedBy: [.bytes(Array(modified.user.utf8))]
        case .etag: [.number(sequence)]
        }
    }
}

extension RecordTransaction {
    func indexedRecord(_ row: RecordRow, fields: Fields) throws -> IndexedRecord {
        IndexedRecord(
            name: row.name, sequence: row.sequence,
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)), fields: fields)
    }

    /// Writes the index rows that differ between two versions of a record; nil is no record.
    func updateIndexes(
        _ type: InstalledType, zoneID: Int64, recordID: Int64, from before: IndexedRecord?, to after: IndexedRecord?
    ) throws {
        for index in type.indexes {
            try updateIndex(
                index, zoneID: zoneID, recordID: recordID, from: before?.keys(in: index), to: after?.keys(in: index))
        }
    }

    func updateIndex(
        _ index: InstalledIndex, zoneID: Int64, recordID: Int64, from old: [IndexKey]?, to new: [IndexKey]?
    ) throws {
        if old == new { return }
        let field = SQLValue.integer(index.id)
        let zone = SQLValue.integer(zoneID)
        let record = SQLValue.integer(recordID)
        if let old {
            if old.isEmpty { try statements.deleteMissing.run(field, zone, record) }
            for key in old where new?.contains(key) != true {
                let statement = index.indexClass == .number ? statements.deleteNumber : statements.deleteBytes
                try statement.run(field, zone, key.value, record)
            }
        }
        if let new {
            if new.isEmpty { try statements.insertMissing.run(field, zone, record) }
            for key in new where old?.contains(key) != true {
                let statement = index.indexClass == .number ? statements.insertNumber : statements.insertBytes
                try statement.run(field, zone, key.value, record)
            }
        }
    }
}
