import RaftCore
import Synchronization

extension LogWriter {
    /// Drops the oldest segments that no group needs, after writing again what only they hold.
    ///
    /// On the writer's thread, so that nothing newer can be written between reading a state and writing it again.
    /// - Returns: how many segments went.
    func collect() -> Result<Int, RaftLogError> {
        if let poison { return .failure(poison) }
        let isOver = shared.table.withLock { $0.sizeBytes } > options.sizeBytesTarget
        let keepEntries = isOver ? 0 : options.keepEntries
        guard let plan = shared.table.withLock({ $0.collectionPlan(keepEntries: keepEntries) }) else {
            return .success(0)
        }
        do throws(RaftLogError) {
            try carryForward(plan)
        } catch {
            return .failure(error)
        }
        for _ in 0..<plan.segments {
            let segment = shared.table.withLock { $0.dropOldest() }
            do throws(DiskError) {
                // One folder sync each, oldest first: the segments left on disk never have a hole.
                try supply.recycle(segment)
            } catch {
                return .failure(stop(error))
            }
        }
        shared.counters.withLock { $0.segmentsCollected += plan.segments }
        return .success(plan.segments)
    }

    private func carryForward(_ plan: CollectionPlan) throws(RaftLogError) {
        var encoder = makeEncoder()
        let checkpoint = encoder.checkpoint
        do throws(RaftLogError) {
            for (group, change) in plan.carried {
                switch change {
                case .hardState(let hardState):
                    try encoder.append(.hardState, change, of: group, mayUseReserve: true) { hardState.encode(to: &$0) }
                case .carriedMark(let mark):
                    try encoder.append(.carriedMark, change, of: group, mayUseReserve: true) { mark.encode(to: &$0) }
                default: preconditionFailure("collection carries hard states and marks only")
                }
            }
        } catch {
            encoder.restore(checkpoint)
            throw error
        }
        try commit(encoder).get()
    }
}
