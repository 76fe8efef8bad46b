import Authorization
import RecordModel

extension RecordTransaction {
    /// Judges all operations first and writes only then, so that no savepoint is needed.
    func modifyRecords(_ command: ModifyRecords) throws -> RecordOutcome {
        if let idempotency = command.idempotency,
            let earlier = try earlierOutcome(idempotency, in: command.zone.database)
        {
            return earlier
        }
        let database = try openDatabase(command.zone.database)
        guard database.version == command.schemaVersion else { return .needsSchema(installed: database.version) }
        if let refusal = try refusal(of: command) { return .refused(refusal) }

        let verdicts = try judge(command, schemaID: database.schemaID)
        let outcome: RecordOutcome
        if command.isAtomic && command.zone.isAtomic && verdicts.contains(where: \.isFailure) {
            outcome = .atomicFailure(verdicts.map(\.inFailedBatch))
        } else {
            outcome = .records(try verdicts.map { try write($0, command: command) })
        }
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

    private func judge(_ command: ModifyRecords, schemaID: Int64?) throws -> [Verdict] {
        let zone = try openZone(command.zone)
        let schema = try schemaID.map { try tables.installedSchema(id: $0, version: command.schemaVersion, in: db) }
        let userID = try knownUserID(command.caller)
        var seen: Set<[UInt8]> = []
        return try command.operations.map { operation in
            // Bytes, because two names that differ in Unicode form only are two records.
            guard command.operations.count == 1 || seen.insert(Array(operation.recordName.utf8)).inserted else {
                return .fail(.init(.badRequest, "more than one operation on record \(operation.recordName)"), nil)
            }
            let row = try zone.flatMap { try rows.record(zoneID: $0.id, name: operation.recordName) }
            return try judge(
                operation,
                JudgedRecord(command: command, zone: zone, schema: schema, row: row, callerID: userID))
        }
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
        case .shared:
            ServiceError(
                .badRequest, "shared databases are not supported yet: address the zone in its owner's database")
        case .private where !caller.isOwner(of: zone.database):
            ServiceError(.accessDenied, "only its owner may use a private database")
        case .public where !zone.isDefault: notFound(zone)
        case .public, .private: nil
        }
    }
}
