import RaftCore
import RecordModel
import RecordStore
import Synchronization

/// Brings a shard what it lacks of a database's quota: from the ledger, or from the other shards by way of the ledger.
struct QuotaEscrow {
    let quotas: DatabaseQuotas
    let ask: EscrowRequests.Ask
    let terms: QuotaTerms
    let place: EscrowRequests.Place
    let deadline: Deadline
    private var database: DatabaseKey { place.database }

    /// What the ledger answered.
    private struct Grant {
        var isEnough: Bool
        var cumulative: QuotaAmounts
        var free: QuotaAmounts
    }

    /// - Returns: whether the need is met; if not, the shard was given whatever is left.
    func run() async throws(RequestFailure) -> Bool {
        var (received, returned) = (ask.need.received, ask.need.returned)
        if ask.need.holdsVoid {
            // What is void would stay taken where the ledger does not hear that it came back.
            (received, returned) = try await release(at: place.shard)
        }
        let need = ask.need.need
        let asked = request(received, returned)
        var plenty = Self.chunk(of: terms.limit)
        // Most records have no assets.
        if need.assets == 0 { plenty.assets = 0 }
        var grant = try await submit(asked(ask.sum + plenty, need))
        if !grant.isEnough, try await reclaim(need) { grant = try await submit(asked(ask.sum, need)) }
        quotas.warn(database, cap: terms.limit, free: grant.free)
        if grant.isEnough {
            try await credit(grant)
            return true
        }
        if grant.free.greater(.zero).lesser(ask.sum) != .zero { grant = try await submit(asked(ask.sum, .zero)) }
        if grant.cumulative != received { try await credit(grant) }
        return false
    }

    /// What a shard is given at once where there is plenty: a 256th of the quota, of bytes 64 KB to 4 MB, of records 64
    /// to 4,096, of assets 1 MB to 64 MB.
    private static func chunk(of cap: QuotaAmounts) -> QuotaAmounts {
        QuotaAmounts(
            bytes: min(max(cap.bytes / 256, 65_536), 4_194_304), records: min(max(cap.records / 256, 64), 4_096),
            assets: min(max(cap.assets / 256, 1 << 20), 64 << 20))
    }

    private func request(
        _ received: QuotaAmounts, _ returned: QuotaAmounts
    ) -> (_ want: QuotaAmounts, _ need: QuotaAmounts) -> QuotaGrant {
        { want, need in
            QuotaGrant(
                ledger: database, shard: place.shard.rawValue, want: want, need: need, received: received,
                returned: returned, cap: terms.limit, epoch: terms.epoch, time: quotas.now)
        }
    }

    private func submit(_ grant: QuotaGrant) async throws(RequestFailure) -> Grant {
        switch try await quotas.submit(.grant(grant), to: quotas.ledgerGroup(of: database), by: deadline) {
        case .granted(let cumulative, let free): Grant(isEnough: true, cumulative: cumulative, free: free)
        case .insufficient(let cumulative, let free): Grant(isEnough: false, cumulative: cumulative, free: free)
        default: throw .otherAnswer
        }
    }

    private func credit(_ grant: Grant) async throws(RequestFailure) {
        let credit = QuotaCredit(
            database: database, cumulative: grant.cumulative, epoch: terms.epoch,
            overdrawn: QuotaParts(below: grant.free))
        _ = try await quotas.submit(.credit(credit), to: place.shard, by: deadline)
    }

    /// Has a shard give back what it does not use.
    private func release(
        at shard: GroupID
    ) async throws(RequestFailure) -> (received: QuotaAmounts, returned: QuotaAmounts) {
        let release = QuotaRelease(database: database)
        guard
            case .released(let received, let returned) = try await quotas.submit(
                .release(release), to: shard, by: deadline)
        else { throw .otherAnswer }
        return (received, returned)
    }

    /// Has the other shards give back what they do not use of what is lacking, all at once.
    /// - Returns: whether any did.
    private func reclaim(_ need: QuotaAmounts) async throws(RequestFailure) -> Bool {
        let others = try await quotas.ledger(of: database, by: deadline).shares.filter { share in
            let shard = GroupID(share.shard)
            return shard != place.shard && share.granted != share.returned && quotas.isShard(shard)
        }
        if others.isEmpty { return false }
        return try await withTaskGroup(of: Result<Bool, RequestFailure>.self) { tasks in
            for share in others {
                tasks.addTask {
                    do throws(RequestFailure) {
                        return .success(try await reclaim(need, from: share))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await tasks.reduce(.success(false)) { Self.either($0, $1) }
        }.get()
    }

    /// Whether one of several shards gave something back, or why one could not.
    static func either(
        _ all: Result<Bool, RequestFailure>, _ one: Result<Bool, RequestFailure>
    ) -> Result<Bool, RequestFailure> {
        guard case .success(let any) = all else { return all }
        return one.map { $0 || any }
    }

    /// - Returns: whether there was something to give back.
    private func reclaim(_ need: QuotaAmounts, from share: LedgerState.Share) async throws(RequestFailure) -> Bool {
        let shard = GroupID(share.shard)
        // A look first: most shards of a full database use all that they have, and a release is a round of the group.
        let found = try await quotas.usage(of: database, on: shard, by: deadline)
        let allotted = found?.allotted ?? .zero
        let unused = (allotted - (found?.used ?? .zero)).greater(.zero)
        let untold = (share.granted - share.returned - allotted).greater(.zero)
        guard (unused + untold).lesser(need) != .zero else { return false }
        if untold != .zero {
            // Granted and not received, perhaps for ever where a node ended: it is received and, under no limits that
            // count, void.
            let credit = QuotaCredit(
                database: database, cumulative: share.granted, epoch: 0, overdrawn: .all)
            _ = try await quotas.submit(.credit(credit), to: shard, by: deadline)
        }
        let (received, returned) = try await release(at: shard)
        if returned == share.returned && received.fits(in: share.granted) { return false }
        let deposit = QuotaDeposit(ledger: database, shard: share.shard, received: received, returned: returned)
        _ = try await quotas.submit(.deposit(deposit), to: quotas.ledgerGroup(of: database), by: deadline)
        return true
    }
}

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
