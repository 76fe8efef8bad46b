import Cluster
import Directory
import RecordModel
import Synchronization

/// The jobs of this node: in its memory, so that a node that starts again has none (decision 0021).
package final class JobRunner: Sendable {
    private struct State {
        var table = JobTable()
        /// Those that run.
        var tasks: [JobID: Task<Void, Never>] = [:]
        /// Those that are to end.
        var cancelled: Set<JobID> = []
        /// Results of exports, whole or not, and by whose right they are read.
        var results: [JobID: (file: ScratchFile, right: JobRight)] = [:]
        var isStopped = false

        mutating func purge(now: Int64) {
            table.purge(now: now)
            dropResults()
        }

        /// Those of jobs that are forgotten.
        mutating func dropResults() { results = results.filter { table[$0.key] != nil } }
    }

    private let state = Mutex(State())
    private let clock: any NodeClock
    /// When this node was started, in milliseconds since 1970.
    let started: Int64
    /// What one result may come to.
    let resultBytesMax: Int

    init(platform: any NodePlatform, resultBytesMax: Int) {
        self.resultBytesMax = resultBytesMax
        clock = platform.clock
        started = platform.clock.wallMilliseconds
    }

    /// Ends all jobs; they are lost.
    func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            state.results = [:]
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    /// Remembers a job that begins.
    /// - Throws: `TRY_AGAIN_LATER` where there are as many as there may be.
    func take(_ job: Job) throws(RequestFailure) {
        let now = clock.wallMilliseconds
        try state.withLock { state throws(RequestFailure) in
            state.purge(now: now)
            defer { state.dropResults() }
            try state.table.begin(job)
        }
    }

    func start(_ run: JobRun) {
        let service = run.service
        let id = run.job.id
        state.withLock { state in
            guard !state.isStopped else { return }
            state.tasks[id] = service.node.platform.startTask {
                await run.run()
                await self.forgetLater(id)
            }
        }
    }

    /// Drops a result once its time is over.
    private func forgetLater(_ id: JobID) async {
        let hasResult = state.withLock { state in
            state.tasks[id] = nil
            state.cancelled.remove(id)
            if state.table[id]?.expires == nil { state.results[id] = nil }
            return state.results[id] != nil
        }
        guard hasResult else { return }
        try? await clock.sleep(milliseconds: UInt64(JobLimits.resultMilliseconds))
        let now = clock.wallMilliseconds
        state.withLock { $0.purge(now: now) }
    }

    // MARK: What a job tells of itself

    func goesOn(_ id: JobID) -> Bool {
        state.withLock { !$0.isStopped && !$0.cancelled.contains(id) && $0.table[id] != nil }
    }

    /// Whether the node is stopping, so that nothing is to be told any more.
    var isStopped: Bool { state.withLock(\.isStopped) }

    func change(_ id: JobID, _ change: (inout Job) -> Void) { state.withLock { $0.table.change(id, change) } }

    func keep(_ file: ScratchFile, of id: JobID, readBy right: JobRight) {
        state.withLock { $0.results[id] = (file, right) }
    }

    // MARK: What is asked

    func answer(_ inquiry: JobInquiry, in service: RecordService) async -> JobAnswer {
        let now = clock.wallMilliseconds
        state.withLock { $0.purge(now: now) }
        var answer = JobAnswer(started: started)
        switch inquiry {
        case .list(let container, let environment):
            answer.jobs = jobs.filter { job in
                (container ?? job.container) == job.container && (environment ?? job.environment) == job.environment
            }
        case .state(let id): answer.jobs = [job(id)].compactMap(\.self)
        case .cancel(let id): answer.jobs = [cancel(id)].compactMap(\.self)
        case .result(let id, let offset, let count):
            answer.jobs = [job(id)].compactMap(\.self)
            do throws(RequestFailure) {
                answer.bytes = try await part(
                    of: id, at: Int(clamping: offset), count: Int(clamping: count), in: service)
            } catch {
                answer.problem = Job.Problem(code: error.error.code, reason: error.error.reason)
            }
        }
        return answer
    }

    private var jobs: [Job] { state.withLock { $0.table.jobs } }

    func job(_ id: JobID) -> Job? { state.withLock { $0.table[id] } }

    /// Ends a job that runs; one that ended is forgotten, with its result.
    private func cancel(_ id: JobID) -> Job? {
        let (job, task) = state.withLock { state -> (Job?, Task<Void, Never>?) in
            let job = state.table[id]
            guard job?.phase == .running else {
                state.table.remove(id)
                state.results[id] = nil
                return (job, nil)
            }
            state.cancelled.insert(id)
            return (job, state.tasks[id])
        }
        task?.cancel()
        return job
    }

    private func part(
        of id: JobID, at offset: Int, count: Int, in service: RecordService
    ) async throws(RequestFailure) -> [UInt8] {
        let (result, job) = state.withLock { ($0.results[id], $0.table[id]) }
        guard let result, let job, job.expires != nil else {
            throw id.noResult
        }
        // Who acted as a user sees nothing of them once that is over.
        _ = try await result.right.admitted(by: service, to: job, writes: false)
        return try await ask(await result.file.read(at: offset, count: min(count, JobAdministration.partBytes)))
    }
}

/// The jobs that a node remembers, in the order in which they began. Pure: times are passed in.
struct JobTable: Sendable {
    private(set) var jobs: [Job] = []

    /// Takes a job that begins.
    /// - Throws: `TRY_AGAIN_LATER` where the node, or the container there, has as many as it may.
    mutating func begin(_ job: Job) throws(RequestFailure) {
        let running = jobs.filter { $0.phase == .running }
        guard running.count < JobLimits.runningMax else {
            throw .nothingDone("this node runs \(running.count) jobs, as many as it may; wait for one, or cancel it")
        }
        let own = running.count { $0.container == job.container }
        guard own < JobLimits.runningOfContainerMax else {
            throw .nothingDone(
                "this node runs \(own) jobs of container '\(job.container)', as many as it may; wait for one, or "
                    + "cancel it")
        }
        // Of four results that wait to be fetched the oldest goes.
        if job.format != nil, jobs.count(where: { $0.format != nil && $0.holdsResult }) >= JobLimits.resultsMax,
            let oldest = jobs.firstIndex(where: { $0.expires != nil })
        {
            jobs.remove(at: oldest)
        }
        if jobs.count >= JobLimits.keptMax, let oldest = jobs.firstIndex(where: { $0.phase != .running }) {
            jobs.remove(at: oldest)
        }
        jobs.append(job)
    }

    subscript(id: JobID) -> Job? { jobs.first { $0.id == id } }

    mutating func change(_ id: JobID, _ change: (inout Job) -> Void) {
        if let place = jobs.firstIndex(where: { $0.id == id }) { change(&jobs[place]) }
    }

    mutating func remove(_ id: JobID) { jobs.removeAll { $0.id == id } }

    /// Forgets what ended long ago, and exports whose result is over.
    mutating func purge(now: Int64) {
        jobs.removeAll { job in
            guard let ended = job.ended else { return false }
            return now >= job.expires ?? (ended + JobLimits.keptMilliseconds)
        }
    }
}

extension Job {
    /// Whether its node keeps a result for it, or writes one.
    fileprivate var holdsResult: Bool { phase == .running || expires != nil }
}
