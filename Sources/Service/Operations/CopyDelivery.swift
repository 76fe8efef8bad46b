import Cluster
import RaftCore
import RecordModel
import RecordStore

/// Waits until every group matches the subscriptions that it is to match.
struct CopyDelivery {
    private let service: RecordService
    private let marks: [OutboxMark]
    private let home: GroupID
    private let deadline: Deadline

    /// - Parameters:
    ///   - marks: up to where effects are to be delivered.
    ///   - home: the group that sends them.
    init(_ service: RecordService, _ marks: [OutboxMark], from home: GroupID, by deadline: Deadline) {
        self.service = service
        self.marks = marks
        self.home = home
        self.deadline = deadline
    }

    /// How often it is looked whether copies have arrived.
    private static let pauseMilliseconds: UInt64 = 5

    /// - Throws: `TRY_AGAIN_LATER` where it is not known, which is not to say that nothing was done.
    func wait() async throws(RequestFailure) {
        if marks.isEmpty { return }
        do throws(RequestFailure) {
            try await lookUntilDelivered()
        } catch {
            guard error.error.code == .tryAgainLater else { throw error }
            throw RequestFailure(
                ServiceError(
                    .tryAgainLater,
                    "the subscriptions are kept, and it is not known whether every shard knows of them: send the "
                        + "request again (\(error.error.reason))", retryAfterSeconds: 1), details: .outcomeUnknown)
        }
    }

    private func lookUntilDelivered() async throws(RequestFailure) {
        let clock = service.node.platform.clock
        while true {
            let answer = try await service.read(.isDelivered(marks), from: home, by: deadline)
            if case .found(let found) = answer, found.bytes == [1] { return }
            do {
                try await clock.sleep(milliseconds: Self.pauseMilliseconds)
            } catch {
                throw RequestFailure(ServiceError(.tryAgainLater, "given up", retryAfterSeconds: 1))
            }
            guard !deadline.isOver(at: clock.now) else {
                throw RequestFailure(
                    ServiceError(.tryAgainLater, "not every shard knows of them in time", retryAfterSeconds: 1))
            }
        }
    }
}
