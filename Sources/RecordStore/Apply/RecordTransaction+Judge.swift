import Authorization
import RecordModel

extension RecordTransaction {
    /// The table of `reference/web-services.md` section 9.
    func judge(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        let length = operation.recordName.count
        guard length >= 1, length <= Limits.nameLengthMax else {
            return .fail(
                .init(.badRequest, "recordName has \(length) characters, 1 to \(Limits.nameLengthMax) are allowed"), nil
            )
        }
        switch operation.kind {
        case .create:
            return judged.live == nil ? try judgeCreation(operation, judged) : try judgeClash(operation, judged)
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
        guard let type = judged.schema?.byName[typeName] else { return .fail(Self.unknownType(typeName), nil) }
        // The creator of a record to be is its creator: `_creator` may be granted creation.
        guard permissions(judged, type, isCreator: true).contains(.create) else {
            return .fail(.init(.accessDenied, "no permission to create records of type \(typeName)"), nil)
        }
        return try plan(operation, type: type, judged, onto: nil)
    }

    private func judgeClash(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict {
        if let name = operation.recordType, let type = judged.schema?.byName[name],
            !permissions(judged, type, isCreator: true).contains(.create)
        {
            return .fail(.init(.accessDenied, "no permission to create records of type \(name)"), nil)
        }
        return .fail(.init(.exists, "record to insert already exists"), try readable(judged))
    }

    /// Existence, then permission, then the tag; nil if the operation may go on.
    private func judgeTag(_ operation: RecordChange, _ judged: JudgedRecord) throws -> Verdict? {
        guard let tag = operation.changeTag else {
            return .fail(.init(.badRequest, "recordChangeTag is missing: \(operation.kind) needs one"), nil)
        }
        guard let live = judged.live, let zone = judged.zone else {
            return .fail(.init(.notFound, "Record not found"), nil)
        }
        if let denial = denialToWrite(judged) { return denial }
        let current = zone.changeTag(live.sequence)
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
        guard let type = judged.schema?.byID[live.typeID] else {
            return .fail(Self.unknownType(operation.recordType ?? "of the record"), nil)
        }
        if let name = operation.recordType, name != type.definition.name {
            return .fail(
                .init(.badRequest, "recordType is \(name), but the record has type \(type.definition.name) for good"),
                nil)
        }
        return try plan(operation, type: type, judged, onto: try decodeBody(live.body))
    }

    private func judgeDeletion(_ judged: JudgedRecord) throws -> Verdict {
        guard let live = judged.live else { return .fail(.init(.notFound, "Record not found"), nil) }
        return denialToWrite(judged) ?? .delete(live, judged.schema?.byID[live.typeID])
    }

    /// Checks the values and merges them onto the stored fields where there are any.
    private func plan(
        _ operation: RecordChange, type: InstalledType, _ judged: JudgedRecord, onto stored: Fields?
    ) throws -> Verdict {
        let merges = operation.kind == .update || operation.kind == .forceUpdate
        var fields = merges ? stored ?? Fields() : Fields()
        for change in operation.fields {
            if let error = Self.refusal(of: change, type: type) { return .fail(error, nil) }
            fields[change.name] = change.value
        }
        guard fields.sizeBytes <= Limits.recordSizeBytesMax else {
            return .fail(
                .init(.badRequest, "record is \(fields.sizeBytes) bytes, at most \(Limits.recordSizeBytesMax)"), nil)
        }
        let differs =
            merges && stored != nil
            && fields.all.contains { field in
                !operation.fields.contains { $0.name == field.name }
            }
        return .save(
            PlannedSave(
                name: operation.recordName, type: type, row: judged.row, storedFields: stored, fields: fields,
                differsFromRequest: differs))
    }

    private static func refusal(of change: RecordChange.FieldChange, type: InstalledType) -> ServiceError? {
        guard let field = type.fields[change.name] else {
            return ServiceError(.badRequest, "record type \(type.definition.name) has no field \(change.name)")
        }
        guard let value = change.value else { return nil }
        guard field.type.accepts(value) else {
            return ServiceError(.badRequest, "Invalid value, \(change.name) type \(field.type.webName).")
        }
        let actions: [Reference.Action]
        switch value {
        case .reference(let reference): actions = [reference.action]
        case .list(.reference, let members):
            actions = members.compactMap { if case .reference(let reference) = $0 { reference.action } else { nil } }
        default: actions = []
        }
        guard let action = actions.first(where: { $0 != .none }) else { return nil }
        return ServiceError(
            .badRequest,
            "field \(change.name): references with action \(action.rawValue) are not supported yet, use NONE")
    }

    private static func unknownType(_ name: String) -> ServiceError {
        ServiceError(.badRequest, "record type not found: \(name)")
    }

    private func permissions(_ judged: JudgedRecord, _ type: InstalledType, isCreator: Bool) -> Permissions {
        Permissions(
            of: judged.command.caller, in: type.definition, of: judged.command.zone.database, isCreator: isCreator)
    }

    /// A type that the schema lost has no grants, so its public records are closed.
    private func storedPermissions(_ judged: JudgedRecord) -> Permissions {
        let type = judged.live.flatMap { judged.schema?.byID[$0.typeID]?.definition } ?? RecordType(name: "")
        return Permissions(
            of: judged.command.caller, in: type, of: judged.command.zone.database, isCreator: judged.isCreator)
    }

    private func denialToWrite(_ judged: JudgedRecord) -> Verdict? {
        guard judged.live != nil, !storedPermissions(judged).contains(.write) else { return nil }
        return .fail(.init(.accessDenied, "no permission to change the record"), nil)
    }

    /// The stored record, if the caller may read it.
    private func readable(_ judged: JudgedRecord) throws -> Record? {
        guard let live = judged.live, let zone = judged.zone, let type = judged.schema?.byID[live.typeID],
            storedPermissions(judged).contains(.read)
        else { return nil }
        return try live.record(type: type.definition, zone: zone, names: &names)
    }
}
