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
            waiters.fail(PreferenceEngineProblem.notSignedIn("the user has signed out")) { _ in true }
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
            waiters.fail(PreferenceEngineProblem.notSignedIn(reason)) { $0.goal == .settled }
        case .rejected(let reason): waiters.fail(PreferenceEngineProblem.unavailable(reason), where: \.awaitsSettling)
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
