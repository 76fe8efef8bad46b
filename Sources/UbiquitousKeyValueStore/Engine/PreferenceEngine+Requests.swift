import Foundation
import Synchronization

extension PreferenceEngine {
    /// Does an event soon, in its turn.
    func enqueue(_ event: PreferenceEvent) {
        begin()
        queue.async { [self] in
            if !state.withLock({ $0.isClosed }) { transact(event) }
            end()
        }
    }

    /// Does an event in its turn, and returns when it is done.
    func process(_ event: PreferenceEvent) async {
        begin()
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                if !state.withLock({ $0.isClosed }) { transact(event) }
                continuation.resume()
            }
        }
        end()
    }

    func upload(_ batch: PreferenceBatch, _ link: PreferenceLink) {
        begin()
        Task { [self] in
            var answer = PreferenceUploadAnswer.unknown(retryAfterMilliseconds: nil)
            if await isConfirmed(link) {
                do throws(PreferenceServiceProblem) {
                    answer = try await link.service.set(batch, of: link.account, device: link.device)
                    note(upload: nil)
                } catch {
                    // Where nothing is done with the batch as it is, it must not keep the others waiting.
                    let isRejected = if case .rejected = error { true } else { false }
                    answer = isRejected ? .forgotten : .unknown(retryAfterMilliseconds: error.retryAfterMilliseconds)
                    unconfirm(link, after: error)
                    note(upload: error)
                }
            }
            await process(.uploadAnswered(batch.id, answer))
            end()
        }
    }

    func fetch(_ ticket: PreferenceTicket, _ link: PreferenceLink) {
        begin()
        Task { [self] in
            if await isConfirmed(link) {
                do throws(PreferenceServiceProblem) {
                    let page = try await link.service.changes(since: ticket.since, of: link.account)
                    note(fetch: nil)
                    await process(.pageArrived(ticket, page))
                } catch .tokenExpired {
                    await process(.tokenExpired(ticket))
                } catch {
                    unconfirm(link, after: error)
                    note(fetch: error)
                    await process(.fetchFailed(ticket, retryAfterMilliseconds: error.retryAfterMilliseconds))
                }
            } else {
                await process(.fetchFailed(ticket, retryAfterMilliseconds: nil))
            }
            end()
        }
    }

    /// A session that was refused may be another user's when it is accepted again: the server is asked then.
    private func unconfirm(_ link: PreferenceLink, after problem: PreferenceServiceProblem) {
        guard case .notSignedIn = problem else { return }
        state.withLock { state in if state.epoch == link.epoch { state.isConfirmed = false } }
    }

    /// Whether the service speaks for the account. The server is asked once a session; if it names another user, that
    /// one's copy takes the place of this one.
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
            note(fetch: error)
            return false
        }
    }

    /// Another session, or none (nil), or another app's preferences.
    package func use(_ service: (any PreferenceService)?, at place: PreferencePlace) {
        let epoch = state.withLock { state in
            state.epoch += 1
            state.service = service
            state.isConfirmed = false
            (state.uploadProblem, state.fetchProblem) = (nil, nil)
            return state.epoch
        }
        if service == nil { failWaiters(.notSignedIn("the user has signed out")) { _ in true } }
        changeAccount(to: service.flatMap { place.rememberedAccount(of: $0.name) }, place: place, epoch: epoch)
        resolveAccount()
    }

    /// What a look at the watch came to.
    enum WatchOutcome {
        /// A connection ended.
        case again
        /// There is nobody to ask, or no place in the feed yet: the bell rings when that may have changed.
        case nothing
        case closed
    }

    /// Follows the feed over one connection, and waits before the next where that is better.
    func watchOnce(_ pause: inout WatchPause) async -> WatchOutcome {
        let (link, ticket, isClosed) = state.withLock { state in
            (state.isConfirmed ? state.link : nil, state.core.watchTicket, state.isClosed)
        }
        if isClosed { return .closed }
        guard let link, let ticket, let token = ticket.since else { return .nothing }
        let pages = Mutex(0)
        var said: Int64?
        state.withLock { $0.isWatching = true }
        do throws(PreferenceServiceProblem) {
            try await link.service.watch(since: token, of: link.account) { [weak self] since, page in
                guard let self else { return false }
                pages.withLock { $0 += 1 }
                await process(.pageArrived(PreferenceTicket(account: ticket.account, since: since), page))
                // Where another process, or an expiry, moved the feed's place, this connection is of no use.
                return state.withLock { state in
                    !state.isClosed && state.epoch == link.epoch && state.core.watchTicket?.since == page.token
                }
            }
        } catch .tokenExpired {
            await process(.tokenExpired(ticket))
        } catch {
            unconfirm(link, after: error)
            said = error.retryAfterMilliseconds ?? 5000
        }
        state.withLock { $0.isWatching = false }
        let range = pause.ended(broughtPages: pages.withLock { $0 } > 0, said: said)
        if range.upperBound > 0 { await sleep(Int64.random(in: range)) }
        if said != nil { await process(.changesSuspected) }
        return .again
    }

    private func sleep(_ milliseconds: Int64) async {
        await withCheckedContinuation { continuation in
            surroundings.clock.after(milliseconds, on: queue) { continuation.resume() }
        }
    }

    /// Keeps what became of an upload for the status, and tells those who wait for it.
    private func note(upload problem: PreferenceServiceProblem?) {
        state.withLock { $0.uploadProblem = problem?.description }
        failWaiters(after: problem)
    }

    /// The same of a request that is no upload.
    func note(fetch problem: PreferenceServiceProblem?) {
        state.withLock { $0.fetchProblem = problem?.description }
        failWaiters(after: problem)
    }

    /// Whoever waits while the server cannot be reached learns it when nothing moves any more (`failStalledWaiters`):
    /// an attempt that began before the request says nothing about it.
    private func failWaiters(after problem: PreferenceServiceProblem?) {
        switch problem {
        case nil, .tokenExpired, .unavailable: return
        case .notSignedIn(let reason): failWaiters(.notSignedIn(reason))
        case .rejected(let reason): failWaiters(.unavailable(reason)) { $0.goal == .settled && $0.isArmed }
        }
    }
}
