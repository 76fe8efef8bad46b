import Admission
import Authorization
import Cluster
import Crypto
import Directory
import RaftCore
package import RecordModel
import RecordStore

/// Up to 200 operations on records of one zone.
package struct RecordModification: Sendable {
    let request: DatabaseRequest
    var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// What became of a request.
    package struct Result: Sendable {
        /// One for each operation, in their order.
        package var items: [(recordName: String, outcome: Outcome)]
        /// Whether the batch was atomic and an operation failed, so that nothing was saved.
        package var isAtomicFailure: Bool
        /// The zone's token, where the request wants it.
        package var syncToken: String?
    }

    /// What became of one operation.
    package enum Outcome: Sendable {
        /// The record as it is now, encrypted fields in the clear.
        /// - Parameter isReadable: whether the caller may read it, and so gets URLs of its assets.
        case saved(Record, isReadable: Bool)
        case deleted
        /// Nothing was changed, or the record was saved and cannot be shown.
        /// - Parameter serverRecord: the record as the server has it, where the caller may read it.
        case failed(ServiceError, serverRecord: Record? = nil)
    }

    /// One operation of the request, on its way through.
    private enum Item {
        /// Goes to the shard as the change at this position.
        case sent(Int)
        /// Failed before: its values do not fit the schema.
        case failed(ServiceError)
    }

    /// The request, judged against one version of the schema.
    private struct Plan {
        var items: [Item] = []
        var changes: [RecordChange] = []
        /// The fields that each change sets, encrypted ones in the clear, for the answer.
        var plainFields: [Fields] = []
        /// Nil for a request that came before.
        var assets: AssetSaving?
    }

    /// Applies the operations, all or nothing where the request and the zone are atomic.
    /// - Throws: what fails the request as a whole; what fails one operation is in the result. Where the details are
    ///   `.outcomeUnknown`, a repeat with the same idempotency key is safe: the operations are applied once.
    package func run(_ form: ModifyRecordsRequest) async throws(RequestFailure) -> Result {
        let zone = try request.zone(form.zoneID)
        let isAtomic = form.isAtomic && zone.isAtomic
        var named = form.operations.enumerated().map { number, operation in
            (operation, operation.recordName ?? newName(number, key: request.identity?.key))
        }
        let hidden = try await addTypes(to: &named, in: zone)
        try await service.userRecords.ensure(of: request, among: named.map(\.1))
        let group = service.node.map.group(of: zone)
        let assets = try await AssetSaving(named, in: zone, request)
        let refusal = try await transferRefusal(of: form)
        var (isPaid, isGrowthPaid) = (false, false)
        return try await request.attempt { attempt throws(RequestFailure) in
            let schema = attempt.schema
            if refusal == nil,
                try await service.schemaGrowth.extend(attempt, by: named.map(\.0), for: request, &isGrowthPaid)
            {
                return .outdated
            }
            let plan = try await self.plan(named, hidden: hidden, assets, attempt, zone: zone)
            let answer = Answer(operations: named, plan: plan, zone: zone, schema: schema.schema)
            if refusal != nil || plan.changes.count < plan.items.count {
                if try await service.cluster.isOutdated(schema, request.schemaKey) { return .outdated }
                if let key = request.idempotencyKey(), let result = try await earlierResult(answer, key) {
                    return .done(result)
                }
                if let refusal { throw refusal }
            }
            let fails = isAtomic && plan.changes.count < plan.items.count
            if fails || plan.changes.isEmpty { return .done(try await result(answer, isAtomicFailure: fails)) }
            let terms = attempt.quotaTerms(of: request)
            let command = try await self.command(plan.changes, isAtomic, in: zone, attempt, terms, on: group)
            try pay(for: plan.changes, schema: schema.schema, unless: &isPaid)
            guard try await assets.hold(plan.changes) else { return .outdated }
            let outcome = try await Tried(.modifyRecords(command), terms, of: request, on: group)
            return try await outcome.map { outcome throws(RequestFailure) in try await result(answer, outcome) }
        }
    }

    /// The command that makes changes, with what the request and the container say of it.
    private func command(
        _ changes: [RecordChange], _ isAtomic: Bool, in zone: ZoneKey, _ attempt: Attempt, _ terms: QuotaTerms,
        on group: GroupID
    ) async throws(RequestFailure) -> ModifyRecords {
        var command = ModifyRecords(
            zone: zone, schemaVersion: attempt.schema.version, caller: request.caller, time: service.now,
            isAtomic: isAtomic, quota: terms, operations: changes)
        (command.idempotency, command.client) = try await (request.idempotencyKey(), request.client(in: group))
        command.versionsMax = try await attempt.versionsKept(for: request, on: group)
        // What can only be refused is not logged.
        if let refusal = command.refusal { throw RequestFailure(refusal) }
        return command
    }

    /// Spends what the request costs beyond the one token for which it was let in, if it may cost so much. Further
    /// attempts cost nothing.
    private func pay(
        for changes: [RecordChange], schema: Schema, unless isPaid: inout Bool
    ) throws(RequestFailure) {
        if isPaid { return }
        isPaid = true
        let rows = WrittenRows(changes, schema: schema)
        if let refusal = rows.refusal { throw RequestFailure(refusal) }
        service.peerExchange.rates.charge(rows.tokens - 1, to: request)
    }

    /// Why the month's transfer does not allow the request, unless it came before; nil where it does. What only deletes
    /// is not held to it.
    private func transferRefusal(of form: ModifyRecordsRequest) async throws(RequestFailure) -> RequestFailure? {
        guard form.operations.contains(where: { !$0.kind.isDelete }) else { return nil }
        do throws(RequestFailure) {
            try await service.usage.requireTransfer(
                for: request.key, of: request.caller.stampName, in: request.directory, by: request.deadline)
            return nil
        } catch {
            guard error.error.code == .quotaExceeded else { throw error }
            return error
        }
    }

    /// Looks up the types of records whose operations set fields without naming a type: what a value means depends on
    /// it.
    /// - Returns: the positions of operations whose records the caller may not read to learn it.
    private func addTypes(
        to operations: inout [(RecordOperation, String)], in zone: ZoneKey
    ) async throws(RequestFailure) -> Set<Int> {
        let untyped = operations.indices.filter {
            let operation = operations[$0].0
            return operation.recordType == nil && !operation.kind.isDelete && !operation.fields.isEmpty
        }
        guard !untyped.isEmpty else { return [] }
        let rendering = ShardRead.Rendering(desiredKeys: [], numbersAsStrings: false)
        let answer = try await request.read(zone) { [operations] schema in
            .lookup(
                ShardRead.RecordLookup(
                    zone: zone, schemaVersion: schema.version, caller: request.caller,
                    items: untyped.map { (operations[$0].1, rendering) }))
        }
        guard let found = try? JSONParser.parse(answer.bytes).array, found.count == untyped.count else {
            throw RequestFailure(
                .internalError, "a shard's answer cannot be read: no array of \(untyped.count) records")
        }
        var hidden: Set<Int> = []
        for (position, record) in zip(untyped, found) {
            if record["serverErrorCode"]?.string == ErrorCode.accessDenied.rawValue { hidden.insert(position) }
            operations[position].0.recordType = record["recordType"]?.string
        }
        return hidden
    }

    /// The name of a record that came without one. Under an idempotency key it is made of that, so that a repetition of
    /// the request means the same records.
    private func newName(_ number: Int, key: [UInt8]?) -> String {
        guard let key else { return service.newID().text }
        let digest = SHA256.hash(data: key + Array("/record/\(number)".utf8))
        return UUIDv7(Array(key.prefix(6)) + Array(digest.prefix(10))).text
    }

    private func plan(
        _ operations: [(RecordOperation, String)], hidden: Set<Int>, _ assets: AssetSaving, _ attempt: Attempt,
        zone: ZoneKey
    ) async throws(RequestFailure) -> Plan {
        var plan = Plan(assets: assets)
        let schema = attempt.schema.schema
        let place = RecordOperation.Place(
            container: request.key.container, environment: request.key.environment, scope: request.key.scope,
            zone: request.zoneID(named: zone.name),
            schemaGrows: service.schemaGrowth.rate(of: request.key.container, in: attempt.directory) != nil,
            schemaBytes: SchemaExtension.isNeeded(by: operations.map(\.0), in: schema) ? schema.encodedSize : nil)
        for (position, (operation, name)) in operations.enumerated() {
            guard !hidden.contains(position) else {
                plan.items.append(.failed(Self.hiddenType))
                continue
            }
            var change: RecordChange
            do throws(ServiceError) {
                change = try self.change(operation, name: name, assets, schema: schema, at: place)
            } catch {
                plan.items.append(.failed(error))
                continue
            }
            let plainFields = Fields(change.fields)
            try await seal(&change, in: zone)
            let type = change.recordType.flatMap { schema.type(named: $0) }
            if var refusal = change.refusal(as: type, by: request.caller, in: zone) {
                if change.isTooLarge { refusal.detail = .tooLarge }
                plan.items.append(.failed(refusal))
                continue
            }
            plan.plainFields.append(plainFields)
            plan.items.append(.sent(plan.changes.count))
            plan.changes.append(change)
        }
        try assets.requireNoClockDoubt()
        return plan
    }

    /// One that no record has.
    private static let staleTag = ChangeTag(incarnation: 0, sequence: 0)

    private static let hiddenType = ServiceError(
        .badRequest, "recordType is missing, and the caller may not read the record to learn it")

    private func change(
        _ operation: RecordOperation, name: String, _ assets: AssetSaving, schema: Schema,
        at place: RecordOperation.Place
    ) throws(ServiceError) -> RecordChange {
        var change = RecordChange(
            operation.kind.changeKind, name, type: operation.recordType,
            changeTag: operation.changeTag.map { ChangeTag($0) ?? Self.staleTag })
        if operation.recordType == nil, !operation.kind.isDelete, !operation.fields.isEmpty {
            // The record was looked for, to learn its type.
            throw ServiceError(.notFound, "Record not found")
        }
        do throws(ServiceError) {
            let resolver = assets.resolver(of: operation, name: name)
            change.fields = try operation.values(in: schema, at: place, assets: resolver).map {
                RecordChange.FieldChange(name: $0.name, value: $0.value)
            }
        } catch {
            if error.code == .badRequest, assets.isStale(operation, name: name) {
                // The shard refuses it for that, with the record as it is now.
                change.changeTag = Self.staleTag
                return change
            }
            guard error.code == .tryAgainLater, request.caller.user == nil else { throw error }
            throw ServiceError(
                .accessDenied,
                "types and fields are made just in time for signed-in users only: sign in, or add them with "
                    + "`zonekeeper schema import FILE --container \(request.key.container)`")
        }
        return change
    }
}

extension RecordModification {
    /// What the result of a request is made of.
    private struct Answer {
        /// With the name of each one's record.
        var operations: [(RecordOperation, String)]
        var plan: Plan
        var zone: ZoneKey
        /// By which the operations were judged.
        var schema: Schema
        /// One for each change; nil where nothing was sent.
        var outcomes: [ItemOutcome]?
    }

    /// The result that a request got when it came first; nil where it did not come before. Asked where a part of it
    /// would not be sent now: the schema, the caller's rights or the month's transfer may have changed since.
    private func earlierResult(
        _ answer: Answer, _ key: IdempotencyKey
    ) async throws(RequestFailure) -> Result? {
        var known = answer
        known.plan = Plan()
        for (position, (operation, name)) in answer.operations.enumerated() {
            if case .sent(let place) = answer.plan.items[position] {
                known.plan.plainFields.append(answer.plan.plainFields[place])
            } else {
                known.plan.plainFields.append(Fields())
            }
            known.plan.items.append(.sent(position))
            known.plan.changes.append(
                RecordChange(
                    operation.kind.changeKind, name, type: operation.recordType,
                    fields: operation.fields.map { RecordChange.FieldChange(name: $0.name, value: nil) }))
        }
        let command = ModifyRecords(
            zone: answer.zone, schemaVersion: 0, caller: request.caller, time: service.now,
            idempotency: key, operations: known.plan.changes)
        let read = try await service.cluster.read(
            .earlierOutcome(command), from: service.node.map.group(of: answer.zone), by: request.deadline)
        guard case .found(let found) = read, !found.bytes.isEmpty else { return nil }
        return try await result(known, try unpacked(found.bytes, as: RecordOutcome.self))
    }

    private func result(_ answer: Answer, _ outcome: RecordOutcome) async throws(RequestFailure) -> Result {
        var answer = answer
        switch outcome {
        case .records(let outcomes) where outcomes.count == answer.plan.changes.count:
            answer.outcomes = outcomes
            let saved = zip(answer.plan.changes, outcomes).filter { if case .saved = $1 { true } else { false } }
            answer.plan.assets?.didSave(saved.map(\.0))
            return try await result(answer, isAtomicFailure: false)
        case .atomicFailure(let outcomes) where outcomes.count == answer.plan.changes.count:
            answer.outcomes = outcomes
            return try await result(answer, isAtomicFailure: true)
        case .refused(let error): throw RequestFailure(error)
        case .quota, .zone, .schemaInstalled, .maintained, .needsSchema, .needsAllotment, .records, .atomicFailure:
            throw .otherAnswer
        }
    }

    private func result(_ answer: Answer, isAtomicFailure: Bool) async throws(RequestFailure) -> Result {
        // What was saved must not be hidden behind a token that cannot be read.
        let token =
            answer.outcomes == nil
            ? try await request.currentToken(of: answer.zone)
            : try? await request.currentToken(of: answer.zone)
        await learnKeys(of: answer)
        let items = zip(answer.plan.items, answer.operations.map(\.1)).map { item, name -> (String, Outcome) in
            switch item {
            case .failed(let error):
                auditDenial(error)
                return (name, .failed(error))
            case .sent(let position):
                guard let outcomes = answer.outcomes else {
                    return (name, .failed(Self.nothingSaved))
                }
                return (name, outcome(outcomes[position], at: position, answer))
            }
        }
        return Result(items: items, isAtomicFailure: isAtomicFailure, syncToken: token)
    }

    /// Seals the encrypted values of a change. A container's first such value brings it its first key.
    private func seal(_ change: inout RecordChange, in zone: ZoneKey) async throws(RequestFailure) {
        for position in change.fields.indices {
            guard case .encrypted? = change.fields[position].value, let value = change.fields[position].value else {
                continue
            }
            try await requireContainerKey(of: zone.database.container)
            change.fields[position].value = try relay(
                service.node.vault.seal(
                    value, container: zone.database.container,
                    place: FieldPlace(zone: zone, recordName: change.recordName, field: change.fields[position].name)))
        }
    }

    private func requireContainerKey(of container: String) async throws(RequestFailure) {
        if service.node.vault.currentKey(of: container) != nil { return }
        // A node that is behind must not begin a second set of keys.
        try await service.cluster.refreshDirectory()
        if service.node.vault.currentKey(of: container) != nil { return }
        let key = try relay(service.node.vault.newContainerKey(number: 1, container: container))
        let command = DirectoryCommand.addContainerKey(container: container, key)
        // Refused with a conflict where another node was faster.
        if case .refused(let error) = try await service.cluster.submit(command, by: service.deadline()),
            error.code != .conflict
        {
            throw RequestFailure(error)
        }
        try await service.cluster.refreshDirectory()
    }

    /// Makes sure that this node has the keys of what the outcomes carry: other nodes may have saved it a moment ago,
    /// under a key that is as new.
    private func learnKeys(of answer: Answer) async {
        let (vault, container) = (service.node.vault, request.key.container)
        let isBehind = (answer.outcomes ?? []).contains { outcome in
            switch outcome {
            case .deleted: false
            case .failed(_, let serverRecord): serverRecord.map { vault.isBehind($0.fields, of: container) } ?? false
            case .saved(let saved): saved.mergedFields.map { vault.isBehind($0, of: container) } ?? false
            }
        }
        if isBehind { await service.cluster.catchUp() }
    }

    private static let nothingSaved = ServiceError(
        .atomicError, "another operation of the batch failed; nothing was saved")

    private func auditDenial(_ error: ServiceError) {
        if error.code == .accessDenied { request.auditDenials("records/modify") }
    }

    private func isReadable(_ type: String, in schema: Schema, creator: String) -> Bool {
        guard let type = schema.type(named: type) else { return false }
        let isCreator = request.caller.user == creator
        return Permissions(of: request.caller, in: type, of: request.key, isCreator: isCreator).contains(.read)
    }

    /// Whether an administrator acts as the user: encrypted values stay sealed, and are not written.
    private var isActing: Bool { request.requester.admitted.isActing }

    private func outcome(_ outcome: ItemOutcome, at position: Int, _ answer: Answer) -> Outcome {
        let name = answer.plan.changes[position].recordName
        switch outcome {
        case .deleted: return .deleted
        case .failed(let error, let serverRecord):
            auditDenial(error)
            // A record that cannot be opened does not make the conflict another one.
            let opened = serverRecord.flatMap { record in
                isActing ? record : try? service.node.vault.opened(record, in: answer.zone)
            }
            return .failed(error, serverRecord: opened)
        case .saved(let saved):
            do throws(ServiceError) {
                let merged = try saved.mergedFields.map { fields throws(ServiceError) in
                    isActing ? fields : try service.node.vault.opened(fields, of: name, in: answer.zone)
                }
                return .saved(
                    Record(
                        name: name, type: saved.recordType, changeTag: saved.changeTag, created: saved.created,
                        modified: saved.modified, fields: merged ?? answer.plan.plainFields[position]),
                    isReadable: isReadable(saved.recordType, in: answer.schema, creator: saved.created.user))
            } catch {
                return .failed(
                    ServiceError(
                        error.code, "the record was saved, but cannot be shown: \(error.reason)",
                        retryAfterSeconds: error.retryAfterSeconds))
            }
        }
    }
}

extension Fields {
    /// What is left of changes: the fields that were given a value.
    fileprivate init(_ changes: [RecordChange.FieldChange]) {
        self.init(changes.compactMap { change in change.value.map { Field(name: change.name, value: $0) } })
    }
}

extension RecordOperation.Kind {
    fileprivate var changeKind: RecordChange.Kind {
        switch self {
        case .create: .create
        case .update: .update
        case .forceUpdate: .forceUpdate
        case .replace: .replace
        case .forceReplace: .forceReplace
        case .delete: .delete
        case .forceDelete: .forceDelete
        }
    }
}
