package import Admission
import Cluster
import Directory
import RaftCore
import RecordModel

/// Finds out who asks.
package struct CallerIdentification: Sendable {
    let node: ClusterNode
    let cluster: ClusterCalls
    let accounts: Accounts
    let signer: SessionSigner?
    let failures: FailedAuthentications

    /// The name of the administrator whose own token has a secret; nil where there is none. As with other tokens, it
    /// works on every node as soon as it was made, and on none once it is revoked.
    /// - Throws: `THROTTLED` where the address has failed too often, `TRY_AGAIN_LATER` where the directory cannot be
    ///   relied on.
    package func administrator(withSecret secret: Substring, address: String?) async throws(RequestFailure) -> String? {
        try await cluster.requireDirectory()
        if let name = node.directory.snapshot.administrator(withSecret: secret) { return name }
        try failures.requireFew(of: address)
        try await cluster.refreshDirectory()
        return node.directory.snapshot.administrator(withSecret: secret)
    }

    /// Finds out whether a request's credential is known, so that the body of any other is not even read. A refusal is
    /// believed only after this node has caught up with the directory.
    /// - Parameter signature: that of a server-to-server key, where the request has one.
    /// - Throws: `AUTHENTICATION_FAILED` where the credential is missing, unknown or another container's;
    ///   `ACCESS_DENIED` for a page that it is not for; `NOT_FOUND` where the container was deleted; `THROTTLED` where
    ///   the address has failed too often.
    package func precheck(
        _ credentials: Credentials, _ signature: RequestSignature? = nil, for scope: RequestScope, address: String?
    ) async throws(RequestFailure) -> Precheck {
        do throws(ServiceError) { return try precheck(credentials, signature, for: scope) } catch {}
        let isAdministrator = credentials.administrator != nil
        // What was not sent cannot be known better elsewhere.
        if isAdministrator || signature != nil || credentials.apiToken != nil {
            if !isAdministrator { try failures.requireFew(of: address) }
            try await cluster.refreshDirectory()
        }
        do throws(ServiceError) {
            return try precheck(credentials, signature, for: scope)
        } catch {
            throw refusal(error, credentials, to: scope.target, address: address)
        }
    }

    private func precheck(
        _ credentials: Credentials, _ signature: RequestSignature?, for scope: RequestScope
    ) throws(ServiceError) -> Precheck {
        let directory = node.directory.snapshot
        let token = try Admission.precheck(credentials, signature, for: scope.target, in: directory)
        return Precheck(
            directoryVersion: directory.version, apiToken: token,
            rateLimit: RateExchange.limit(of: scope.rateKey, in: directory))
    }

    /// Decides who the caller is. A refusal is believed only after this node has caught up with the directory, so that
    /// a token works on every node as soon as it was made; and what was revoked works nowhere, because a node relies on
    /// what it knows no longer than its lease of the directory.
    /// - Parameter address: the client's, whose failures are counted; beyond their limit nothing is asked for it.
    func identify(
        _ credentials: Credentials, _ precheck: Precheck, to target: Target, address: String?
    ) async throws(RequestFailure) -> AdmittedRequest {
        try await cluster.requireDirectory()
        var failure: ServiceError
        let session = try await accounts.session(of: credentials, signer)
        do throws(ServiceError) { return try admitted(credentials, precheck, session, to: target) } catch {
            failure = error
        }
        // What was not sent cannot be known better elsewhere.
        let isMissing =
            credentials.signed == nil && credentials.apiToken == nil
            || failure.code == .authenticationRequired && credentials.webAuthToken == nil
        if !isMissing {
            try failures.requireFew(of: address)
            try await cluster.refreshDirectory()
            let session = try await accounts.session(of: credentials, signer)
            do throws(ServiceError) { return try admitted(credentials, precheck, session, to: target) } catch {
                failure = error
            }
        }
        throw refusal(failure, credentials, to: target, address: address)
    }

    private func admitted(
        _ credentials: Credentials, _ precheck: Precheck, _ session: PresentedSession?, to target: Target
    ) throws(ServiceError) -> AdmittedRequest {
        let directory = node.directory.snapshot
        let known = precheck.directoryVersion == directory.version ? precheck.apiToken : nil
        return AdmittedRequest(
            admitted: try Admission.admit(
                credentials, to: target, in: directory, session: session, known: known,
                now: node.platform.clock.wallMilliseconds),
            directory: directory)
    }

    /// A refusal as the client gets it: with where to sign in, or `THROTTLED` where its address has failed too often.
    private func refusal(
        _ error: ServiceError, _ credentials: Credentials, to target: Target, address: String?
    ) -> RequestFailure {
        // What it sent was right while its container lived.
        if error.code == .notFound { return RequestFailure(error) }
        let hasSent = credentials.webAuthToken != nil || credentials.signed != nil
        if error.code != .authenticationRequired || hasSent {
            do throws(RequestFailure) { try failures.count(of: address) } catch { return error }
        }
        var failure = RequestFailure(error)
        if error.code == .authenticationRequired,
            let token = try? Admission.apiToken(credentials, for: target, in: node.directory.snapshot)
        {
            failure.signIn = token
        }
        return failure
    }
}

/// Counts, by address, the requests whose credentials were wrong. Any thread.
package final class FailedAuthentications: Sendable {
    private static let perMinute = 3_000
    private let limiter = AddressLimiter(perMinute: perMinute, burst: 1_500, addressesMax: 50_000)
    private let now: @Sendable () -> UInt64

    /// - Parameter now: nanoseconds of a clock that does not jump.
    init(now: @escaping @Sendable () -> UInt64) { self.now = now }

    /// - Throws: `THROTTLED` where an address has failed too often, before its requests cost anything.
    func requireFew(of address: String?) throws(RequestFailure) {
        let now = self.now()
        guard let address, !limiter.allows(address, now: now) else { return }
        throw tooMany(of: address, now: now)
    }

    /// Counts a request that failed to authenticate.
    /// - Throws: `THROTTLED` where its address has failed too often.
    package func count(of address: String?) throws(RequestFailure) {
        let now = self.now()
        guard let address, !limiter.decide(address, now: now) else { return }
        throw tooMany(of: address, now: now)
    }

    private func tooMany(of address: String, now: UInt64) -> RequestFailure {
        .throttled(
            "too many requests from this address failed to authenticate; wait, and mend the token or key",
            retryAfterSeconds: Double(limiter.retryAfterMilliseconds(address, now: now)) / 1_000
        ).by("failedAuthentications", limit: Self.perMinute)
    }
}
