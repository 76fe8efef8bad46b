import RaftCore
import RecordModel
import RecordStore
import Synchronization

/// Where requests of this node stand in line that lack some of a database's quota: one at a time asks for each shard of
/// a database, and requests that come meanwhile share the next.
final class EscrowRequests: Sendable {
    /// Who asks for what.
    struct Place: Hashable {
        var database: DatabaseKey
        var shard: GroupID
    }

    /// What some requests lack together.
    struct Ask {
        /// The sum of what they lack, which lets all of them go on.
        var sum: QuotaAmounts
        /// What lets the greatest of them go on, and what the shard says of itself.
        var need: QuotaNeed

        init(_ need: QuotaNeed) {
            sum = need.need
            self.need = need
        }

        fileprivate mutating func add(_ more: QuotaNeed) {
            sum = sum + more.need
            need.need = need.need.greater(more.need)
            // Sums over all times: the greatest are the latest.
            need.received = need.received.greater(more.received)
            need.returned = need.returned.greater(more.returned)
            need.holdsVoid = need.holdsVoid || more.holdsVoid
            need.epoch = max(need.epoch, more.epoch)
        }
    }

    typealias Answer = Result<Bool, RequestFailure>

    /// How a request's waiting ends.
    private enum Call {
        /// Somebody asked for it too.
        case answered(Answer)
        /// It asks, for those too who waited with it.
        case turn([Waiter])
    }

    private struct Waiter {
        var need: QuotaNeed
        var continuation: CheckedContinuation<Call, Never>
    }

    /// Those who wait, wherever somebody asks.
    private let lines = Mutex<[Place: [Waiter]]>([:])

    /// - Parameter body: asks, and says whether what was lacking is there now.
    func ask(
        _ need: QuotaNeed, at place: Place, _ body: (Ask) async -> Answer
    ) async throws(RequestFailure) -> Bool {
        var others: [Waiter] = []
        switch await turn(need, at: place) {
        case .answered(let answer): return try answer.get()
        case .turn(let waiters): others = waiters
        }
        var ask = Ask(need)
        for other in others { ask.add(other.need) }
        let answer = await body(ask)
        for other in others { other.continuation.resume(returning: .answered(answer)) }
        passOn(place)
        return try answer.get()
    }

    private func turn(_ need: QuotaNeed, at place: Place) async -> Call {
        await withCheckedContinuation { continuation in
            let isFirst = lines.withLock { lines in
                if lines[place] == nil {
                    lines[place] = []
                    return true
                }
                lines[place]?.append(Waiter(need: need, continuation: continuation))
                return false
            }
            if isFirst { continuation.resume(returning: .turn([])) }
        }
    }

    /// The first of those who waited asks for all of them.
    private func passOn(_ place: Place) {
        let waiting = lines.withLock { lines in
            let waiting = lines[place] ?? []
            lines[place] = waiting.isEmpty ? nil : []
            return waiting
        }
        guard let next = waiting.first else { return }
        next.continuation.resume(returning: .turn(Array(waiting.dropFirst())))
    }
}
