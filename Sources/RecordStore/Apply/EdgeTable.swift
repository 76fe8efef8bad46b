import GRDB
import RecordModel

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
