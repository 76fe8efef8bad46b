import RecordModel

extension IndexKey {
    /// The keys of one array that another has not; both are ascending and without repetition, as is the result.
    static func missing(of keys: [IndexKey], in others: [IndexKey]) -> [IndexKey] {
        if others.isEmpty { return keys }
        var place = 0
        return keys.filter { key in
            while place < others.count, others[place] < key { place += 1 }
            return place == others.count || others[place] != key
        }
    }
}

/// What a record's index rows are made from.
struct IndexedRecord {
    var name: String
    var sequence: Int64
    var created: Stamp
    var modified: Stamp
    var fields: Fields

    /// The record's keys in one index, ascending; none where it has no value.
    func keys(in index: InstalledIndex) -> [IndexKey] {
        switch index.purpose {
        case .values: valueKeys(in: index)
        case .tokens: Tokenizer.tokens(of: fields[index.name]).map(IndexKey.bytes)
        case .cells: locationKeys(fields[index.name])
        }
    }

    /// A list of locations has no cells; the schema gives it no such index.
    private func locationKeys(_ value: FieldValue?) -> [IndexKey] {
        guard case .location(let location)? = value, let cell = LocationCell(location) else { return [] }
        return [.number(cell.value)]
    }

    private func valueKeys(in index: InstalledIndex) -> [IndexKey] {
        guard let system = index.system else { return index.type.indexKeys(fields[index.name]) }
        return switch system {
        case .recordID: [.bytes(Array(name.utf8))]
        case .createTime: [.number(created.timestamp)]
        case .modTime: [.number(modified.timestamp)]
        case .createdBy: [.bytes(Array(created.user.utf8))]
        case .modifiedBy: [.bytes(Array(modified.user.utf8))]
        case .etag: [.number(sequence)]
        case .parent: index.type.indexKeys(fields[SystemField.parent.rawValue])
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
            for key in IndexKey.missing(of: old, in: new ?? []) {
                let statement = index.indexClass == .number ? statements.deleteNumber : statements.deleteBytes
                try statement.run(field, zone, key.value, record)
            }
        }
        if let new {
            if new.isEmpty { try statements.insertMissing.run(field, zone, record) }
            for key in IndexKey.missing(of: new, in: old ?? []) {
                let statement = index.indexClass == .number ? statements.insertNumber : statements.insertBytes
                try statement.run(field, zone, key.value, record)
            }
        }
    }
}
