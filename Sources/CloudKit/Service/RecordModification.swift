import RecordModel

struct ModifyCall: Sendable {
    var saves: [CKRecord]
    var deletes: [CKRecord.ID]
    var policy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged
    var isAtomic = true
}

extension DatabaseService {
    /// Saves and deletes records, one zone at a time, once the files of their assets were sent. Each saved instance
    /// takes over the server's state.
    /// - Parameters:
    ///   - progress: hears how much of each record's files was sent, by its place among the saves.
    ///   - deliver: gets the results of each request as soon as they are known.
    /// - Throws: if the whole call failed and nothing was delivered. After a delivery, each remaining item gets the
    ///   error.
    func modify(
        _ call: ModifyCall, progress: TransferProgress? = nil, deliver: ([ModifyResult]) async -> Void
    ) async throws(CKError) {
        var modification = RecordModification(call, of: self)
        try await modification.run(progress, deliver)
    }
}

private struct RecordModification {
    private let service: DatabaseService
    private let call: ModifyCall
    /// The records to save, as they are sent.
    private var snapshots: [RecordSnapshot]

    init(_ call: ModifyCall, of service: DatabaseService) {
        self.service = service
        self.call = call
        snapshots = call.saves.map { $0.snapshot() }
    }

    mutating func run(_ progress: TransferProgress?, _ deliver: ([ModifyResult]) async -> Void) async throws(CKError) {
        let failures = try await sendFiles(progress)
        let (operations, refused) = operations(failures)
        let plan = try BatchPlan(operations, isAtomic: call.isAtomic, isPublic: isPublic)
        if !refused.isEmpty { await deliver(refused) }
        try await send(plan, hasDelivered: !refused.isEmpty, deliver)
    }

    private var isPublic: Bool { service.scope == .public }

    /// Sends the files of records.
    /// - Returns: why records cannot be saved, by their place.
    private mutating func sendFiles(_ progress: TransferProgress?) async throws(CKError) -> [Int: CKError] {
        let before = snapshots
        service.keys?.knownReceipts()?.apply(to: &snapshots, in: service.scope)
        var uploads = AssetUploadPlan(scope: service.scope)
        var failures: [Int: CKError] = [:]
        for (place, snapshot) in snapshots.enumerated() {
            do throws(CKError) {
                if snapshot.type == CKRecord.SystemType.share { throw .notBuilt("sharing") }
                try snapshot.validate()
            } catch {
                failures[place] = error
                continue
            }
            guard snapshot.values.contains(where: { $0.value.hasAsset }) else { continue }
            let form = SaveForm(snapshot, call.policy)
            uploads.add(snapshot, at: place, keys: form.keys, isUpdate: form.kind == "update")
        }
        try BatchPlan.check(snapshots.map(\.id) + call.deletes)
        if uploads.isEmpty { return failures.merging(uploads.failures) { first, _ in first } }
        let unsent = try await AssetSender(service: service, progress: progress).send(uploads, for: &snapshots)
        service.keepReceipts?(AssetReceipts(of: snapshots, before: before, in: service.scope))
        return failures.merging(unsent) { first, _ in first }
    }

    private func send(
        _ plan: BatchPlan, hasDelivered: Bool, _ deliver: ([ModifyResult]) async -> Void
    ) async throws(CKError) {
        var hasDelivered = hasDelivered
        var failure: CKError?
        var requests = plan.requests[...]
        while let request = requests.popFirst() {
            var results: [ModifyResult]
            if let failure {
                results = request.operations.map { $0.failed(failure) }
            } else {
                do throws(CKError) {
                    try checkCancellation()
                    let answer = try await service.write("records/modify", request.body)
                    results = try await self.results(of: request, answer)
                } catch {
                    if let halves = request.halves(after: error) {
                        requests = halves + requests
                        continue
                    }
                    if error.isOfWholeRequest {
                        guard hasDelivered else { throw error }
                        failure = error
                    }
                    results = request.operations.map { $0.failed(error) }
                }
            }
            await deliver(results)
            hasDelivered = true
        }
    }

    /// What to send, and the results of what is not sent: records that cannot be sent, or whose files could not, and
    /// what was to be done together with them.
    /// - Parameter failures: by the place of the record among the saves.
    private func operations(_ failures: [Int: CKError]) -> (sent: [BatchPlan.Operation], refused: [ModifyResult]) {
        let spoilt = Set(failures.keys.map { snapshots[$0].id.zoneID }).filter {
            BatchPlan.isWhole(call.isAtomic, $0, isPublic: isPublic)
        }
        let batchError = CKError(
            .batchRequestFailed,
            reason: "nothing was done: another record of the batch, or an asset of one, could not be sent")
        var sent: [BatchPlan.Operation] = []
        var refused: [ModifyResult] = []
        for (place, snapshot) in snapshots.enumerated() {
            if let error = failures[place] ?? (spoilt.contains(snapshot.id.zoneID) ? batchError : nil) {
                refused.append(.saved(snapshot.id, .failure(error)))
            } else {
                sent.append(BatchPlan.Operation(saving: snapshot, at: place, call.policy))
            }
        }
        for id in call.deletes {
            guard !spoilt.contains(id.zoneID) else {
                refused.append(.deleted(id, .failure(batchError)))
                continue
            }
            sent.append(BatchPlan.Operation(deleting: id))
        }
        return (sent, refused)
    }

    private func results(
        of request: BatchPlan.Request, _ answer: JSONValue
    ) async throws(CKError) -> [ModifyResult] {
        let members = try service.members(
            "records", of: answer, count: request.operations.count, "record for each operation")
        let (mapping, reader) = (service.mapping, RecordReader(zone: request.zone, scope: service.scope))
        // The saved state is taken over before anything else can fail.
        var results: [ModifyResult] = zip(request.operations, members).map { operation, json in
            if let error = mapping.item(json) { return operation.failed(error) }
            guard case .save(let place) = operation.kind else { return .deleted(operation.id, .success(())) }
            return .saved(operation.id, Result { try saved(json, reader, at: place) })
        }
        let conflicts = results.indices.filter { place in
            guard case .saved(_, .failure(let error as CKError)) = results[place] else { return false }
            return error.code == .serverRecordChanged
        }
        let fetched = await records(
            of: conflicts.filter { members[$0]["serverRecord"] == nil }.map { request.operations[$0].id }, request.zone)
        for place in conflicts {
            let operation = request.operations[place]
            guard case .save(let number) = operation.kind else { continue }
            let server = members[place]["serverRecord"].flatMap { try? reader.record($0) } ?? fetched[operation.id]
            results[place] = operation.failed(
                conflict(mapping.details(ofItem: members[place]), call.saves[number], server))
        }
        return results
    }

    /// The record of a place among those to save, once it has taken over what the server has.
    private func saved(_ json: JSONValue, _ reader: RecordReader, at place: Int) throws(CKError) -> CKRecord {
        let (record, sent) = (call.saves[place], snapshots[place])
        let part = sent.base == nil ? nil : SaveForm(sent, call.policy).part
        var state = try reader.state(json)
        // The answer has no files, and those that are here are still the record's.
        state.keepFiles(of: sent.values, sent.base?.values ?? [:])
        record.saved(as: state, sent: sent, part: part)
        return record
    }

    private func conflict(_ details: CKErrorDetails, _ record: CKRecord, _ server: CKRecord?) -> CKError {
        var details = details
        details.serverRecord = server
        details.clientRecord = record
        details.ancestorRecord = record.ancestor()
        return CKError(
            .serverRecordChanged, reason: details.serverMessage ?? "the record was changed", details: details)
    }

    /// Looks up the records of conflicts that the server left out of an answer that was too large. If that fails, the
    /// conflict has no server record.
    private func records(of ids: [CKRecord.ID], _ zone: CKRecordZone.ID) async -> [CKRecord.ID: CKRecord] {
        guard !ids.isEmpty, let results = try? await service.lookup(ids, in: zone, desiredKeys: nil) else { return [:] }
        var found: [CKRecord.ID: CKRecord] = [:]
        for (id, result) in results { found[id] = try? result.get() }
        return found
    }
}

/// How a record is sent. One that the server never had is created, unless the policy overwrites existing records.
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

    var part: SentPart { SentPart(keys: Set(keys), hasParent: hasParent) }
}

/// Divides the saves and deletions of one call into requests. It does no networking.
///
/// A request is for one zone, holds at most 200 operations and fits the server's body. Operations that are atomic
/// together go in one request, or the call fails.
struct BatchPlan: Sendable {
    /// One operation, as JSON for records/modify.
    struct Operation: Sendable {
        var id: CKRecord.ID
        var kind: Kind
        var json: [UInt8]

        /// The result where it failed.
        func failed(_ error: CKError) -> ModifyResult {
            kind == .delete ? .deleted(id, .failure(error)) : .saved(id, .failure(error))
        }
    }

    /// What an operation does, with the place of its record among those to save.
    enum Kind: Sendable, Equatable {
        case save(Int)
        case delete
    }

    struct Request: Sendable {
        var zone: CKRecordZone.ID
        var isAtomic: Bool
        var operations: [Operation]

        /// Two requests in the place of this one, where one operation may be what all were refused for. Nil where it is
        /// known to be that one, or they belong together.
        func halves(after error: CKError) -> ArraySlice<Request>? {
            guard !isAtomic, operations.count > 1, error.code == .invalidArguments || error.code == .limitExceeded
            else { return nil }
            let half = operations.count / 2
            return [operations[..<half], operations[half...]].map {
                Request(zone: zone, isAtomic: false, operations: Array($0))
            }[...]
        }

        var body: [UInt8] {
            var writer = JSONWriter(capacity: operations.reduce(256) { $0 + $1.json.count + 1 })
            writer.object { writer in
                writer.member("zoneID", zone)
                writer.member("atomic", isAtomic)
                writer.member("operations", each: operations) { $0.raw($1.json) }
            }
            return writer.bytes
        }
    }

    struct Room {
        private var count = 0
        private var bytes = 0

        /// Takes the JSON of another operation, unless there is no room for it. The first one always goes in: where it
        /// is too large for any request, the server refuses it.
        mutating func take(bytes more: Int) -> Bool {
            let isFull = count == Limits.operationsMax || bytes + more + 1 > operationsBytesMax
            if isFull, count > 0 { return false }
            count += 1
            bytes += more + 1
            return true
        }
    }

    /// The requests, in the order in which they are sent.
    private(set) var requests: [Request] = []

    /// The most operations of one call, as in CloudKit.
    static let itemsMax = 400
    /// The most bytes of a request's operations, without those around them.
    static let operationsBytesMax = Limits.requestBodyBytesMax - 4_096

    /// - Parameters:
    ///   - operations: in the order of the call; zones may be mixed.
    ///   - isAtomic: whether each custom zone's operations are atomic.
    ///   - isPublic: whether it is the public database, which has no such zones.
    /// - Throws: `limitExceeded` where it is too much, `invalidArguments` where a record occurs twice.
    init(_ operations: [Operation], isAtomic: Bool, isPublic: Bool) throws(CKError) {
        try Self.check(operations.map(\.id))
        for (zone, operations) in operations.grouped(by: \.id.zoneID) {
            let isWhole = Self.isWhole(isAtomic, zone, isPublic: isPublic)
            let parts = Self.parts(operations)
            if isWhole, parts.count > 1 { throw Self.tooMuch(operations, in: zone) }
            requests += parts.map { Request(zone: zone, isAtomic: isWhole, operations: $0) }
        }
    }

    /// Checks the number of records of a call, and that none occurs twice.
    /// - Throws: as `init`.
    static func check(_ ids: [CKRecord.ID]) throws(CKError) {
        guard ids.count <= itemsMax else {
            throw CKError(
                .limitExceeded,
                reason:
                    "\(ids.count) records to save and delete, at most \(itemsMax) in one call: send them in several")
        }
        var known: Set<CKRecord.ID> = []
        for id in ids where !known.insert(id).inserted {
            throw CKError(
                .invalidArguments, reason: "the record '\(id.recordName)' is to be saved or deleted twice in one call")
        }
    }

    /// Only custom zones have what is done wholly or not at all.
    static func isWhole(_ isAtomic: Bool, _ zone: CKRecordZone.ID, isPublic: Bool) -> Bool {
        isAtomic && !isPublic && zone.zoneName != CKRecordZone.ID.defaultZoneName
    }

    /// Groups consecutive operations, as many as a request takes.
    private static func parts(_ operations: [Operation]) -> [[Operation]] {
        var parts: [[Operation]] = []
        var rest = operations[...]
        while !rest.isEmpty {
            var room = Room()
            let part = rest.prefix { room.take(bytes: $0.json.count) }
            parts.append(Array(part))
            rest = rest.dropFirst(part.count)
        }
        return parts
    }

    private static func tooMuch(_ operations: [Operation], in zone: CKRecordZone.ID) -> CKError {
        let bytes = operations.reduce(0) { $0 + $1.json.count }
        let what =
            operations.count > Limits.operationsMax
            ? "\(operations.count) records, at most \(Limits.operationsMax)"
            : "\(bytes) bytes of records, at most \(operationsBytesMax)"
        return CKError(
            .limitExceeded,
            reason:
                "\(what) can be saved and deleted atomically in the zone '\(zone.zoneName)': send fewer at a time, or "
                + "not atomically")
    }
}

extension BatchPlan.Operation {
    /// Saves a record as it is.
    /// - Parameter place: that of the record among those to save.
    init(saving record: RecordSnapshot, at place: Int, _ policy: CKModifyRecordsOperation.RecordSavePolicy) {
        let form = SaveForm(record, policy)
        var writer = JSONWriter(capacity: 512)
        writer.saving(record, form.kind, keys: form.keys, withParent: form.hasParent)
        self.init(id: record.id, kind: .save(place), json: writer.bytes)
    }

    init(deleting id: CKRecord.ID) {
        var writer = JSONWriter(capacity: 128)
        writer.deleting(id)
        self.init(id: id, kind: .delete, json: writer.bytes)
    }
}

extension BatchPlan.Room {
    /// About what the receipt of an asset takes, which is not there before its file was sent.
    private static let receiptBytes = 1_024

    /// Takes a record to save whose files were not sent yet, unless there is no room for it.
    mutating func take(saving record: CKRecord) -> Bool {
        let snapshot = record.snapshot()
        let assets = snapshot.values.values.reduce(0) { $0 + $1.assets.count }
        let operation = BatchPlan.Operation(saving: snapshot, at: 0, .ifServerRecordUnchanged)
        return take(bytes: operation.json.count + assets * Self.receiptBytes)
    }

    /// Takes a record to delete, unless there is no room for it.
    mutating func take(deleting id: CKRecord.ID) -> Bool {
        take(bytes: BatchPlan.Operation(deleting: id).json.count)
    }
}
