package import Admission
import Cluster
import Directory
import RecordModel
import Wire

/// What a node needs to know its users, beside the directory: the signer of sessions and links, the memory of rotating tokens, the
/// limits of attempts, a pool for hashing passwords, and the client that talks to identity providers.
///
/// One for each node, shared by all requests. `shutdown` must be called once at the end.
package final class IdentityServices: Sendable {
    /// Nil on a node without an encryption key; nobody can sign in there.
    package let signer: SessionSigner?
    package let rotation: SessionRotation
    /// Attempts to sign in or up, by address.
    package let signInAttempts: AddressLimiter
    /// Requests whose credentials were wrong, by address.
    package let failedAuthentications: AddressLimiter
    let passwords: BlockingPool
    let providers: ProviderClient
    /// Lock-outs of names that no account has, so that a lock-out does not tell which names exist. Each node counts its own, while those
    /// of accounts are the cluster's: who asks several nodes can tell them apart.
    let decoys = LocalLockouts()
    let places = KnownPlaces()

    /// - Parameter encryptionKey: the cluster's, the same on all nodes.
    package init(encryptionKey: [UInt8]?) {
        signer = encryptionKey.map { SessionSigner(clusterKey: $0) }
        rotation = SessionRotation(sessionsMax: 200_000)
        signInAttempts = AddressLimiter(perMinute: 30, burst: 30, addressesMax: 50_000)
        failedAuthentications = AddressLimiter(perMinute: 3_000, burst: 1_500, addressesMax: 50_000)
        passwords = BlockingPool()
        providers = ProviderClient()
    }

    /// Closes connections to identity providers; sign-ins through them that are underway fail.
    package func shutdown() async { await providers.shutdown() }

    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key.
    func requireSigner() throws(RequestFailure) -> SessionSigner {
        guard let signer else {
            throw RequestFailure(
                .internalError,
                "nobody can sign in: this node has no encryption key. Start it with --encryption-key-file, the same on all nodes"
            )
        }
        return signer
    }
}

extension AddressLimiter {
    /// Seconds until an address may try again.
    func retryAfterSeconds(_ address: String, now: UInt64) -> Double {
        Double(retryAfterMilliseconds(address, now: now)) / 1_000
    }
}

extension WebContext {
    /// Has the directory take an entry, and waits until this node knows, where it can. Other nodes may learn of it a moment later:
    /// for what they look up before they refuse anything by it.
    func enter(_ entry: DirectoryEntry, by deadline: Deadline) async throws(RequestFailure) {
        if case .refused(let error) = try await submit(entry, by: deadline) { throw RequestFailure(error) }
        await catchUp()
    }

    /// Where a user signs in for the container of an API token, for the `redirectURL` of answers; good for 20 minutes.
    ///
    /// - Parameters:
    ///   - token: the request's API token.
    ///   - base: scheme, host and port under which browsers reach this cluster, such as `https://zk.example.com:8443`.
    /// - Returns: nil on a node without an encryption key.
    func redirectURL(for token: Token, origin base: String) -> String? {
        guard let signer = identity.signer else { return nil }
        let ticket = signer.ticket(
            SignInTicket(tokenID: token.id, origin: base).encoded(), purpose: SignInTicket.purpose,
            expires: now + SignInTicket.lifetimeMilliseconds)
        return "\(base)/sign-in?ticket=\(ticket)"
    }
}
