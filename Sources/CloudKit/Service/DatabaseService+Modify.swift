import RecordModel

/// What became of one record of a call that saves and deletes.
enum ModifyResult: Sendable {
    case saved(CKRecord.ID, Result<CKRecord, any Error>)
    case deleted(CKRecord.ID, Result<Void, any Error>)
}

/// What is to be saved and deleted.
struct ModifyCall: Sendable {
    var saves: [CKRecord]
    var deletes: [CKRecord.ID]
    var policy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged
    var isAtomic = true
}

extension DatabaseService {
    /// Saves and deletes, a zone at a time; each saved instance takes the server's state over.
    /// - Parameter deliver: gets the results of each request as soon as they are known.
    /// - Throws: where the whole call failed and nothing was delivered. Once something was, what is left gets the error
    ///   item by item.
    func modify(_ call: ModifyCall, deliver: ([ModifyResult]) async -> Void) async throws(CKError) {
        let snapshots = call.saves.map { $0.snapshot() }
        var operations: [BatchPlan.Operation] = []
        for (place, snapshot) in snapshots.enumerated() {
            try Self.refuseWhatIsNotBuilt(call.saves[place], snapshot)
            try snapshot.validate()
            operations.append(Self.operation(saving: snapshot, place, call.policy))
        }
        for id in call.deletes {
            var writer = JSONWriter(capacity: 128)
            writer.deleting(id)
            operations.append(BatchPlan.Operation(id: id, kind: .delete, json: writer.bytes))
        }
        let plan = try BatchPlan(operations, isAtomic: call.isAtomic, isPublic: scope == .public)
        var hasDelivered = false
        var failure: CKError?
        for request in plan.requests {
            var results: [ModifyResult]
            if let failure {
                results = request.operations.map { Self.result($0, .failure(failure)) }
            } else {
                do throws(CKError) {
                    try checkCancellation()
                    let answer = try await write("records/modify", request.body)
                    results = try await self.results(of: request, answer, call, snapshots)
                } catch {
                    if error.isOfWholeRequest {
                        guard hasDelivered else { throw error }
                        failure = error
                    }
                    results = request.operations.map { Self.result($0, .failure(error)) }
                }
            }
            await deliver(results)
            hasDelivered = true
        }
    }

    private static func refuseWhatIsNotBuilt(_ record: CKRecord, _ snapshot: RecordSnapshot) throws(CKError) {
        if record.recordType == CKRecord.SystemType.share { throw .notBuilt("sharing") }
        guard snapshot.values.contains(where: { $0.value.hasAsset }) else { return }
        for key in snapshot.values.keys.sorted() where snapshot.values[key]?.hasAsset == true {
            throw CKError(
                .serverRejectedRequest,
                reason:
                    "the field \"\(key)\" of the record \"\(record.recordID.recordName)\" holds an asset: the server does "
                    + "not have assets yet")
        }
    }

    private static func operation(
        saving record: RecordSnapshot, _ place: Int, _ policy: CKModifyRecordsOperation.RecordSavePolicy
    ) -> BatchPlan.Operation {
        let form = SaveForm(record, policy)
        var writer = JSONWriter(capacity: 512)
        writer.saving(record, form.kind, keys: form.keys, withParent: form.hasParent)
        return BatchPlan.Operation(id: record.id, kind: .save(place), json: writer.bytes)
    }

    /// How a record is sent: a record that the server never had is created, unless whatever there is is to be written
    /// over.
    private struct SaveForm {
        var kind: String
        var keys: [String]
        var hasParent: Bool

        init(_ record: RecordSnapshot, _ policy: CKModifyRecordsOperation.RecordSavePolicy) {
            kind =
                policy == .ifServerRecordUnchanged
                ? record.system.changeTag == nil ? "create" : "update" : "forceUpdate"
            keys = kind == "create" ? record.values.keys.sorted() : record.changedKeys
            if policy == .allKeys { keys = Set(keys).union(record.values.keys).sorted() }
            hasParent =
                record.isParentChanged || record.system.parent != nil && kind == "create"
                || policy == .allKeys && record.system.parent != nil
        }

        /// What of the record goes out.
        var part: SentPart { SentPart(keys: Set(keys), hasParent: hasParent) }
    }

    private enum Outcome {
        case saved(CKRecord)
        case deleted
        case failure(CKError)
    }

    private static func result(_ operation: BatchPlan.Operation, _ outcome: Outcome) -> ModifyResult {
        switch (operation.kind, outcome) {
        case (.save, .saved(let record)): .saved(operation.id, .success(record))
        case (.save, .failure(let error)): .saved(operation.id, .failure(error))
        case (.save, .deleted): .saved(operation.id, .failure(CKError.unreadable("record")))
        case (.delete, .failure(let error)): .deleted(operation.id, .failure(error))
        case (.delete, _): .deleted(operation.id, .success(()))
        }
    }

    private func results(
        of request: BatchPlan.Request, _ answer: JSONValue, _ call: ModifyCall, _ snapshots: [RecordSnapshot]
    ) async throws(CKError) -> [ModifyResult] {
        let members = try members("records", of: answer)
        guard members.count == request.operations.count else { throw .unreadable("record for each operation") }
        let (mapping, reader) = (mapping, RecordReader(zone: request.zone))
        var outcomes: [Outcome] = []
        outcomes.reserveCapacity(members.count)
        // What was saved is taken over before anything else can go wrong.
        for (operation, json) in zip(request.operations, members) {
            if let error = mapping.item(json) {
                outcomes.append(.failure(error))
            } else if case .save(let place) = operation.kind {
                outcomes.append(Self.outcome(json, reader, call.saves[place], snapshots[place], call.policy))
            } else {
                outcomes.append(.deleted)
            }
        }
        let fetched = await conflicting(members, outcomes, request)
        var results: [ModifyResult] = []
        results.reserveCapacity(members.count)
        for (place, operation) in request.operations.enumerated() {
            guard case .failure(let error) = outcomes[place], error.code == .serverRecordChanged,
                case .save(let number) = operation.kind
            else {
                results.append(Self.result(operation, outcomes[place]))
                continue
            }
            let server = members[place]["serverRecord"].flatMap { try? reader.record($0) } ?? fetched[operation.id]
            let conflict = conflict(mapping.details(ofItem: members[place]), call.saves[number], server)
            results.append(Self.result(operation, .failure(conflict)))
        }
        return results
    }

    private static func outcome(
        _ json: JSONValue, _ reader: RecordReader, _ record: CKRecord, _ sent: RecordSnapshot,
        _ policy: CKModifyRecordsOperation.RecordSavePolicy
    ) -> Outcome {
        do throws(CKError) {
            let part = sent.base == nil ? nil : SaveForm(sent, policy).part
            record.saved(as: try reader.state(json), sent: sent, part: part)
            return .saved(record)
        } catch {
            return .failure(error)
        }
    }

    /// The error of a save that lost against another.
    private func conflict(_ details: CKErrorDetails, _ record: CKRecord, _ server: CKRecord?) -> CKError {
        var details = details
        details.serverRecord = server
        details.clientRecord = record
        details.ancestorRecord = record.ancestor()
        return CKError(
            .serverRecordChanged, reason: details.serverMessage ?? "the record was changed", details: details)
    }

    /// Looks up the records of conflicts that the server left out of its answer, because of its size. Where that fails,
    /// the conflict goes without.
    private func conflicting(
        _ members: [JSONValue], _ outcomes: [Outcome], _ request: BatchPlan.Request
    ) async -> [CKRecord.ID: CKRecord] {
        var ids: [CKRecord.ID] = []
        for (place, operation) in request.operations.enumerated() {
            guard case .failure(let error) = outcomes[place], error.code == .serverRecordChanged,
                members[place]["serverRecord"] == nil
            else { continue }
            ids.append(operation.id)
        }
        guard !ids.isEmpty, let results = try? await lookup(ids, in: request.zone, desiredKeys: nil) else { return [:] }
        var found: [CKRecord.ID: CKRecord] = [:]
        for (id, result) in results { found[id] = try? result.get() }
        return found
    }
}
