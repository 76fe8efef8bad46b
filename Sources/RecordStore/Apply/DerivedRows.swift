import GRDB
import RecordModel

/// The rows of records in indexes, in a transaction.
struct IndexTable: TransactionPart {
    let transaction: RecordTransaction

    /// Writes the index rows that differ between two versions of a record; nil is no record.
    /// - Returns: the bytes by which what counts in the zone's quota grew.
    func update(
        _ type: InstalledType, zoneID: Int64, recordID: Int64, from before: IndexedRecord?, to after: IndexedRecord?
    ) throws -> Int64 {
        try type.indexes.reduce(0) { growth, index in
            try growth
                + update(
                    index, zoneID: zoneID, recordID: recordID, from: before?.keys(in: index), to: after?.keys(in: index)
                )
        }
    }

    /// The same for one index.
    func update(
        _ index: InstalledIndex, zoneID: Int64, recordID: Int64, from old: [IndexKey]?, to new: [IndexKey]?
    ) throws -> Int64 {
        if old == new { return 0 }
        var growth: Int64 = 0
        if let old {
            if old.isEmpty { growth -= try remove(index.id, zoneID: zoneID, nil, recordID) }
            for key in IndexKey.missing(of: old, in: new ?? []) {
                growth -= try remove(index.id, zoneID: zoneID, key, recordID)
            }
        }
        if let new {
            if new.isEmpty { growth += try add(index.id, zoneID: zoneID, nil, recordID) }
            for key in IndexKey.missing(of: new, in: old ?? []) {
                growth += try add(index.id, zoneID: zoneID, key, recordID)
            }
        }
        return growth
    }

    /// - Parameter key: nil for the row that says that the record lacks the field.
    /// - Returns: the bytes that the row counts for; 0 where it was there already.
    private func add(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) throws -> Int64 {
        transaction.takeIndexRow()
        switch key {
        case nil: try transaction.statements.insertMissing.run(index, zoneID, recordID)
        case .number(let number)?: try transaction.statements.insertNumber.run(index, zoneID, number, recordID)
        case .bytes(let bytes)?: try transaction.statements.insertBytes.run(index, zoneID, bytes, recordID)
        }
        return bytesOfChangedRow(index, zoneID: zoneID, key, recordID)
    }

    /// - Returns: the bytes that the row counted for; 0 without a row.
    func remove(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) throws -> Int64 {
        transaction.takeIndexRow()
        switch key {
        case nil: try transaction.statements.deleteMissing.run(index, zoneID, recordID)
        case .number(let number)?: try transaction.statements.deleteNumber.run(index, zoneID, number, recordID)
        case .bytes(let bytes)?: try transaction.statements.deleteBytes.run(index, zoneID, bytes, recordID)
        }
        return bytesOfChangedRow(index, zoneID: zoneID, key, recordID)
    }

    private func bytesOfChangedRow(_ index: Int64, zoneID: Int64, _ key: IndexKey?, _ recordID: Int64) -> Int64 {
        if transaction.counted.isNone || db.changesCount == 0 { return 0 }
        let table: RowPlace.Table =
            switch key {
            case nil: .indexMissing
            case .number?: .indexNumber
            case .bytes?: .indexBytes
            }
        let place = RowPlace(table, field: index, zone: zoneID, key: key, row: recordID)
        return transaction.counted.contains(place) ? key?.rowBytes ?? RowBytes.index : 0
    }
}

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

    /// The record's keys in one index, ascending; empty without a value.
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

/// A reference with an action, as the edge table has it: from a record to a name in the same zone.
struct Edge: Hashable {
    /// Bytes, because two names that differ in Unicode form only are two records.
    let target: [UInt8]
    let action: Int64

    static let deleteSelf: Int64 = 1
    static let validate: Int64 = 2
    /// References with an action, each target and action once, that one record may have.
    static let perRecordMax = 1_000

    init?(_ reference: Reference) {
        switch reference.action {
        case .none: return nil
        case .deleteSelf: action = Self.deleteSelf
        case .validate: action = Self.validate
        }
        target = Array(reference.recordName.utf8)
    }

    /// The edges that a body calls for, each once, in the order of the fields.
    static func all(in fields: Fields) -> [Edge] {
        var seen: Set<Edge> = []
        return fields.all.flatMap { field in
            field.value.references.compactMap(Edge.init).filter { seen.insert($0).inserted }
        }
    }

    var targetValue: any SQLValue { String(decoding: target, as: UTF8.self) }
}

/// The references with an action that records have, in a transaction.
struct EdgeTable: TransactionPart {
    let transaction: RecordTransaction

    /// Whether records of the zone refer to others with an action.
    func isUsed(in zone: OpenZone) throws -> Bool {
        if let known = zone.hasEdges { return known }
        let found = try db.first("SELECT 1 FROM edge WHERE zone = ? LIMIT 1", zone.row.id) { _ in true }
        zone.hasEdges = found ?? false
        return found ?? false
    }

    /// Writes the edges that differ between two versions of a record.
    func update(zone: OpenZone, recordID: Int64, from old: [Edge], to new: [Edge], sequence: Int64) throws {
        if old.isEmpty && new.isEmpty { return }
        if !new.isEmpty { zone.hasEdges = true }
        try update(zoneID: zone.row.id, recordID: recordID, from: old, to: new, sequence: sequence)
    }

    /// The same for a zone that may be retired.
    func update(zoneID: Int64, recordID: Int64, from old: [Edge], to new: [Edge], sequence: Int64) throws {
        let kept = Set(old).intersection(new)
        for edge in old where !kept.contains(edge) {
            try db.run(
                "DELETE FROM edge WHERE zone = ? AND target = ? AND action = ? AND source = ?", zoneID,
                edge.targetValue, edge.action, recordID)
        }
        for edge in new where !kept.contains(edge) {
            try db.run(
                "INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?, ?)", zoneID, edge.targetValue, edge.action, recordID,
                sequence)
        }
    }

    /// Why the references that an operation sets are refused.
    func refusal(
        of operation: RecordChange, storedEdges: [Edge], edges: [Edge], _ judged: JudgedRecord
    ) throws -> ServiceError? {
        guard edges.count <= Edge.perRecordMax else {
            return ServiceError(
                .badRequest,
                "the record has \(edges.count) references with an action, at most \(Edge.perRecordMax) are allowed")
        }
        var seen: Set<Edge> = []
        for change in operation.fields {
            for reference in change.value?.references ?? [] where reference.action == .validate {
                guard let edge = Edge(reference), seen.insert(edge).inserted else { continue }
                guard try !isThere(reference, from: operation.recordName, judged.batch) else { continue }
                return ServiceError(
                    .validatingReferenceError,
                    "field \(change.name): there is no record \(reference.recordName) that VALIDATE could refer to")
            }
        }
        let stored = Set(storedEdges)
        for edge in edges where edge.action == Edge.deleteSelf && !stored.contains(edge) {
            guard let zone = judged.batch.zone else { continue }
            let count = try db.first(
                """
                SELECT count(*) FROM (SELECT 1 FROM edge WHERE zone = ? AND target = ? AND action = 1
                LIMIT \(Limits.deleteSelfReferencesMax))
                """, zone.row.id, edge.targetValue
            ) { Int($0.integer(0)) }
            if let count, count >= Limits.deleteSelfReferencesMax {
                return ServiceError(
                    .badRequest,
                    """
                    \(Limits.deleteSelfReferencesMax) records refer to \(String(decoding: edge.target, as: UTF8.self)) \
                    with DELETE_SELF already, which is the most there may be
                    """)
            }
        }
        return nil
    }

    private func isThere(_ reference: Reference, from name: String, _ batch: Batch) throws -> Bool {
        if Array(reference.recordName.utf8) == Array(name.utf8) { return true }
        guard let zone = batch.zone,
            let row = try transaction.rows.record(zoneID: zone.row.id, name: reference.recordName)
        else { return false }
        return !row.isDeleted && batch.schema.byID[row.typeID] != nil
    }
}
