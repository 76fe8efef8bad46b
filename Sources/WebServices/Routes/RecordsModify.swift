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
    }

    func respond(uuid: String) async throws(RequestFailure) -> Reply {
        let form = try request.form(ModifyRecordsRequest.self)
        let zone = try request.zone(form.zoneID)
        let isAtomic = form.isAtomic && zone.isAtomic
        let key = try request.idempotencyKey.map { text throws(RequestFailure) in
            try UUIDv7.parse(text, now: context.now)
        }
        let named = form.operations.enumerated().map { number, operation in
            (operation, operation.recordName ?? newName(number, key: key))
        }
        let group = context.node.map.group(of: zone)
        for _ in 0..<8 {
            let schema = context.schema(request.schemaKey)
            let plan = self.plan(named, schema: schema.schema)
            if plan.changes.count < plan.items.count,
                try await context.isOutdated(schema, request.schemaKey)
            {
                continue
            }
            if plan.changes.isEmpty || isAtomic && plan.changes.count < plan.items.count {
                return reply(to: form, named, plan, outcomes: nil, isAtomic: isAtomic, uuid: uuid)
            }
            let command = ModifyRecords(
                zone: zone, schemaVersion: schema.version, caller: request.caller, time: context.now,
                isAtomic: isAtomic,
                idempotency: key.map { idempotency($0, plan) }, operations: plan.changes)
            let answer = try await context.submit(.record(.modifyRecords(command)), to: group, by: request.deadline)
            switch try outcome(answer) {
            case .records(let outcomes) where outcomes.count == plan.changes.count:
                return reply(to: form, named, plan, outcomes: outcomes, isAtomic: false, uuid: uuid)
            case .atomicFailure(let outcomes) where outcomes.count == plan.changes.count:
                return reply(to: form, named, plan, outcomes: outcomes, isAtomic: true, uuid: uuid)
            case .needsSchema(let installed):
                try await context.reconcile(request.schemaKey, installed: installed, on: group, by: request.deadline)
            case .refused(let error): throw RequestFailure(error)
            case .zone, .schemaInstalled, .records, .atomicFailure:
                throw RequestFailure(.internalError, "the shard gave an answer to another question")
            }
        }
        throw RequestFailure(
            ServiceError(
                .tryAgainLater, "nothing was done: the schema kept changing meanwhile", retryAfterSeconds: 1))
    }

    private func outcome(_ bytes: [UInt8]) throws(RequestFailure) -> RecordOutcome {
        do throws(ClusterError) {
            return try WebServices.decoded(bytes)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// The name of a record that came without one. Under an idempotency key it is made of that, so that a repetition of the
    /// request means the same records.
    private func newName(_ number: Int, key: [UInt8]?) -> String {
        guard let key else { return UUIDv7.generate(now: context.now) }
        let digest = SHA256.hash(data: key + Array("/record/\(number)".utf8))
        return UUIDv7.text(of: Array(key.prefix(6)) + Array(digest.prefix(10)))
    }

    /// What the shard remembers the request by: its body, and which of its operations were sent. Under another schema another
    /// part may be, and then the remembered outcomes are not those of this request.
    private func idempotency(_ key: [UInt8], _ plan: Plan) -> IdempotencyKey {
        var hasher = SHA256()
        hasher.update(data: request.body)
        hasher.update(data: plan.items.map { if case .sent = $0 { 1 } else { 0 } })
        return IdempotencyKey(
            key: key, bodyHash: Array(hasher.finalize()), caller: request.caller.user ?? Caller.anonymousName)
    }

    private func plan(_ operations: [(RecordOperation, String)], schema: Schema) -> Plan {
        var plan = Plan()
        for (operation, name) in operations {
            do throws(ServiceError) {
                let change = try change(operation, name: name, schema: schema)
                plan.items.append(.sent(plan.changes.count))
                plan.changes.append(change)
            } catch {
                plan.items.append(.failed(error))
            }
        }
        return plan
    }

    private func change(
        _ operation: RecordOperation, name: String, schema: Schema
    ) throws(ServiceError) -> RecordChange {
        var change = RecordChange(
            operation.kind.changeKind, name, type: operation.recordType,
            changeTag: operation.changeTag.map { ChangeTag($0) ?? ChangeTag(incarnation: 0, sequence: 0) })
        guard !operation.kind.isDelete else { return change }
        guard let typeName = operation.recordType else {
            guard operation.fields.isEmpty else {
                throw ServiceError(.badRequest, "recordType is missing: without it the fields cannot be checked")
            }
            return change
        }
        guard let type = schema.type(named: typeName) else {
            throw ServiceError(
                .badRequest,
                "record type not found: \(typeName). Add it to the schema with `zonekeeper schema import` (types are not made "
                    + "just in time yet)")
        }
        for field in operation.fields {
            guard let definition = type.field(named: field.name), !definition.isSystem else {
                throw ServiceError(
                    .badRequest,
                    "field '\(field.name)' is not in record type \(typeName). Add it to the schema with `zonekeeper schema import`"
                )
            }
            let value: FieldValue? =
                if let input = field.value {
                    try input.resolve(field: field.name, definition: definition)
                } else { nil }
            change.fields.append(RecordChange.FieldChange(name: field.name, value: value))
        }
        return change
    }
}

extension RecordsModify {
    private func reply(
        to form: ModifyRecordsRequest, _ operations: [(RecordOperation, String)], _ plan: Plan,
        outcomes: [ItemOutcome]?,
        isAtomic: Bool, uuid: String
    ) -> Reply {
        var writer = JSONWriter(capacity: 512 * operations.count)
        writer.beginArray()
        for (item, (operation, name)) in zip(plan.items, operations) {
            switch item {
            case .failed(let error): writer.recordError(recordName: name, error)
            case .sent(let position):
                if let outcomes {
                    write(outcomes[position], operation, plan.changes[position], form: form, to: &writer)
                } else {
                    writer.recordError(
                        recordName: name,
                        ServiceError(.atomicError, "another operation of the batch failed; nothing was saved"))
                }
            }
        }
        writer.endArray()
        guard isAtomic else {
            return Reply {
                $0.key("records"); $0.raw(writer.bytes)
            }
        }
        let error = ServiceError(
            .atomicError, "an operation of the atomic batch failed, so nothing was saved; see records")
        return Reply(error, uuid: uuid) {
            $0.key("records"); $0.raw(writer.bytes)
        }
    }

    private func write(
        _ outcome: ItemOutcome, _ operation: RecordOperation, _ change: RecordChange, form: ModifyRecordsRequest,
        to writer: inout JSONWriter
    ) {
        switch outcome {
        case .deleted: writer.tombstone(recordName: change.recordName)
        case .failed(let error, _): writer.recordError(recordName: change.recordName, error)
        case .saved(let saved):
            let fields = saved.mergedFields ?? Fields(change.fields)
            writer.record(
                Record(
                    name: change.recordName, type: saved.recordType, changeTag: saved.changeTag, created: saved.created,
                    modified: saved.modified, fields: fields),
                desiredKeys: operation.desiredKeys ?? form.desiredKeys,
                numbersAsStrings: operation.numbersAsStrings ?? form.numbersAsStrings)
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
