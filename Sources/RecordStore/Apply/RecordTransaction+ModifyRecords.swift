import Authorization
import GRDB
import RecordModel

extension RecordTransaction {
    func modifyRecords(_ command: ModifyRecords) throws -> RecordOutcome {
        if let idempotency = command.idempotency,
            let earlier = try earlierOutcome(idempotency, in: command.zone.database)
        {
            return earlier
        }
        let database = try openDatabase(command.zone.database)
        guard database.version == command.schemaVersion else { return .needsSchema(installed: database.version) }
        if let refusal = try refusal(of: command) { return .refused(refusal) }

        let batch = Batch(
            command: command, database: database,
            schema: try database.schema.map { try tables.installedSchema($0, in: db) } ?? .none,
            zone: try openZone(command.zone), callerID: try knownUserID(command.caller))
        let outcome = try outcome(of: batch)
        if let idempotency = command.idempotency {
            try remember(outcome, of: idempotency, in: command.zone.database)
        }
        return outcome
    }

    /// Why the whole request fails; nil if its operations are to be judged.
    private func refusal(of command: ModifyRecords) throws -> ServiceError? {
        let zone = command.zone
        if let refusal = ZoneRules.refusal(of: command.caller, in: zone) { return refusal }
        guard command.operations.count <= Limits.operationsMax else {
            return ServiceError(
                .badRequest, "\(command.operations.count) operations in one request, at most \(Limits.operationsMax)")
        }
        if !zone.isDefault, try openZone(zone) == nil { return ZoneRules.notFound(zone) }
        return nil
    }

    /// Operations apply in order, each seeing the ones before. An all-or-nothing batch in which no operation can meet
    /// another is judged as a whole before the first write, which needs no savepoint.
    private func outcome(of batch: Batch) throws -> RecordOutcome {
        guard let zone = batch.zone, batch.command.isAtomic, batch.command.zone.isAtomic else {
            return .records(try inOrder(batch).items)
        }
        guard try isEntangled(batch.command, zone: zone) else {
            let verdicts = try judge(batch)
            if verdicts.contains(where: \.isFailure) { return .atomicFailure(verdicts.map(\.inFailedBatch)) }
            return .records(try verdicts.map { try write($0, batch: batch) })
        }
        let kept = KeptState(self, zone: zone)
        var items: [ItemOutcome] = []
        var isFailure = false
        try db.inSavepoint {
            (items, isFailure) = try inOrder(batch)
            return isFailure ? .rollback : .commit
        }
        guard isFailure else { return .records(items) }
        kept.restore(in: self)
        return .atomicFailure(items.map(\.inFailedBatch))
    }

    /// Whether an operation of the batch may change what another one is judged by.
    private func isEntangled(_ command: ModifyRecords, zone: OpenZone) throws -> Bool {
        if command.operations.count < 2 { return false }
        for operation in command.operations {
            switch operation.kind {
            case .delete, .forceDelete: if try hasEdges(zone) { return true }
            default:
                let isActioned = operation.fields.contains { change in
                    change.value?.references.contains { $0.action != .none } ?? false
                }
                if isActioned { return true }
            }
        }
        return false
    }

    private func judge(_ batch: Batch) throws -> [Verdict] {
        var seen = SeenNames(batch.command)
        return try batch.command.operations.map { operation in
            try seen.refusal(of: operation) ?? judge(operation, batch)
        }
    }

    private func inOrder(_ batch: Batch) throws -> (items: [ItemOutcome], isFailure: Bool) {
        var seen = SeenNames(batch.command)
        var isFailure = false
        let items = try batch.command.operations.map { operation in
            let verdict = try seen.refusal(of: operation) ?? judge(operation, batch)
            if verdict.isFailure { isFailure = true }
            return try write(verdict, batch: batch)
        }
        return (items, isFailure)
    }

    private func judge(_ operation: RecordChange, _ batch: Batch) throws -> Verdict {
        let row = try batch.zone.flatMap { try rows.record(zoneID: $0.row.id, name: operation.recordName) }
        return try judge(operation, JudgedRecord(batch: batch, row: row))
    }
}

/// The names that operations of one request were about.
private struct SeenNames {
    private var names: Set<[UInt8]> = []
    private let isAlone: Bool

    init(_ command: ModifyRecords) { isAlone = command.operations.count == 1 }

    /// Bytes, because two names that differ in Unicode form only are two records.
    mutating func refusal(of operation: RecordChange) -> Verdict? {
        if isAlone || names.insert(Array(operation.recordName.utf8)).inserted { return nil }
        return .fail(.init(.badRequest, "more than one operation on record \(operation.recordName)"), nil)
    }
}

/// What the rules of databases and zones say before any record is looked at.
enum ZoneRules {
    static func notFound(_ zone: ZoneKey) -> ServiceError {
        ServiceError(.zoneNotFound, "Zone not found: \(zone.name)")
    }

    /// Why a caller may not address the zone at all.
    static func refusal(of caller: Caller, in zone: ZoneKey) -> ServiceError? {
        switch zone.database.scope {
        case .shared: sharedDatabase
        case .private where !caller.isOwner(of: zone.database): notOwner
        case .public where !zone.isDefault: notFound(zone)
        case .public, .private: nil
        }
    }

    /// Why a caller may not ask for the zones of a database that has zones of its own.
    static func refusal(of caller: Caller, inZonesOf database: DatabaseKey) -> ServiceError? {
        switch database.scope {
        case .shared: sharedDatabase
        case .public: ServiceError(.badRequest, "only private databases have zones of their own")
        case .private: caller.isOwner(of: database) ? nil : notOwner
        }
    }

    private static let sharedDatabase = ServiceError(
        .badRequest, "shared databases are not supported yet: address the zone in its owner's database")
    private static let notOwner = ServiceError(.accessDenied, "only its owner may use a private database")
}
