import Dispatch
import Synchronization

extension PreferenceEngine {
    /// How far it is with asking the server who the session is.
    struct Asking {
        /// Of the service that is asked.
        var epoch = 0
        /// Whether the server is asked now, or will be at once.
        var isUnderWay = false
        /// Whether somebody wanted an answer while the server was asked: what kept it may have been over by then.
        var isWantedAgain = false
        /// The pause before it is asked again.
        var rest: Rest?
        private var rests = 0

        struct Rest {
            var number: Int
            /// Whether the server asked for it.
            var isServers: Bool
            var continuation: CheckedContinuation<Void, Never>
        }

        /// - Returns: the pause's number, or nil if the next attempt is to follow at once.
        mutating func begin(_ epoch: Int, isServers: Bool, _ continuation: CheckedContinuation<Void, Never>) -> Int? {
            if self.epoch != epoch { return nil }
            if isWantedAgain, !isServers {
                isWantedAgain = false
                return nil
            }
            rests += 1
            (isUnderWay, isWantedAgain) = (false, false)
            rest = Rest(number: rests, isServers: isServers, continuation: continuation)
            return rests
        }
    }

    /// Asks the server who the session is, where this device does not know, until it says so.
    func resolveAccount() {
        endRest { _ in true }
        let (service, epoch) = state.withLock { state in
            state.asking.epoch = state.epoch
            (state.asking.isUnderWay, state.asking.isWantedAgain) = (state.service != nil, false)
            return (state.service, state.epoch)
        }
        guard let service else { return }
        begin()
        Task { [self] in
            var pause = PreferenceSync.Pause.firstMilliseconds
            while state.withLock({ $0.epoch == epoch && !$0.isConfirmed && !$0.isClosed }) {
                let place = state.withLock { $0.place }
                do throws(PreferenceServiceProblem) {
                    let user = try await service.account()
                    await switchAccount(to: user, of: service.name, place: place, epoch: epoch)
                    note(fetch: nil)
                } catch {
                    note(fetch: error)
                    await rest(error.retryAfterMilliseconds, or: pause, epoch)
                    pause = min(2 * pause, PreferenceSync.Pause.lastMilliseconds)
                }
            }
            state.withLock { if $0.asking.epoch == epoch { $0.asking.isUnderWay = false } }
            end()
        }
    }

    /// Somebody wants the store to be synchronised now, for which it has to be known whose it is.
    func hurryAccount() {
        state.withLock { if $0.asking.isUnderWay { $0.asking.isWantedAgain = true } }
        endRest { !$0.isServers }
    }

    /// The pause before the server is asked again. Whoever waits for the store to come to rest does not wait for a
    /// server that is not there.
    private func rest(_ retryAfter: Int64?, or own: Int64, _ epoch: Int) async {
        await withCheckedContinuation { continuation in
            let number = state.withLock { $0.asking.begin(epoch, isServers: retryAfter != nil, continuation) }
            guard let number else { return continuation.resume() }
            failStalledWaiters()
            surroundings.clock.after(PreferenceSync.Pause.length(own: own, retryAfter: retryAfter), on: queue) {
                [self] in endRest { $0.number == number }
            }
            end()
        }
    }

    /// Ends the pause, if there is one and it is meant.
    func endRest(where isMeant: (Asking.Rest) -> Bool) {
        let rest = state.withLock { state -> Asking.Rest? in
            guard let rest = state.asking.rest, isMeant(rest) else { return nil }
            state.asking.rest = nil
            state.asking.isUnderWay = true
            state.work += 1
            return rest
        }
        rest?.continuation.resume()
    }

    /// The server said whose the session is.
    func switchAccount(to user: String, of session: String, place: PreferencePlace, epoch: Int) async {
        begin()
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                changeAccount(to: user, place: place, epoch: epoch)
                // Not before: the first change makes the folder.
                place.remember(user, of: session)
                state.withLock { state in if state.epoch == epoch { state.isConfirmed = true } }
                bell.ring()
                continuation.resume()
            }
        }
        end()
    }
}
