package import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel

// Who asks, and how fast: what every request goes through before it is looked at.
extension RecordService {
    /// The name of the administrator whose own token has a secret; nil where there is none. As with other tokens, it
    /// works on every node as soon as it was made, and on none once it is revoked.
    /// - Throws: `THROTTLED` where the address has failed too often, `TRY_AGAIN_LATER` where the directory cannot be
    ///   relied on.
    package func administrator(withSecret secret: Substring, address: String?) async throws(RequestFailure) -> String? {
        try await ask(await node.requireDirectory())
        if let name = node.directory.snapshot.administrator(withSecret: secret) { return name }
        try requireFewFailures(of: address)
        try await refreshDirectory()
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
            if !isAdministrator { try requireFewFailures(of: address) }
            try await refreshDirectory()
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
    /// - Parameter address: the client's, whose failures are counted.
    func identify(
        _ credentials: Credentials, _ precheck: Precheck, to target: Target, address: String?
    ) async throws(RequestFailure) -> AdmittedRequest {
        try await ask(await node.requireDirectory())
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
            try await refreshDirectory()
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
                credentials, to: target, in: directory, session: session, known: known, now: now),
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
            do throws(RequestFailure) { try countFailure(of: address) } catch { return error }
        }
        var failure = RequestFailure(error)
        if error.code == .authenticationRequired,
            let token = try? Admission.apiToken(credentials, for: target, in: node.directory.snapshot)
        {
            failure.signIn = token
        }
        return failure
    }

    /// - Throws: `THROTTLED` where an address has failed too often, before its requests cost anything.
    func requireFewFailures(of address: String?) throws(RequestFailure) {
        try failedAuthentications.requireFew(of: address, now: uptime)
    }

    /// The web auth token that takes the place of the one that a request came with.
    /// - Throws: `AUTHENTICATION_REQUIRED` where that one was replaced too long ago.
    func rotate(_ use: SessionUse) throws(RequestFailure) -> String? {
        switch rotation.present(sessionID: use.sessionID, issued: use.issued, now: Int64(uptime / 1_000_000)) {
        case .superseded:
            throw RequestFailure(
                .authenticationRequired,
                "request needs authorization: the ckWebAuthToken was replaced by a newer one, which an earlier answer carried"
            )
        case .accepted(let isNewest):
            if isNewest { peerExchange.didUse(use) }
            return newToken(of: use)
        }
    }

    /// A web auth token of a session that is as new as this moment.
    package func newToken(of use: SessionUse) -> String? {
        let issued = rotation.nextIssue(of: use.sessionID, after: use.issued, now: now)
        return signer?.token(sessionID: use.sessionID, issued: issued)
    }

    /// Makes sure that a signed request which changes something is not a copy of an earlier one.
    func requireNew(
        _ signature: RequestSignature, container: String, by deadline: Deadline
    ) async throws(RequestFailure) {
        do throws(ClusterError) {
            if try await peerExchange.isNew(signature, container: container, by: deadline) { return }
        } catch {
            throw RequestFailure(error)
        }
        throw .authenticationFailed(
            "X-Apple-CloudKit-Request-SignatureV1: this signature was used before; sign each request anew, with the present time"
        )
    }

    /// Counts a request that failed to authenticate.
    /// - Throws: `THROTTLED` where its address has failed too often.
    package func countFailure(of address: String?) throws(RequestFailure) {
        try failedAuthentications.count(of: address, now: uptime)
    }

    /// Takes a place among the requests that this node works on, waiting for the container's turn where there is none.
    /// - Throws: `TRY_AGAIN_LATER` where too many of the container's wait already, or its turn does not come in time.
    func takePlace(container: String, in directory: DirectorySnapshot) async throws(RequestFailure) {
        let limit = Int(directory.limits(of: container)[.concurrentRequests])
        // Where nobody waits, a timer would only cost.
        if gate.enterNow(container: container, containerMax: limit) { return }
        let decision = await enterInTime(container: container, containerMax: limit)
        guard case .refused(let refusal) = decision else { return }
        let reason =
            switch refusal {
            case .containerQueueFull: "too many requests of container '\(container)' wait on this node"
            case .nodeQueueFull: "too many requests wait on this node"
            case .cancelled: "this node has too much to do, and the request's turn did not come in time"
            }
        throw .nothingDone(reason).by(ContainerLimit.concurrentRequests.rawValue, limit: limit, used: gate.load.inside)
    }

    private func enterInTime(container: String, containerMax: Int) async -> GateDecision {
        await withTaskGroup(of: GateDecision?.self) { [gate, node] tasks in
            tasks.addTask { await gate.enter(container: container, containerMax: containerMax) }
            tasks.addTask {
                try? await node.platform.clock.sleep(milliseconds: node.settings.requestDeadlineMilliseconds)
                return nil
            }
            defer { tasks.cancelAll() }
            for await decision in tasks {
                if let decision { return decision }
                // The time is over: the request leaves its line, unless its turn came just now.
                tasks.cancelAll()
            }
            return .refused(.cancelled)
        }
    }

    /// - Throws: `NOT_FOUND` where there is no such container, or it was deleted.
    func requireContainer(_ container: String) async throws(RequestFailure) {
        if node.directory.snapshot.containers[container] != nil { return }
        try await refreshDirectory()
        try relay(node.directory.snapshot.requireContainer(container))
    }
}

/// Counts, by address, the requests whose credentials were wrong. Any thread.
final class FailedAuthentications: Sendable {
    private static let perMinute = 3_000
    private let limiter = AddressLimiter(perMinute: perMinute, burst: 1_500, addressesMax: 50_000)

    /// - Throws: `THROTTLED` where an address has failed too often.
    func requireFew(of address: String?, now: UInt64) throws(RequestFailure) {
        guard let address, !limiter.allows(address, now: now) else { return }
        throw tooMany(of: address, now: now)
    }

    /// Counts one more.
    /// - Throws: `THROTTLED` where its address has failed too often.
    func count(of address: String?, now: UInt64) throws(RequestFailure) {
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
