import RecordModel

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

    /// Changes a job that is remembered.
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
