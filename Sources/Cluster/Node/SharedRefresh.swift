/// Runs one refresh at a time. A caller gets the result of one that began after its call.
actor SharedRefresh {
    private var running: Task<Result<Void, ClusterError>, Never>?
    private var following: Task<Result<Void, ClusterError>, Never>?

    /// Joins the refresh that begins next, and begins it when the running one is done.
    func next(_ refresh: @escaping @Sendable () async -> Result<Void, ClusterError>) async -> Result<Void, ClusterError>
    {
        if let following { return await following.value }
        let before = running
        let task = Task {
            _ = await before?.value
            begin()
            return await refresh()
        }
        following = task
        return await task.value
    }

    /// The following refresh runs now: who calls from here on waits for another.
    private func begin() {
        running = following
        following = nil
    }
}
