import Authorization
import Cluster
import Crypto
import Directory
import Foundation
import RaftCore
import RecordModel
import RecordStore

/// `POST records/modify`: up to 200 operations on records of one zone.
struct RecordsModify {
    var context: WebContext
    var request: DatabaseRequest

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
    }

    func respond(uuid: String) async throws(RequestFailure) -> Reply {
        let form = try request.form(ModifyRecordsRequest.self)
        let zone = try request.zone(form.zoneID)
        let isAtomic = form.isAtomic && zone.isAtomic
        let key = try request.idempotencyKey.map { text throws(RequestFailure) in
            try UUIDv7.parse(text, now: context.now)
        }
        var named = form.operations.enumerated().map { number, operation in
            (operation, operation.recordName ?? newName(number, key: key))
        }
        let hidden = try await addTypes(to: &named, in: zone)
        try await context.ensureUserRecord(of: request, among: named.map(\.1))
        let group = context.node.map.group(of: zone)
        if form.operations.contains(where: { !$0.kind.isDelete }) {
            try await context.requireTransfer(for: request.key, by: request.deadline)
        }
        var isOverQuota = false
        for _ in 0..<16 {
            let schema = context.schema(request.schemaKey)
            if try await context.extend(schema, by: named.map(\.0), for: request) { continue }
            let plan = try await self.plan(named, hidden: hidden, schema: schema.schema, zone: zone)
            if plan.changes.count < plan.items.count,
                try await context.isOutdated(schema, request.schemaKey)
            {
                continue
            }
            let answer = Answer(form: form, operations: named, plan: plan, zone: zone)
            if plan.changes.count < plan.items.count, let key,
                let reply = try await earlierReply(answer, key: key, uuid: uuid)
            {
                return reply
            }
            if plan.changes.isEmpty || isAtomic && plan.changes.count < plan.items.count {
                return try await reply(answer, isAtomic: isAtomic, uuid: uuid)
            }
            let (cap, epoch) = context.quota(of: request.key)
            let terms = QuotaTerms(epoch: epoch, isFinal: isOverQuota, limit: cap)
            let command = ModifyRecords(
                zone: zone, schemaVersion: schema.version, caller: request.caller, time: context.now,
                isAtomic: isAtomic,
                idempotency: key.map(idempotency), quota: terms, operations: plan.changes)
            // What can only be refused is not logged.
            if let refusal = command.refusal { throw RequestFailure(refusal) }
            let bytes = try await context.submit(.record(.modifyRecords(command)), to: group, by: request.deadline)
            switch try unpacked(bytes, as: RecordOutcome.self) {
            case .needsSchema(let installed):
                try await context.reconcile(request.schemaKey, installed: installed, on: group, by: request.deadline)
            case .needsAllotment(let need):
                isOverQuota = try await !context.allot(
                    need, under: terms, of: request.key, to: group, by: request.deadline)
            case let outcome: return try await reply(answer, outcome, uuid: uuid)
            }
        }
        throw RequestFailure(
            ServiceError(
                .tryAgainLater, "nothing was done: the schema or the quota kept changing meanwhile",
                retryAfterSeconds: 1))
    }

    /// Looks up the types of records whose operations set fields without naming a type: what a value means depends on it.
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
        let answer = try await context.readUnderSchema(
            request.schemaKey, from: context.node.map.group(of: zone), by: request.deadline
        ) { [operations] schema in
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

    /// The name of a record that came without one. Under an idempotency key it is made of that, so that a repetition of the
    /// request means the same records.
    private func newName(_ number: Int, key: [UInt8]?) -> String {
        guard let key else { return UUIDv7.generate(now: context.now) }
        let digest = SHA256.hash(data: key + Array("/record/\(number)".utf8))
        return UUIDv7.text(of: Array(key.prefix(6)) + Array(digest.prefix(10)))
    }

    /// What the shard remembers the request by.
    private func idempotency(_ key: [UInt8]) -> IdempotencyKey {
        IdempotencyKey(
            key: key, bodyHash: Array(SHA256.hash(data: request.body)),
            caller: request.caller.user ?? Caller.anonymousName)
    }

    private func plan(
        _ operations: [(RecordOperation, String)], hidden: Set<Int>, schema: Schema, zone: ZoneKey
    ) async throws(RequestFailure) -> Plan {
        var plan = Plan()
        for (position, (operation, name)) in operations.enumerated() {
            guard !hidden.contains(position) else {
                plan.items.append(.failed(Self.hiddenType))
                continue
            }
            var change: RecordChange
            do throws(ServiceError) {
                change = try self.change(operation, name: name, schema: schema, zone: request.zoneID(named: zone.name))
            } catch {
                plan.items.append(.failed(error))
                continue
            }
            let plainFields = Fields(change.fields)
            try await context.seal(&change, in: zone)
            let type = change.recordType.flatMap { schema.type(named: $0) }
            if let refusal = change.refusal(as: type, by: request.caller, in: zone) {
                plan.items.append(.failed(refusal))
                continue
            }
            plan.plainFields.append(plainFields)
            plan.items.append(.sent(plan.changes.count))
            plan.changes.append(change)
        }
        return plan
    }

    private static let hiddenType = ServiceError(
        .badRequest, "recordType is missing, and the caller may not read the record to learn it")

    private func change(
        _ operation: RecordOperation, name: String, schema: Schema, zone: ZoneID
    ) throws(ServiceError) -> RecordChange {
        var change = RecordChange(
            operation.kind.changeKind, name, type: operation.recordType,
            changeTag: operation.changeTag.map { ChangeTag($0) ?? ChangeTag(incarnation: 0, sequence: 0) })
        if operation.recordType == nil, !operation.kind.isDelete, !operation.fields.isEmpty {
            // The record was looked for, to learn its type.
            throw ServiceError(.notFound, "Record not found")
        }
        let place = RecordOperation.Place(
            container: request.key.container, environment: request.key.environment, scope: request.key.scope, zone: zone
        )
        do throws(ServiceError) {
            change.fields = try operation.values(in: schema, at: place).map {
                RecordChange.FieldChange(name: $0.name, value: $0.value)
            }
        } catch {
            guard error.code == .tryAgainLater, request.caller.user == nil else { throw error }
            throw ServiceError(
                .accessDenied,
                "types and fields are made just in time for signed-in users only: sign in, or add them with "
                    + "`zonekeeper schema import \(request.key.container)`")
        }
        return change
    }
}

extension RecordsModify {
    /// What the answer to a request is made of.
    private struct Answer {
        var form: ModifyRecordsRequest
        var operations: [(RecordOperation, String)]
        var plan: Plan
        var zone: ZoneKey
        /// One for each change; nil where nothing was sent.
        var outcomes: [ItemOutcome]?
    }

    /// The answer that a request got when it came first; nil where it did not come before. Asked where a part of it would not be
    /// sent now: the schema or the caller's rights may have changed since.
    private func earlierReply(
        _ answer: Answer, key: [UInt8], uuid: String
    ) async throws(RequestFailure) -> Reply? {
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
            zone: answer.zone, schemaVersion: 0, caller: request.caller, time: context.now,
            idempotency: idempotency(key), operations: known.plan.changes)
        let read = try await context.read(
            .earlierOutcome(command), from: context.node.map.group(of: answer.zone), by: request.deadline)
        guard case .found(let found) = read, !found.bytes.isEmpty else { return nil }
        return try await reply(known, try unpacked(found.bytes, as: RecordOutcome.self), uuid: uuid)
    }

    private func reply(
        _ answer: Answer, _ outcome: RecordOutcome, uuid: String
    ) async throws(RequestFailure) -> Reply {
        var answer = answer
        switch outcome {
        case .records(let outcomes) where outcomes.count == answer.plan.changes.count:
            answer.outcomes = outcomes
            return try await reply(answer, isAtomic: false, uuid: uuid)
        case .atomicFailure(let outcomes) where outcomes.count == answer.plan.changes.count:
            answer.outcomes = outcomes
            return try await reply(answer, isAtomic: true, uuid: uuid)
        case .refused(let error): throw RequestFailure(error)
        case .quota, .zone, .schemaInstalled, .maintained, .needsSchema, .needsAllotment, .records, .atomicFailure:
            throw RequestFailure(.internalError, "the shard gave an answer to another question")
        }
    }

    private func reply(_ answer: Answer, isAtomic: Bool, uuid: String) async throws(RequestFailure) -> Reply {
        // What was saved must not be hidden behind a token that cannot be read.
        let token =
            answer.outcomes == nil
            ? try await request.currentToken(of: answer.zone, in: context)
            : try? await request.currentToken(of: answer.zone, in: context)
        var writer = JSONWriter(capacity: 512 * answer.operations.count)
        writer.beginArray()
        for (item, (operation, name)) in zip(answer.plan.items, answer.operations) {
            switch item {
            case .failed(let error):
                auditDenial(error)
                writer.recordError(recordName: name, error)
            case .sent(let position):
                if let outcomes = answer.outcomes {
                    write(outcomes[position], at: position, operation, answer, to: &writer)
                } else {
                    writer.recordError(
                        recordName: name,
                        ServiceError(.atomicError, "another operation of the batch failed; nothing was saved"))
                }
            }
        }
        writer.endArray()
        func members(_ reply: inout JSONWriter) {
            reply.key("records")
            reply.raw(writer.bytes)
            if let token { reply.member("syncToken", token) }
        }
        guard isAtomic else { return Reply { members(&$0) } }
        let error = ServiceError(
            .atomicError, "an operation of the atomic batch failed, so nothing was saved; see records")
        return Reply(error, uuid: uuid) { members(&$0) }
    }

    private func auditDenial(_ error: ServiceError) {
        guard error.code == .accessDenied else { return }
        context.audit.refused(request.origin, action: "records/modify", subject: request.subject)
    }

    private func write(
        _ outcome: ItemOutcome, at position: Int, _ operation: RecordOperation, _ answer: Answer,
        to writer: inout JSONWriter
    ) {
        let name = answer.plan.changes[position].recordName
        switch outcome {
        case .deleted: writer.tombstone(recordName: name)
        case .failed(let error, let serverRecord):
            auditDenial(error)
            // A record that cannot be opened does not make the conflict another one.
            let opened = serverRecord.flatMap { record in try? context.node.vault.opened(record, in: answer.zone) }
            writer.recordError(
                recordName: name, error, serverRecord: opened,
                numbersAsStrings: operation.numbersAsStrings ?? answer.form.numbersAsStrings)
        case .saved(let saved):
            do throws(ServiceError) {
                let merged = try saved.mergedFields.map { fields throws(ServiceError) in
                    try context.node.vault.opened(fields, of: name, in: answer.zone)
                }
                writer.record(
                    Record(
                        name: name, type: saved.recordType, changeTag: saved.changeTag, created: saved.created,
                        modified: saved.modified, fields: merged ?? answer.plan.plainFields[position]),
                    desiredKeys: operation.desiredKeys ?? answer.form.desiredKeys,
                    numbersAsStrings: operation.numbersAsStrings ?? answer.form.numbersAsStrings)
            } catch {
                writer.recordError(
                    recordName: name,
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
