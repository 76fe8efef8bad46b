import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel

/// The work of one job: the query's pages one after another, each an operation as a client's is, and what is done with
/// their records.
///
/// It takes a place among the requests that the node works on for each step, and pauses after it as long as the step
/// took: so it has half of one request's place, and a cluster that is slow is asked less.
struct JobRun: Sendable {
    let service: RecordService
    /// As it began.
    let job: Job
    let right: JobRight
    /// Who began it, for the audit log.
    let origin: AuditOrigin
    let form: QueryRecordsRequest

    private var jobs: JobRunner { service.jobs }
    private var clock: any NodeClock { service.node.platform.clock }

    private static let pauseMilliseconds: ClosedRange<UInt64> = 10...1_000
    /// Before a step is tried again; doubled each time.
    private static let retryMilliseconds: UInt64 = 500
    private static let retryMillisecondsMax: UInt64 = 30_000

    /// Works until the last match, the first failure that does not pass, or the end that somebody asks for.
    func run() async {
        var outcome = AuditEvent.done
        do throws(RequestFailure) {
            try await work()
            end(.done)
        } catch {
            let isCancelled = !jobs.goesOn(job.id)
            outcome = isCancelled ? "cancelled" : "failed: \(error.error.code.rawValue)"
            end(isCancelled ? .cancelled : .failed, isCancelled ? nil : error)
        }
        guard let ended = jobs.job(job.id), !jobs.isStopped else { return }
        let what = "\(ended.records) of \(job.subject)\(ended.left > 0 ? ", \(ended.left) left" : "")"
        let origin = AuditOrigin(
            actor: origin.actor, requestID: origin.requestID, address: origin.address, time: service.now)
        // That it began is in the log already; a directory that cannot be written now keeps nothing from ending.
        try? await service.cluster.enter(
            DirectoryEntry(
                nil, events: [AuditEvent(origin: origin, action: "job.end", subject: what, outcome: outcome)]),
            by: service.deadline())
    }

    private func end(_ phase: Job.Phase, _ failure: RequestFailure? = nil) {
        let now = service.now
        jobs.change(job.id) { job in
            job.phase = phase
            job.ended = now
            job.waiting = ""
            if let error = failure?.error { job.problem = Job.Problem(code: error.code, reason: error.reason) }
        }
    }

    private func work() async throws(RequestFailure) {
        var form = form
        form.isZoneWide = false
        form.resultsLimit = Limits.recordsPerPageMax
        form.numbersAsStrings = true
        form.desiredKeys = job.kind == .export ? nil : []
        var export = try await beginExport()
        repeat {
            let began = clock.now
            let page = try await step { [form] request throws(RequestFailure) in
                try await RecordQueries(request).query(form)
            }
            try await pause(since: began)
            switch job.kind {
            case .count: jobs.change(job.id) { $0.records += UInt64(page.count) }
            case .export: try await export?.write(Self.records(of: page), for: self)
            case .delete: try await delete(Self.records(of: page))
            }
            form.continuationMarker = page.continuationMarker
        } while form.continuationMarker != nil
        try await export?.finish(for: self)
    }

    private static func records(of page: RecordQueries.Page) throws(RequestFailure) -> [JSONValue] {
        guard let records = try? JSONParser.parse(page.records).array else {
            throw RequestFailure(.internalError, "a shard's answer cannot be read: no array of records")
        }
        return records
    }

    // MARK: One step

    /// Does something as the job's administrator, again and again while the cluster cannot.
    /// - Throws: what does not pass, or lasts for longer than a job waits; whatever there is where the job is to end.
    private func step<Value: Sendable>(
        _ work: (DatabaseRequest) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        var (pause, waited) = (Self.retryMilliseconds, UInt64(0))
        while true {
            guard jobs.goesOn(job.id) else { throw .nothingDone("the job is to end") }
            do throws(RequestFailure) {
                let value = try await once(work)
                if waited > 0 { jobs.change(job.id) { $0.waiting = "" } }
                return value
            } catch {
                guard [.tryAgainLater, .throttled].contains(error.error.code), waited < JobLimits.patienceMilliseconds
                else { throw error }
                jobs.change(job.id) { $0.waiting = error.error.reason }
                try? await clock.sleep(milliseconds: pause)
                waited += pause
                pause = min(pause * 2, Self.retryMillisecondsMax)
            }
        }
    }

    private func once<Value: Sendable>(
        _ work: (DatabaseRequest) async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        let context = try await right.admitted(by: service, to: job, writes: job.kind == .delete)
        try await service.gate.takePlace(container: job.container, in: context.directory, on: service.node)
        defer { service.gate.leave(container: job.container) }
        return try await work(JobRight.request(of: job, by: context, origin, in: service))
    }

    /// Leaves the node to others for as long as a step took.
    private func pause(since began: MonotonicTime) async throws(RequestFailure) {
        let took = (clock.now.nanoseconds - began.nanoseconds) / 1_000_000
        let range = Self.pauseMilliseconds
        try? await clock.sleep(milliseconds: min(max(took, range.lowerBound), range.upperBound))
        guard jobs.goesOn(job.id) else { throw .nothingDone("the job is to end") }
    }
}

// Deleting.
extension JobRun {
    /// Deletes records as they were found: one that was changed since is left.
    private func delete(_ records: [JSONValue]) async throws(RequestFailure) {
        var rest = records[...]
        var atOnce = JobLimits.deletedAtOnceMax
        while !rest.isEmpty {
            let began = clock.now
            do throws(RequestFailure) {
                try await delete(batch: rest.prefix(atOnce))
                rest = rest.dropFirst(atOnce)
            } catch {
                // What the records have in indexes may be too much for one command.
                guard error.error.code == .badRequest, atOnce > 1 else { throw error }
                atOnce /= 2
            }
            try await pause(since: began)
        }
    }

    private func delete(batch: ArraySlice<JSONValue>) async throws(RequestFailure) {
        let operations = batch.map { record in
            let found = ["recordName", "recordChangeTag"].compactMap { key in
                record[key].map { JSONValue.Member(key, $0) }
            }
            return JSONValue.object([.init("operationType", .string("delete")), .init("record", .object(found))])
        }
        let body = JSONValue.object([
            .init("operations", .array(operations)),
            .init("zoneID", .object([.init("zoneName", .string(form.zoneID.name))])), .init("atomic", .bool(false)),
        ])
        let changes = try relay(ModifyRecordsRequest(json: body))
        // A try whose answer was lost is not done again under the same key, and its outcome is told.
        let identity = try RequestIdentity(service.newID().text, body: body.serialized(), in: service)
        let result = try await step { request throws(RequestFailure) in
            var request = request
            request.identity = identity
            return try await RecordModification(request).run(changes)
        }
        var (deleted, left, problem): (UInt64, UInt64, Job.Problem?) = (0, 0, nil)
        for (name, outcome) in result.items {
            switch outcome {
            case .deleted, .saved: deleted += 1
            // It went with a record that it referred to.
            case .failed(let error, _) where error.code == .notFound: break
            case .failed(let error, _):
                left += 1
                problem = problem ?? Job.Problem(code: error.code, reason: "\(name): \(error.reason)")
            }
        }
        jobs.change(job.id) { [deleted, left, problem] job in
            job.records += deleted
            job.left += left
            job.problem = job.problem ?? problem
        }
    }
}

// Exporting.
extension JobRun {
    /// A result while it is written.
    private struct Export {
        var text: ExportText
        let file: ScratchFile
        var bytes = 0

        mutating func write(_ records: [JSONValue], for run: JobRun) async throws(RequestFailure) {
            try await append(text.page(records), for: run)
            let bytes = UInt64(bytes)
            run.jobs.change(run.job.id) { job in
                job.records += UInt64(records.count)
                job.bytes = bytes
            }
        }

        mutating func finish(for run: JobRun) async throws(RequestFailure) {
            try await append(text.end, for: run)
            let bytes = UInt64(bytes)
            run.jobs.change(run.job.id) { $0.bytes = bytes }
        }

        mutating func append(_ more: [UInt8], for run: JobRun) async throws(RequestFailure) {
            let bytesMax = run.jobs.resultBytesMax
            guard bytes + more.count <= bytesMax else {
                throw .badRequest(
                    "the result is larger than \(bytesMax >> 20) MB: export less of it with a filter, or page through "
                        + "records/query")
            }
            try await ask(await file.write(more, at: bytes))
            bytes += more.count
        }
    }

    /// Nil for other jobs.
    private func beginExport() async throws(RequestFailure) -> Export? {
        guard let format = job.format else { return nil }
        let schema = service.schema(SchemaKey(container: job.container, environment: job.environment)).schema
        guard let type = schema.type(named: job.recordType) else {
            throw .badRequest("record type not found: \(job.recordType)")
        }
        let file = try await ask(await ScratchFile(of: service.node, freeBytes: JobLimits.freeBytesMin))
        jobs.keep(file, of: job.id, readBy: right)
        var export = Export(text: ExportText(format, of: type), file: file)
        try await export.append(export.text.head, for: self)
        return export
    }
}
