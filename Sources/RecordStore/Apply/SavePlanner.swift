import Authorization
import RecordModel

/// Plans saves: what the record, its index rows and its references are to be, and whether they may.
struct SavePlanner: TransactionPart {
    let transaction: RecordTransaction

    /// What a save makes of a record, and whether it may.
    func plan(_ operation: RecordChange, type: InstalledType, _ judged: JudgedRecord) throws -> Verdict {
        let body = try judged.row.flatMap { $0.isDeleted ? nil : try decodeBody($0.body) }
        let stored = judged.live == nil ? nil : body.map(type.visible)
        let fields: Fields
        switch merge(operation, onto: stored, type: type, zone: judged.batch.command.zone) {
        case .success(let merged): fields = merged
        case .failure(let error): return .fail(error, nil)
        }
        let mayHaveEdges = type.hasReferences || type.hasStrayFields || (judged.live == nil && body != nil)
        let storedEdges = mayHaveEdges ? body.map(Edge.all) ?? [] : []
        let edges = type.hasReferences ? Edge.all(in: fields) : []
        if !edges.isEmpty {
            if let error = try EdgeTable(transaction).refusal(
                of: operation, storedEdges: storedEdges, edges: edges, judged)
            {
                return .fail(error, nil)
            }
        }
        let newBody = encodeBody(fields)
        let tellsFields = stored != nil && mayTell(fields, of: type, after: operation, judged)
        guard !tellsFields || judged.batch.takeAnswerBytes(newBody.count) else {
            return .fail(Self.answerIsTooLarge, nil)
        }
        let indexes = try planIndexes(of: fields, named: operation.recordName, type: type, stored: stored, judged)
        let (storedAssets, assets) = (body?.assets ?? [], fields.assets)
        if let refusal = refusal(files: assets.count, storedFiles: storedAssets.count) { return .fail(refusal, nil) }
        let files = NamedAssets(transaction).changedRows(from: storedAssets, to: assets)
        if let refusal = refusal(of: indexes, files: files, in: judged.batch) { return .fail(refusal, nil) }
        let rowGrowth =
            QuotaAmounts(
                bytes: Int64(operation.recordName.utf8.count + newBody.count), records: 1, assets: assets.countedBytes)
            + QuotaAmounts(bytes: transaction.counted.containsRecord(judged.row?.id ?? .max) ? RowBytes.record : 0)
            - (judged.row.map { transaction.counted.size(of: $0, storedAssets) } ?? .zero)
        return .save(
            PlannedSave(
                name: operation.recordName, type: type, row: judged.row, storedFields: stored, fields: fields,
                body: newBody, storedEdges: storedEdges, edges: edges, storedAssets: storedAssets,
                assets: assets, tellsFields: tellsFields, rowGrowth: rowGrowth, indexes: indexes,
                indexGrowth: transaction.counted.isNone ? 0 : indexes.reduce(0) { $0 + $1.growth }))
    }

    private static let answerIsTooLarge = ServiceError(
        .badRequest, "the records of this request are together too large for one answer: send them in several requests")

    /// Checks the values and merges them onto the stored fields where there are any.
    private func merge(
        _ operation: RecordChange, onto stored: Fields?, type: InstalledType, zone: ZoneKey
    ) -> Result<Fields, ServiceError> {
        let merges = operation.kind == .update || operation.kind == .forceUpdate
        var fields = merges ? stored ?? Fields() : Fields()
        if type.isUsers { fields[RecordType.rolesField] = stored?[RecordType.rolesField] }
        for change in operation.fields {
            if let error = ValueRules.refusal(of: change, type: type, zone: zone) { return .failure(error) }
            if type.isUsers && change.name == RecordType.rolesField && change.value != stored?[change.name] {
                return .failure(UsersRules.rolesAreFixed)
            }
            fields[change.name] = change.value
        }
        return RecordChange.refusal(ofRecordBytes: fields.sizeBytes).map(Result.failure) ?? .success(fields)
    }

    /// The index rows of a saved record. Those of system fields have their final size, and get their values on writing.
    private func planIndexes(
        of fields: Fields, named name: String, type: InstalledType, stored: Fields?, _ judged: JudgedRecord
    ) throws -> [PlannedIndexRows] {
        if type.indexes.isEmpty { return [] }
        let caller = Stamp(timestamp: transaction.stamp, user: judged.caller.stampName)
        let before = try stored.flatMap { stored in
            try judged.row.map { try transaction.indexedRecord($0, fields: stored) }
        }
        let after = IndexedRecord(
            name: name, sequence: 0, created: before?.created ?? caller, modified: caller, fields: fields)
        return type.indexes.map {
            PlannedIndexRows(index: $0, old: before?.keys(in: $0), new: after.keys(in: $0))
        }
    }

    /// Why the record names too many files; one that named too many before may keep them.
    private func refusal(files: Int, storedFiles: Int) -> ServiceError? {
        guard transaction.level >= .readableRecords, files > max(Limits.filesPerRecordMax, storedFiles) else {
            return nil
        }
        return ServiceError(
            .badRequest,
            """
            the record would have \(files) files, at most \(Limits.filesPerRecordMax) are allowed, as no answer has \
            room for more: keep them in several records
            """)
    }

    /// Why the record has too many index rows, or the request changes too many rows.
    private func refusal(of indexes: [PlannedIndexRows], files: Int, in batch: Batch) -> ServiceError? {
        if transaction.level >= .countedRows, let refusal = indexes.refusal { return refusal }
        guard transaction.level >= .boundedRows else { return nil }
        return batch.takeRows(indexes.reduce(1) { $0 + $1.changedRows }, files: files)
    }

    /// Whether the client does not know all of the fields that a record has now, and may read them.
    private func mayTell(
        _ fields: Fields, of type: InstalledType, after operation: RecordChange, _ judged: JudgedRecord
    ) -> Bool {
        let sent = Set(operation.fields.map(\.name))
        return fields.all.contains { !sent.contains($0.name) }
            && judged.permissions(type, isCreator: judged.isCreator).contains(.read)
    }
}

extension [PlannedIndexRows] {
    /// Why a record has too many index rows; one that had too many before may have fewer.
    fileprivate var refusal: ServiceError? {
        let rows = self.reduce(0) { $0 + $1.rows }
        guard rows > Limits.indexRowsPerRecordMax, rows > self.reduce(0, { $0 + $1.oldRows }),
            let most = self.max(by: { $0.rows < $1.rows })
        else { return nil }
        return ServiceError(
            .badRequest,
            """
            the record would have \(rows) index rows, at most \(Limits.indexRowsPerRecordMax) are allowed: field \
            \(most.index.name) alone has \(most.rows)
            """)
    }
}

/// What a value must be, by its field and place alone.
private enum ValueRules {
    static func refusal(of change: RecordChange.FieldChange, type: InstalledType, zone: ZoneKey) -> ServiceError? {
        if change.name == SystemField.parent.rawValue { return refusalOfParent(change, zone: zone) }
        guard let field = type.fields[change.name] else {
            return ServiceError(.badRequest, "record type \(type.definition.name) has no field \(change.name)")
        }
        if field.type.isEncrypted && zone.database.scope == .public && change.value != nil {
            return ServiceError(
                .badRequest, "field \(change.name) is encrypted: encrypted fields are for private databases only")
        }
        guard let value = change.value else { return nil }
        if value.isSecret && !field.type.isEncrypted {
            return ServiceError(
                .badRequest, "Attempt to save encrypted data in non encrypted field type: \(change.name)")
        }
        guard field.type.accepts(value) else {
            return ServiceError(.badRequest, "Invalid value, \(change.name) type \(field.type.webName).")
        }
        return refusal(of: value.references, field: change.name, zone: zone)
    }

    private static func refusalOfParent(_ change: RecordChange.FieldChange, zone: ZoneKey) -> ServiceError? {
        guard let value = change.value else { return nil }
        guard case .reference(let reference) = value, reference.action == .none else {
            return ServiceError(.badRequest, "parent is a reference without an action")
        }
        return refusal(of: [reference], field: "parent", zone: zone)
    }

    private static func refusal(of references: [Reference], field: String, zone: ZoneKey) -> ServiceError? {
        for reference in references {
            guard let target = reference.zone else { continue }
            let owner = target.owner ?? zone.database.owner
            guard target.name == zone.name, owner == zone.database.owner || ownersAlias.contains(owner) else {
                return ServiceError(
                    .badRequest,
                    "field \(field): a reference stays in its record's zone \(zone.name), not \(target.name)"
                )
            }
        }
        return nil
    }

    /// What clients write for the caller.
    private static let ownersAlias: Set = ["__defaultOwner__", "_defaultOwner"]
}

extension FieldValue {
    /// The references that the value holds.
    var references: [Reference] {
        switch self {
        case .reference(let reference): [reference]
        case .list(.reference, let members):
            members.compactMap { if case .reference(let reference) = $0 { reference } else { nil } }
        default: []
        }
    }

    /// Whether the value, or a member of it, is what only an encrypted field may hold.
    var isSecret: Bool {
        switch self {
        case .sealed, .encrypted: true
        case .list(_, let members): members.contains { $0.isSecret }
        default: false
        }
    }
}

extension InstalledType {
    var isUsers: Bool { definition.name == RecordType.usersName }
}

/// The rules of the record type `Users`, of which a container has one record for each user.
enum UsersRules {
    static let rolesAreFixed = ServiceError(
        .accessDenied, "the field roles of \(RecordType.usersName) is changed by administrators only")

    /// A user's record is written by that user and the administrator alone, whatever is granted to whom.
    static func mayWrite(_ name: String, _ judged: JudgedRecord) -> Bool {
        if judged.caller.isAdministrator { return true }
        guard judged.batch.command.zone.database.scope == .public, let user = judged.caller.user else { return false }
        return Array(user.utf8) == Array(name.utf8)
    }

    /// A user's record is made by that user, under the user's record name, in public data; no grant is needed. Names
    /// that begin with `_` are for nothing else.
    static func refusalToCreate(
        _ name: String, type: RecordType, by caller: Caller, in zone: ZoneKey
    ) -> ServiceError? {
        guard type.name == RecordType.usersName else {
            guard name.utf8.first == UInt8(ascii: "_") else { return nil }
            return ServiceError(
                .badRequest, "recordName \(name) begins with _: such names are for \(RecordType.usersName) only")
        }
        guard zone.database.scope == .public else {
            return ServiceError(.badRequest, "records of type \(RecordType.usersName) are in the public database only")
        }
        guard let user = caller.user, Array(user.utf8) == Array(name.utf8) else {
            return ServiceError(
                .accessDenied,
                "a record of type \(RecordType.usersName) is made by its own user, under the user's record name")
        }
        return nil
    }
}
