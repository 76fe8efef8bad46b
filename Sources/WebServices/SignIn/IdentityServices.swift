import Admission
import Cluster
import Directory
import RecordModel
import Service
import Wire

/// What signing in needs beside the service: the limits of attempts, a pool for hashing passwords, and the client that
/// talks to identity providers.
///
/// One for each node, shared by all requests. `shutdown` must be called once at the end.
final class IdentityServices: Sendable {
    /// Attempts to sign in or up, by address.
    let signInAttempts = AddressLimiter(perMinute: 30, burst: 30, addressesMax: 50_000)
    /// A password costs 32 MiB of memory and about a tenth of a second on purpose; without bounds, attempts would
    /// starve the node.
    let passwords = BlockingPool(SystemThreads.ofProcess, BlockingPool.Bounds(threads: 2, waitingMax: 64))
    let providers = ProviderClient()
    /// Lock-outs of names that no account has, so that a lock-out does not tell which names exist. Each node counts its
    /// own, while those of accounts are the cluster's: who asks several nodes can tell them apart.
    let decoys = LocalLockouts()
    let places = KnownPlaces()

    /// Does what makes or checks a password's hash, away from event loops.
    /// - Throws: `TRY_AGAIN_LATER` where too many wait, and what the work throws.
    func hash<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ServiceError) -> Value
    ) async throws(ServiceError) -> Value {
        let result: Result<Value, ServiceError>
        do {
            result = try await passwords.run { Result { () throws(ServiceError) -> Value in try work() } }
        } catch is QueueFull {
            throw ServiceError(
                .tryAgainLater, "too many sign-ins are being checked at this moment", retryAfterSeconds: 2)
        } catch {
            throw ServiceError(.tryAgainLater, "this node is stopping", retryAfterSeconds: 1)
        }
        return try result.get()
    }

    /// Closes connections to identity providers; sign-ins through them that are underway fail.
    func shutdown() async { await providers.shutdown() }
}

extension AddressLimiter {
    /// Seconds until an address may try again.
    func retryAfterSeconds(_ address: String, now: UInt64) -> Double {
        Double(retryAfterMilliseconds(address, now: now)) / 1_000
    }
}

extension WebContext {
    /// Where a user signs in for the container of an API token, for the `redirectURL` of answers; good for 20 minutes.
    ///
    /// - Parameters:
    ///   - token: the request's API token.
    ///   - base: scheme, host and port under which browsers reach this cluster, such as `https://zk.example.com:8443`.
    ///   - asker: the `Origin` header of the request; the token of the session goes to pages of that origin only.
    /// - Returns: nil on a node without an encryption key.
    func redirectURL(for token: Token, origin base: String, asker: String?) -> String? {
        guard let signer = service.signer else { return nil }
        let ticket = signer.ticket(
            SignInTicket(tokenID: token.id, origin: base, asker: asker.flatMap { try? OriginRule.normalized($0) })
                .encoded(), purpose: SignInTicket.purpose,
            expires: service.now + SignInTicket.lifetimeMilliseconds)
        return "\(base)/sign-in?ticket=\(ticket)"
    }
}
