import Authorization
import RecordModel

extension RecordTransaction {
    /// What becomes of an operation: by its kind, whether the record is there, and what the caller may do.
    func judge(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        let type = operation.recordType.flatMap { judged.batch.schema.byName[$0]?.definition }
        if let refusal = operation.refusal(as: type, by: judged.caller, in: judged.batch.command.zone) {
            return .fail(refusal, nil)
        }
        switch operation.kind {
        case .create:
            if judged.live == nil { return try judgeCreation(operation, judged) }
            return .fail(.init(.exists, "record to insert already exists"), try readable(judged))
        case .forceUpdate, .forceReplace:
            return judged.live == nil ? try judgeCreation(operation, judged) : try judgeChange(operation, judged)
        case .update, .replace:
            return try judgeTag(operation, judged) ?? judgeChange(operation, judged)
        case .delete:
            return try judgeTag(operation, judged) ?? judgeDeletion(judged)
        case .forceDelete:
            return judged.live == nil ? .nothing : try judgeDeletion(judged)
        }
    }

    private func judgeCreation(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        guard let typeName = operation.recordType else {
            return .fail(
                .init(.badRequest, "recordType is missing: \(operation.kind) may have to create the record"), nil)
        }
        guard let type = judged.batch.schema.byName[typeName] else { return .fail(Self.unknownType(typeName), nil) }
        let zone = judged.batch.command.zone
        if let refusal = UsersRules.refusalToCreate(
            operation.recordName, type: type.definition, by: judged.caller, in: zone)
        {
            return .fail(refusal, nil)
        }
        // The creator of a record to be is its creator: `_creator` may be granted creation.
        guard type.isUsers || judged.permissions(type, isCreator: true).contains(.create) else {
            return .fail(RecordChange.mayNotCreate(type.definition), nil)
        }
        return try planSave(operation, type: type, judged)
    }

    /// Existence, then permission, then the tag; nil if the operation may go on.
    private func judgeTag(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict? {
        guard let tag = operation.changeTag else {
            return .fail(.init(.badRequest, "recordChangeTag is missing: \(operation.kind) needs one"), nil)
        }
        guard let live = judged.live, let zone = judged.batch.zone else {
            return .fail(.init(.notFound, "Record not found"), nil)
        }
        if let denial = denialToWrite(judged) { return denial }
        let current = zone.row.changeTag(live.row.sequence)
        guard tag == current else {
            let record = try readable(judged)
            let detail = record == nil ? "" : ": the record's tag is \(current), not \(tag)"
            return .fail(.init(.conflict, "client oplock error updating record" + detail), record)
        }
        return nil
    }

    private func judgeChange(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        guard let live = judged.live else { return .fail(.init(.notFound, "Record not found"), nil) }
        if let denial = denialToWrite(judged) { return denial }
        if let name = operation.recordType, name != live.type.definition.name {
            return .fail(
                .init(
                    .badRequest,
                    "recordType is \(name), but the record has type \(live.type.definition.name) for good"), nil)
        }
        return try planSave(operation, type: live.type, judged)
    }

    private func judgeDeletion(_ judged: JudgedRecord) throws -> Verdict {
        guard let live = judged.live else { return .fail(.init(.notFound, "Record not found"), nil) }
        if let denial = denialToWrite(judged) { return denial }
        if live.type.isUsers {
            return .fail(.init(.accessDenied, "records of type \(RecordType.usersName) cannot be deleted"), nil)
        }
        return try planDeletion(live.row, type: live.type, judged.batch)
    }

    static func unknownType(_ name: String) -> ServiceError {
        ServiceError(.badRequest, "record type not found: \(name)")
    }

    private func denialToWrite(_ judged: JudgedRecord) -> Verdict? {
        guard let live = judged.live else { return nil }
        let mayWrite =
            live.type.isUsers
            ? UsersRules.mayWrite(live.row.name, judged)
            : judged.permissions(live.type, isCreator: judged.isCreator).contains(.write)
        if mayWrite { return nil }
        return .fail(RecordChange.mayNotChange, nil)
    }

    /// The stored record, if the caller may read it and the outcome has room for it.
    private func readable(_ judged: JudgedRecord) throws -> Record? {
        guard let live = judged.live, let zone = judged.batch.zone,
            judged.permissions(live.type, isCreator: judged.isCreator).contains(.read),
            judged.batch.takeAnswerBytes(live.row.body.count)
        else { return nil }
        return try live.row.record(type: live.type, zone: zone.row, names: &names)
    }
}
