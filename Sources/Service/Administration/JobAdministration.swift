import Admission
import Authorization
import Cluster
package import Directory
import PeerTransport
package import RecordModel

/// Work on all matches of a query: counting, exporting and deleting them. A job runs on the node that was asked to
/// begin it; any node tells of it.
package struct JobAdministration: Sendable {
    /// What is wanted.
    package struct Wanted: Sendable {
        /// What is done.
        package var kind: Job.Kind
        /// Where.
        package var key: SchemaKey
        /// As `container`.
        package var database: Scope
        /// Of which the query and the zone count.
        package var form: QueryRecordsRequest
        /// Nil unless it is an export.
        package var format: Job.Format?

        package init(_ kind: Job.Kind, of form: QueryRecordsRequest, _ database: Scope, in key: SchemaKey) {
            self.kind = kind
            self.form = form
            self.database = database
            self.key = key
        }
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// What is asked of a result at once.
    package static let partBytes = 256 << 10

    /// Begins a job on this node. It is in the audit log when this returns.
    /// - Parameter acting: the time as a user in which it is done; nil where the administrator acts as nobody.
    /// - Throws: `ACCESS_DENIED` where the administrator may not; `BAD_REQUEST` where the schema does not allow the
    ///   query; `TRY_AGAIN_LATER` where the node runs as many as it may.
    package func begin(_ wanted: Wanted, as acting: ActingCredential?) async throws(RequestFailure) -> Job {
        if wanted.database == .shared { throw .notBuilt("the shared database") }
        let access = try administration.access
        _ = try await administration.directory(with: wanted.key.container)
        var job = Job(
            id: JobID(
                node: service.node.settings.nodeID.rawValue, uuid: service.node.platform.newID(at: service.now)),
            kind: wanted.kind,
            container: wanted.key.container, environment: wanted.key.environment, database: wanted.database,
            zone: wanted.form.zoneID.name, recordType: wanted.form.query.recordType,
            filters: wanted.form.query.filters.count, by: access.actor)
        job.format = wanted.format
        let right = JobRight(access: access, acting: acting)
        let context = try await right.admitted(by: service, to: job, writes: job.kind == .delete)
        job.user = context.admitted.caller.user ?? ""
        let request = JobRight.request(of: job, by: context, administration.origin, in: service)
        _ = try request.zone(wanted.form.zoneID)
        _ = try await request.judge { attempt throws(ServiceError) in
            try request.resolved(wanted.form, schema: attempt.schema.schema)
        }
        try service.jobs.take(job)
        do throws(RequestFailure) {
            try await administration.tell("job.\(job.kind.rawValue)", job.subject)
        } catch {
            service.jobs.change(job.id) { $0.phase = .failed }
            _ = await service.jobs.answer(.cancel(job.id), in: service)
            throw error
        }
        service.jobs.start(
            JobRun(service: service, job: job, right: right, origin: administration.origin, form: wanted.form))
        return job
    }

    /// The jobs that all nodes remember and the administrator may see, the newest first.
    /// - Parameter container: of which they are; nil: of all.
    package func list(
        of container: String?, _ environment: Environment?
    ) async throws(RequestFailure) -> (jobs: [Job], nodes: [RequestAdministration.AskedNode]) {
        let access = try administration.access
        if let container {
            try access.require(
                AdministratorNeed(.viewer, .container), container: container, environment: nil, now: service.now)
        }
        let answers: [NodeAnswer<JobAnswer>] = await NodeInquiries(service: service).askAll(
            .jobs(.list(container: container, environment: environment)))
        let jobs = answers.flatMap { $0.value?.jobs ?? [] }.compactMap { $0.shown(to: access) }
        return (jobs.sorted { $0.id.uuid > $1.id.uuid }, answers.map { ($0.node, $0.problem) })
    }

    /// How far a job is. One that was lost with its node is told as lost.
    /// - Throws: `NOT_FOUND` where there is none that the administrator may see; `TRY_AGAIN_LATER` where its node does
    ///   not answer.
    package func job(_ id: JobID) async throws(RequestFailure) -> Job { try visible(try await known(id)) }

    /// The job as its node has it.
    private func known(_ id: JobID) async throws(RequestFailure) -> Job {
        guard let answer = try await ask(.state(id), of: id) else {
            return lost(id, "node \(id.node) is no member of the cluster any more")
        }
        if let job = answer.jobs.first { return job }
        guard id.uuid.milliseconds >= answer.started else {
            return lost(
                id, "node \(id.node) was started anew while the job ran, or after: what it did is done, the rest is not"
            )
        }
        throw unknown(id)
    }

    /// The same at the job's end, or after a second.
    package func followed(_ id: JobID) async throws(RequestFailure) -> Job {
        let clock = service.node.platform.clock
        var job = try await job(id)
        for _ in 0..<Self.looks where job.phase == .running {
            try? await clock.sleep(milliseconds: Self.lookMilliseconds)
            job = try await self.job(id)
        }
        return job
    }

    private static let (looks, lookMilliseconds) = (10, UInt64(100))

    private func lost(_ id: JobID, _ reason: String) -> Job {
        var job = Job.blank
        job.id = id
        job.phase = .lost
        job.problem = Job.Problem(code: .notFound, reason: reason)
        return job
    }

    private func visible(_ job: Job) throws(RequestFailure) -> Job {
        if job.phase == .lost { return job }
        if let shown = job.shown(to: try administration.access) { return shown }
        throw unknown(job.id)
    }

    private func unknown(_ id: JobID) -> RequestFailure {
        .notFound("no job '\(id.text)': `zonekeeper job list` shows those that are remembered, each for a day")
    }

    /// Ends a job that runs; one that has ended is forgotten, with its result.
    /// - Returns: the job as it was.
    /// - Throws: `ACCESS_DENIED` where it is another administrator's, for anybody but an admin of the container.
    package func cancel(_ id: JobID) async throws(RequestFailure) -> Job {
        let job = try await known(id)
        guard job.phase != .lost else { return job }
        let shown = try visible(job)
        let access = try administration.access
        if !job.belongs(to: access) {
            try access.require(
                AdministratorNeed(.admin, .container), container: job.container, environment: job.environment,
                now: service.now)
        }
        try await administration.tell("job.cancel", job.subject)
        return try visible(try await ask(.cancel(id), of: id)?.jobs.first ?? shown)
    }

    /// The job whose result can be fetched. One of private data is for the credential alone by which it was begun.
    /// - Throws: `NOT_FOUND` where it has none.
    package func exported(_ id: JobID) async throws(RequestFailure) -> Job {
        let job = try await job(id)
        let actor = try administration.access.actor
        guard job.database == .public || job.by == actor else { throw unknown(id) }
        if job.expires != nil { return job }
        throw id.noResult
    }

    /// A part of a job's result, of at most `partBytes`.
    package func part(of id: JobID, at offset: UInt64) async throws(RequestFailure) -> [UInt8] {
        let answer = try await ask(.result(id, offset: offset, count: UInt64(Self.partBytes)), of: id)
        if let problem = answer?.problem { throw RequestFailure(problem.code, problem.reason) }
        return answer?.bytes ?? []
    }

    /// Asks a job's node.
    /// - Returns: nil where that is no member of the cluster.
    private func ask(_ inquiry: JobInquiry, of id: JobID) async throws(RequestFailure) -> JobAnswer? {
        let answers: [NodeAnswer<JobAnswer>] = await NodeInquiries(service: service).askAll(
            .jobs(inquiry), only: id.node)
        guard let answer = answers.first else { return nil }
        switch answer.answer {
        case .success(let value): return value
        case .failure(let error): throw RequestFailure(error)
        }
    }
}

extension Job {
    /// Whether an administrator began it, by a token or in the console.
    fileprivate func belongs(to access: AdministratorAccess) -> Bool { access.actors.contains(by) }

    /// What an administrator may see of it. Of a job on private data that is another's an admin sees that there is one,
    /// so that it can be ended, and nothing of what is asked for; nobody else sees anything.
    fileprivate func shown(to access: AdministratorAccess) -> Job? {
        guard access.covers(container) else { return nil }
        if database == .public || belongs(to: access) { return self }
        guard access.role == .admin else { return nil }
        var job = self
        (job.zone, job.recordType, job.filters) = ("", "", 0)
        job.problem?.reason = "only who began the job is told"
        return job
    }
}
