import Dispatch
import Synchronization

// The requests to the server, and the question which user the session belongs to.
extension PreferenceEngine {
    /// Switches to another session, or to none (nil), or to another app's preferences.
    func use(_ service: (any PreferenceService)?, at place: PreferencePlace) {
        let epoch = state.withLock { state in
            state.epoch += 1
            state.service = service
            state.isConfirmed = false
            (state.uploadProblem, state.fetchProblem) = (nil, nil)
            return state.epoch
        }
        watchStep.sessionBegan(epoch)
        if service == nil {
            waiters.fail(SyncError(code: .notSignedIn, description: "the user has signed out")) { _ in true }
        }
        changeAccount(to: service.flatMap { place.rememberedAccount(of: $0.name) }, place: place, epoch: epoch)
        enqueue(.sessionBegan)
        resolveAccount()
    }

    /// The user has signed out: before the session is used again, the server is asked whose it is.
    func unconfirm() { state.withLock { $0.isConfirmed = false } }

    func upload(_ batch: PreferenceBatch, _ link: PreferenceLink) {
        inBackground { [self] in
            var answer = PreferenceUploadAnswer.unknown(retryAfterMilliseconds: nil)
            if await isConfirmed(link) {
                do throws(PreferenceServiceProblem) {
                    answer = try await link.service.set(batch, of: link.account, device: link.device)
                    note(nil, \.uploadProblem)
                } catch {
                    // A batch that is not accepted as it is must not hold up the others.
                    let isRejected = if case .rejected = error { true } else { false }
                    answer = isRejected ? .forgotten : .unknown(retryAfterMilliseconds: error.retryAfterMilliseconds)
                    unconfirm(link, after: error)
                    note(error, \.uploadProblem)
                }
            }
            await process(.uploadAnswered(batch.id, answer))
        }
    }

    func fetch(_ ticket: PreferenceTicket, _ link: PreferenceLink) {
        inBackground { [self] in
            guard await isConfirmed(link) else {
                return await process(.fetchFailed(ticket, retryAfterMilliseconds: nil))
            }
            do throws(PreferenceServiceProblem) {
                let page = try await link.service.changes(since: ticket.since, of: link.account)
                note(nil, \.fetchProblem)
                await process(.pageArrived(ticket, page))
            } catch .tokenExpired {
                await process(.tokenExpired(ticket))
            } catch {
                unconfirm(link, after: error)
                note(error, \.fetchProblem)
                await process(.fetchFailed(ticket, retryAfterMilliseconds: error.retryAfterMilliseconds))
            }
        }
    }

    private func inBackground(_ body: @escaping @Sendable () async -> Void) {
        work.begin()
        Task { [work] in
            await body()
            work.end()
        }
    }

    /// A refused session may belong to another user when it is accepted again, so the server is asked first.
    private func unconfirm(_ link: PreferenceLink, after problem: PreferenceServiceProblem) {
        guard case .notSignedIn = problem else { return }
        state.withLock { state in if state.epoch == link.epoch { state.isConfirmed = false } }
    }

    /// Whether the session belongs to the account. The server is asked once a session; if it names another user, the
    /// engine switches to that user's copy.
    private func isConfirmed(_ link: PreferenceLink) async -> Bool {
        let (isPresent, isKnown) = state.withLock { state in
            (state.epoch == link.epoch && state.core.account == link.account, state.isConfirmed)
        }
        if !isPresent || isKnown { return isPresent }
        do throws(PreferenceServiceProblem) {
            let user = try await link.service.account()
            await switchAccount(to: user, of: link.service.name, place: link.place, epoch: link.epoch)
            return user == link.account && state.withLock { $0.epoch == link.epoch }
        } catch {
            note(error, \.fetchProblem)
            return false
        }
    }

    /// Notes the outcome of a request for the status and for waiting callers.
    private func note(_ problem: PreferenceServiceProblem?, _ kind: any WritableKeyPath<State, String?> & Sendable) {
        state.withLock { $0[keyPath: kind] = problem?.description }
        failWaiters(after: problem)
    }

    /// While the server is unavailable, callers learn it when nothing moves any more (`failStalledWaiters`): an attempt
    /// that began before their request says nothing about it.
    private func failWaiters(after problem: PreferenceServiceProblem?) {
        switch problem {
        case nil, .tokenExpired, .unavailable: return
        case .notSignedIn(let reason):
            waiters.fail(SyncError(code: .notSignedIn, description: reason)) { $0.goal == .settled }
        case .rejected(let reason):
            waiters.fail(SyncError(code: .unavailable, description: reason), where: \.awaitsSettling)
        }
    }

    // MARK: The watch

    /// The result of one turn of the watch.
    enum WatchOutcome {
        /// A connection ended.
        case again
        /// There is no session, or no position in the feed yet. `watchEvent` is signalled when that may have changed.
        case nothing
        /// The engine was closed.
        case closed
    }

    /// Follows the feed over one connection, and then waits as long as `backoff` says. Both end when another session
    /// comes into use.
    func watchOnce(_ backoff: inout WatchBackoff) async -> WatchOutcome {
        let (link, ticket, isClosed) = state.withLock { state in
            (state.isConfirmed ? state.link : nil, state.core.watchTicket, state.isClosed)
        }
        if isClosed { return .closed }
        guard let link, let ticket, let token = ticket.since else { return .nothing }
        let pages = Mutex(0)
        var requested: Int64?
        state.withLock { $0.isWatching = true }
        do {
            try await watchStep.connect(epoch: link.epoch) {
                try await link.service.watch(since: token, of: link.account) { [weak self] since, page in
                    guard let self else { return false }
                    pages.withLock { $0 += 1 }
                    await process(.pageArrived(PreferenceTicket(account: ticket.account, since: since), page))
                    // If another process or an expired token moved the position, this connection is of no use any more.
                    return state.withLock { state in
                        !state.isClosed && state.epoch == link.epoch && state.core.watchTicket?.since == page.token
                    }
                }
            }
        } catch {
            let problem = PreferenceServiceProblem(error)
            if problem == .tokenExpired {
                await process(.tokenExpired(ticket))
            } else {
                unconfirm(link, after: problem)
                requested = problem.retryAfterMilliseconds ?? 5000
            }
        }
        state.withLock { $0.isWatching = false }
        let range = backoff.ended(broughtPages: pages.withLock { $0 } > 0, requested: requested)
        if range.upperBound > 0 {
            await watchStep.pause(Int64.random(in: range), epoch: link.epoch, by: dependencies.clock, on: queue)
        }
        if requested != nil { await process(.changesSuspected) }
        return .again
    }

    // MARK: The account

    /// Asks the server which user the session belongs to, until it answers, if this device does not know.
    func resolveAccount() {
        let (service, epoch) = state.withLock { state in
            inquiry.begin(epoch: state.epoch, hasService: state.service != nil)
            return (state.service, state.epoch)
        }
        guard let service else { return }
        inBackground { [self] in
            var pause = PreferenceSync.Pause.firstMilliseconds
            while state.withLock({ $0.epoch == epoch && !$0.isConfirmed && !$0.isClosed }) {
                let place = state.withLock { $0.place }
                do throws(PreferenceServiceProblem) {
                    let user = try await service.account()
                    await switchAccount(to: user, of: service.name, place: place, epoch: epoch)
                    note(nil, \.fetchProblem)
                } catch {
                    note(error, \.fetchProblem)
                    await inquiry.pause(error.retryAfterMilliseconds, or: pause, epoch: epoch) { failStalledWaiters() }
                    pause = min(2 * pause, PreferenceSync.Pause.lastMilliseconds)
                }
            }
            inquiry.end(epoch: epoch)
        }
    }

    /// The server said which user the session belongs to.
    private func switchAccount(to user: String, of session: String, place: PreferencePlace, epoch: Int) async {
        await onQueue { [self] in
            changeAccount(to: user, place: place, epoch: epoch)
            // Not before: the first change makes the folder.
            place.remember(user, of: session)
            state.withLock { state in if state.epoch == epoch { state.isConfirmed = true } }
            watchEvent.signal()
        }
    }
}

/// The question to the server which user the session belongs to: whether it is under way, and the pauses before it is
/// asked again. Any thread.
final class AccountInquiry: Sendable {
    /// The pause before the next attempt.
    private struct Pause {
        var number: Int
        /// Whether the server asked for it.
        var isRequestedByServer: Bool
        var continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        /// The epoch of the service that is asked.
        var epoch = 0
        var isUnderWay = false
        /// Whether a caller asked for an answer during a request. The obstacle that this request met may be gone.
        var isWantedAgain = false
        var pause: Pause?
        var pauses = 0

        /// - Returns: the pause's number, or nil if the next attempt is to follow at once.
        mutating func beginPause(
            epoch: Int, isRequestedByServer: Bool, _ continuation: CheckedContinuation<Void, Never>
        ) -> Int? {
            if self.epoch != epoch { return nil }
            if isWantedAgain, !isRequestedByServer {
                isWantedAgain = false
                return nil
            }
            pauses += 1
            (isUnderWay, isWantedAgain) = (false, false)
            pause = Pause(number: pauses, isRequestedByServer: isRequestedByServer, continuation: continuation)
            return pauses
        }
    }

    private let state = Mutex(State())
    private let work: WorkCounter
    private let clock: any PreferenceClock
    private let queue: DispatchQueue

    /// - Parameters:
    ///   - work: what is under way; a pause is not.
    ///   - queue: where pauses end.
    init(work: WorkCounter, clock: any PreferenceClock, queue: DispatchQueue) {
        self.work = work
        self.clock = clock
        self.queue = queue
    }

    /// Whether a request is under way or about to begin.
    var isUnderWay: Bool { state.withLock(\.isUnderWay) }

    /// Another service is asked from now on, or none. A pause of the former one ends.
    func begin(epoch: Int, hasService: Bool) {
        let ended = state.withLock { state in
            (state.epoch, state.isUnderWay, state.isWantedAgain) = (epoch, hasService, false)
            if state.pause != nil { work.begin() }
            return state.pause.take()
        }
        ended?.continuation.resume()
    }

    /// The service of an epoch is not asked any more.
    func end(epoch: Int) { state.withLock { if $0.epoch == epoch { $0.isUnderWay = false } } }

    /// A caller wants the store to be synchronized now, which needs the account.
    func hurry() {
        state.withLock { if $0.isUnderWay { $0.isWantedAgain = true } }
        endPause { !$0.isRequestedByServer }
    }

    /// Pauses before the server is asked again. The pause does not count as work: callers do not wait for a server
    /// that is not there.
    /// - Parameter begun: called when the pause has begun.
    func pause(_ retryAfter: Int64?, or own: Int64, epoch: Int, begun: () -> Void) async {
        await withCheckedContinuation { continuation in
            let number = state.withLock {
                $0.beginPause(epoch: epoch, isRequestedByServer: retryAfter != nil, continuation)
            }
            guard let number else { return continuation.resume() }
            begun()
            clock.after(PreferenceSync.Pause.length(own: own, retryAfter: retryAfter), on: queue) {
                [self] in endPause { $0.number == number }
            }
            work.end()
        }
    }

    /// Ends the pause, if there is one.
    func endPause() { endPause { _ in true } }

    private func endPause(where matches: (Pause) -> Bool) {
        let pause = state.withLock { state -> Pause? in
            guard let ended = state.pause, matches(ended) else { return nil }
            (state.pause, state.isUnderWay) = (nil, true)
            work.begin()
            return ended
        }
        pause?.continuation.resume()
    }
}
