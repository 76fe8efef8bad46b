import Authorization
import RecordModel

@testable import RecordStore

extension RecordTwin {
    mutating func modifyRecords(_ command: ModifyRecords) -> RecordOutcome {
        observe(command.time)
        if let earlier = earlier(command) { return earlier }
        guard command.schemaVersion == version else { return .needsSchema(installed: version) }
        if command.zone.database.scope == .private && command.caller.user != command.zone.database.owner {
            return Self.refused(.accessDenied)
        }
        if !command.zone.isDefault && zone(command.zone) == nil {
            remember(Self.refused(.zoneNotFound), command.idempotency, command.zone.database)
            return Self.refused(.zoneNotFound)
        }
        let before = self
        var items: [ItemOutcome] = []
        var names: [String] = []
        var need = QuotaAmounts.zero
        let allotted = allotted(command)
        for operation in command.operations {
            if names.contains(operation.recordName) {
                items.append(Self.failed(.badRequest))
            } else {
                names.append(operation.recordName)
                items.append(modify(operation, command, allotted: allotted, &need))
            }
        }
        var outcome = RecordOutcome.records(items)
        if command.isAtomic && command.zone.isAtomic && items.contains(where: { $0.error != nil }) {
            let now = time
            self = before
            time = now
            outcome = .atomicFailure(items.map { $0.error == nil ? Self.failed(.atomicError) : $0 })
        } else if need != .zero {
            return takeBack(command, to: before, need)
        } else if items.contains(where: { $0.isChange }), let place = zone(command.zone), isChanged(place, before) {
            touch(place)
        }
        remember(
            outcome, command.idempotency, command.zone.database, names: command.operations.map(\.recordName))
        return outcome
    }

    private func isChanged(_ place: Int, _ before: RecordTwin) -> Bool {
        !before.zones.indices.contains(place) || zones[place].sequence != before.zones[place].sequence
    }

    static func failed(_ code: ErrorCode, _ record: RecordModel.Record? = nil) -> ItemOutcome {
        .failed(ServiceError(code, ""), serverRecord: record)
    }

    private func permissions(_ command: ModifyRecords, _ type: RecordType, isCreator: Bool) -> Permissions {
        Permissions(of: command.caller, in: type, of: command.zone.database, isCreator: isCreator)
    }

    private func mayWrite(_ row: Row, _ caller: Caller, _ zone: Int) -> Bool {
        guard let type = type(of: row) else { return false }
        if type.name == "Users" { return caller.isAdministrator || caller.user == row.name }
        let isCreator = caller.user != nil && row.created.user == caller.user
        return Permissions(of: caller, in: type, of: zones[zone].key.database, isCreator: isCreator).contains(.write)
    }

    func shown(_ row: Row, _ command: ModifyRecords, _ zone: Int) -> RecordModel.Record? {
        guard let type = type(of: row) else { return nil }
        let isCreator = command.caller.user != nil && row.created.user == command.caller.user
        guard permissions(command, type, isCreator: isCreator).contains(.read) else { return nil }
        return record(row, incarnation: zones[zone].incarnation)
    }

    /// Why an operation fails for its caller and type alone.
    private func denied(_ operation: RecordChange, _ command: ModifyRecords) -> ItemOutcome? {
        guard let type = operation.recordType.flatMap(schema.type) else { return nil }
        if type.name == "Users" {
            guard operation.kind == .create else { return nil }
            guard command.zone.database.scope == .public else { return Self.failed(.badRequest) }
            return command.caller.user == operation.recordName ? nil : Self.failed(.accessDenied)
        }
        let most = permissions(command, type, isCreator: true)
        switch operation.kind {
        case .create:
            if operation.recordName.hasPrefix("_") { return Self.failed(.badRequest) }
            return most.contains(.create) ? nil : Self.failed(.accessDenied)
        case .update, .replace: return most.contains(.write) ? nil : Self.failed(.accessDenied)
        case .forceUpdate, .forceReplace:
            return most.contains(.write) || most.contains(.create) ? nil : Self.failed(.accessDenied)
        case .delete, .forceDelete: return nil
        }
    }

    mutating func modify(_ operation: RecordChange, _ command: ModifyRecords) -> ItemOutcome {
        if let denied = denied(operation, command) { return denied }
        let zone = zone(command.zone)
        let stored = zone.flatMap { live(operation.recordName, zone: $0) }
        switch operation.kind {
        case .update, .replace, .delete:
            guard let tag = operation.changeTag else { return Self.failed(.badRequest) }
            guard let stored, let zone else { return Self.failed(.notFound) }
            guard mayWrite(rows[stored], command.caller, zone) else { return Self.failed(.accessDenied) }
            guard tag == ChangeTag(incarnation: zones[zone].incarnation, sequence: rows[stored].sequence) else {
                return Self.failed(.conflict, shown(rows[stored], command, zone))
            }
        case .forceDelete where stored == nil: return .deleted
        case .create, .forceUpdate, .forceReplace, .forceDelete: break
        }
        guard let stored, let zone else { return create(operation, command) }
        if operation.kind == .create { return Self.failed(.exists, shown(rows[stored], command, zone)) }
        guard mayWrite(rows[stored], command.caller, zone) else { return Self.failed(.accessDenied) }
        if operation.kind == .delete || operation.kind == .forceDelete { return delete(stored, command, zone) }
        if let type = operation.recordType, type != rows[stored].type { return Self.failed(.badRequest) }
        return save(operation, rows[stored].type, command)
    }

    private mutating func create(_ operation: RecordChange, _ command: ModifyRecords) -> ItemOutcome {
        guard let name = operation.recordType, let type = schema.type(named: name) else {
            return Self.failed(.badRequest)
        }
        if name == "Users" {
            guard command.zone.database.scope == .public else { return Self.failed(.badRequest) }
            guard command.caller.user == operation.recordName else { return Self.failed(.accessDenied) }
        } else {
            if operation.recordName.hasPrefix("_") { return Self.failed(.badRequest) }
            guard permissions(command, type, isCreator: true).contains(.create) else {
                return Self.failed(.accessDenied)
            }
        }
        return save(operation, name, command)
    }

    private mutating func save(_ operation: RecordChange, _ typeName: String, _ command: ModifyRecords) -> ItemOutcome {
        var place = zone(command.zone)
        let stored = place.flatMap { live(operation.recordName, zone: $0) }
        let old = stored.map { visible(rows[$0]) }
        let merges = operation.kind == .update || operation.kind == .forceUpdate
        var fields = merges ? old ?? Fields() : Fields()
        if typeName == "Users" { fields["roles"] = old?["roles"] }
        for change in operation.fields {
            guard isAllowed(change, typeName, command, old) else {
                let isRoles = typeName == "Users" && change.name == "roles"
                return Self.failed(isRoles ? .accessDenied : .badRequest)
            }
            fields[change.name] = change.value
        }
        for reference in operation.fields.flatMap({ Self.references($0.value) }) where reference.action == .validate {
            let isThere =
                reference.recordName == operation.recordName
                || place.flatMap { live(reference.recordName, zone: $0) } != nil
            if !isThere { return Self.failed(.validatingReferenceError) }
        }
        if place == nil { place = makeZone(command.zone) }
        guard let place else { return Self.failed(.internalError) }
        let known = row(operation.recordName, zone: place)
        zones[place].sequence += 1
        let sequence = zones[place].sequence
        let stamp = Stamp(timestamp: stamp, user: command.caller.user ?? "_anonymous")
        var row = Row(
            id: known.map { rows[$0].id } ?? (rows.map(\.id).max() ?? 0) + 1, zone: zones[place].id,
            name: operation.recordName, type: typeName, sequence: sequence,
            created: stored.map { rows[$0].created } ?? stamp, modified: stamp)
        row.fields = fields
        if let stored { leave(stored, by: stamp.user, isDeletion: false, command.versionsMax) }
        let edges = known.map { rows[$0].edges } ?? [:]
        for edge in Self.edges(fields) { row.edges[edge] = edges[edge] ?? sequence }
        if let known { rows[known] = row } else { rows.append(row) }
        let given = Set(operation.fields.map(\.name))
        let mayRead = shown(row, command, place) != nil
        let differs = old != nil && mayRead && fields.all.contains { !given.contains($0.name) }
        return .saved(
            SavedRecord(
                recordType: typeName, changeTag: ChangeTag(incarnation: zones[place].incarnation, sequence: sequence),
                created: row.created, modified: stamp, mergedFields: differs ? fields : nil))
    }

    private func isAllowed(
        _ change: RecordChange.FieldChange, _ typeName: String, _ command: ModifyRecords, _ old: Fields?
    ) -> Bool {
        let isInZone = Self.references(change.value).allSatisfy {
            ($0.zone?.name ?? command.zone.name) == command.zone.name
        }
        if change.name == "___parent" {
            return isInZone && Self.references(change.value).allSatisfy { $0.action == .none }
        }
        guard let field = schema.type(named: typeName)?.field(named: change.name), !field.isSystem else { return false }
        if typeName == "Users" && change.name == "roles" { return change.value == old?["roles"] }
        guard let value = change.value else { return true }
        if field.type.isEncrypted && command.zone.database.scope == .public { return false }
        return Self.fits(value, field.type) && isInZone
    }

    static func references(_ value: FieldValue?) -> [Reference] {
        switch value {
        case .reference(let reference): [reference]
        case .list(_, let members): members.flatMap { references($0) }
        default: []
        }
    }

    static func edges(_ fields: Fields) -> Set<Edge> {
        Set(
            fields.all.flatMap { references($0.value) }.filter { $0.action != .none }
                .map { Edge(target: $0.recordName, action: $0.action) })
    }

    // MARK: Deletion

    /// Live rows of a zone that refer to a name, by row.
    func sources(_ name: String, _ action: Reference.Action, zone: Int) -> [Int] {
        rows.indices.filter { place in
            rows[place].zone == zones[zone].id && !rows[place].isDeleted
                && rows[place].edges[Edge(target: name, action: action)] != nil
        }.sorted { rows[$0].id < rows[$1].id }
    }

    /// `before` is what the first level's references must have been made before.
    func cascade(
        from name: String, start: [Int], before: UInt64 = .max, caller: Caller, zone: Int
    ) -> [Int] {
        var found = start
        var names = [name]
        var before = before
        while !names.isEmpty {
            let target = names.removeFirst()
            let edge = Edge(target: target, action: .deleteSelf)
            for place in sources(target, .deleteSelf, zone: zone)
            where (rows[place].edges[edge] ?? 0) < before && !found.contains(place)
                && mayCascade(rows[place], caller, zone)
            {
                found.append(place)
                names.append(rows[place].name)
            }
            before = .max
        }
        return found
    }

    func mayCascade(_ row: Row, _ caller: Caller, _ zone: Int) -> Bool {
        row.type != "Users" && mayWrite(row, caller, zone)
    }

    func holders(_ place: Int, zone: Int) -> [Int] {
        sources(rows[place].name, .validate, zone: zone).filter { $0 != place && type(of: rows[$0]) != nil }
    }

    mutating func bury(_ place: Int, by user: String, zone: Int, _ versionsMax: UInt64) {
        leave(place, by: user, isDeletion: true, versionsMax)
        zones[zone].sequence += 1
        rows[place].sequence = zones[zone].sequence
        rows[place].modified = Stamp(timestamp: stamp, user: user)
        rows[place].isDeleted = true
        rows[place].fields = Fields()
        rows[place].edges = [:]
    }

    private mutating func delete(_ place: Int, _ command: ModifyRecords, _ zone: Int) -> ItemOutcome {
        if rows[place].type == "Users" { return Self.failed(.accessDenied) }
        let name = rows[place].name
        let user = command.caller.user ?? "_anonymous"
        let members = cascade(from: name, start: [place], caller: command.caller, zone: zone)
        let checked = command.zone.isAtomic ? members : [place]
        for member in checked where !Set(holders(member, zone: zone)).isSubset(of: members) {
            return Self.failed(.validatingReferenceError)
        }
        guard !command.zone.isAtomic else {
            for member in members { bury(member, by: user, zone: zone, command.versionsMax) }
            return .deleted
        }
        let leavesJob = !sources(name, .deleteSelf, zone: zone).isEmpty
        bury(place, by: user, zone: zone, command.versionsMax)
        if leavesJob {
            jobs.append(
                .cascade(
                    zone: zones[zone].id, target: name, before: zones[zone].sequence, caller: command.caller,
                    versionsMax: command.versionsMax))
        }
        return .deleted
    }
}

extension ItemOutcome {
    fileprivate var isChange: Bool { error == nil }
}
