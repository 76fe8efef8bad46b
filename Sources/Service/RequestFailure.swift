package import Cluster
package import Directory
package import KeyValueStore
package import RecordModel

/// A request that failed as a whole.
package struct RequestFailure: Error {
    /// What the client is told: CloudKit's code, the reason, and after how long a retry may help.
    package var error: ServiceError
    /// The API token whose user is to sign in; an answer can say where.
    package var signIn: Token?
    /// More of it, for programs.
    package var details: Details?
    /// The limit that refused it, for the log of requests.
    package var rule: RequestRefusal?

    /// What an error says for programs, beside its code and reason.
    package enum Details: Hashable, Sendable {
        /// A limit that was reached: its name, what the request would have led to, and what is allowed; the key at
        /// fault, where it is one key's fault.
        case limit(String, actual: Int64, max: Int64, key: String? = nil)
        /// A key-value store's feed cannot be followed from the token that was sent.
        case expiredToken(KeyValueTokenExpiry)
        /// Whether anything was done is not known: a repeat under the same key tells.
        case outcomeUnknown
        /// CloudKit has it, and this version does not have it yet.
        case notBuilt
        /// The resource takes these methods only.
        case methods([String])
        /// The request is too large in the form in which nodes keep it.
        case requestTooLarge
        /// The body is larger than it may be, and was not read to its end.
        case bodyTooLarge
        /// The body did not arrive in time.
        case bodyTooSlow
        /// The URL was good once.
        case expiredURL
        /// The administrator's role is below this one, or does not hold there.
        case leastRole(AdministratorRole)
        /// The administrator has to sign in to the console once more.
        case freshSignIn
    }

    package init(_ error: ServiceError, details: Details? = nil) {
        self.error = error
        self.details = details
    }

    package init(_ code: ErrorCode, _ reason: String, details: Details? = nil) {
        self.init(ServiceError(code, reason), details: details)
    }

    /// What the client has to change.
    package static func badRequest(_ reason: String, details: Details? = nil) -> RequestFailure {
        RequestFailure(.badRequest, reason, details: details)
    }

    /// What is not there.
    package static func notFound(_ reason: String) -> RequestFailure { RequestFailure(.notFound, reason) }

    /// What the caller may not do.
    package static func accessDenied(_ reason: String, details: Details? = nil) -> RequestFailure {
        RequestFailure(.accessDenied, reason, details: details)
    }

    /// What proves nobody's identity.
    package static func authenticationFailed(_ reason: String) -> RequestFailure {
        RequestFailure(.authenticationFailed, reason)
    }

    /// What a repeat after a second may find otherwise.
    package static func tryAgain(_ reason: String) -> RequestFailure {
        RequestFailure(ServiceError(.tryAgainLater, reason, retryAfterSeconds: 1))
    }

    /// What the node has no room for now.
    package static func nothingDone(_ reason: String) -> RequestFailure {
        RequestFailure(ServiceError.nothingDone(reason))
    }

    /// What comes too often.
    package static func throttled(_ reason: String, retryAfterSeconds: Double) -> RequestFailure {
        RequestFailure(ServiceError(.throttled, reason, retryAfterSeconds: retryAfterSeconds))
    }

    /// What no build of ours answers.
    static let otherAnswer = RequestFailure(.internalError, "the shard gave an answer to another question")

    /// The same, refused by a limit.
    func by(_ rule: String, limit: Int, used: Int? = nil) -> RequestFailure {
        var failure = self
        failure.rule = RequestRefusal(rule: rule, limit: Int64(limit), used: used.map { Int64($0) })
        return failure
    }

    /// Something CloudKit has and this server does not have yet.
    package static func notBuilt(_ what: String) -> RequestFailure {
        RequestFailure(.badRequest, "\(what) is not built yet in this version of Zonekeeper", details: .notBuilt)
    }

    package init(_ error: ClusterError) {
        switch error {
        case .unavailable(let reason):
            self.init(ServiceError.nothingDone(reason))
        case .outcomeUnknown(let reason):
            self.init(
                ServiceError(
                    .tryAgainLater,
                    "outcome unknown: \(reason). Send it again with the same Idempotency-Key, or look before you do",
                    retryAfterSeconds: 1),
                details: .outcomeUnknown)
        case .failed(let reason):
            self.init(.internalError, reason)
        case .readEnded:
            self.init(
                ServiceError(
                    .tryAgainLater,
                    "the answer was not ready in time, and the work on it has ended. Send the request again, or ask for less: fewer "
                        + "filters, fewer values in them, or a smaller resultsLimit", retryAfterSeconds: 1))
        case .tooLarge(let size):
            switch size.part {
            case .request:
                self.init(
                    ServiceError(
                        .badRequest,
                        "nothing was done: the request comes to \(size.bytes) bytes, at most \(size.bytesMax) are possible; send "
                            + "less in one request", detail: .tooLarge), details: .requestTooLarge)
            case .answer:
                self.init(
                    ServiceError(
                        .badRequest,
                        "what was asked for comes to \(size.bytes) bytes, which is too large for one answer; ask for less of it. "
                            + "What was to be changed is changed", detail: .tooLongAnswer))
            }
        }
    }

    /// A batch of preferences that breaks a rule.
    init(_ refusal: KeyValueRefusal) {
        self.init(refusal.isQuotaViolation ? .quotaExceeded : .badRequest, refusal.description)
        guard refusal.rule.isLimit else {
            error.detail = .idempotencyKey
            return
        }
        details = .limit(refusal.rule.name, actual: refusal.actual, max: refusal.max, key: refusal.key)
    }

    /// A sync token that is one, and cannot be followed.
    /// - Parameter reason: why, and what to do; nil for preferences.
    init(_ expiry: KeyValueTokenExpiry, _ reason: String? = nil) {
        let reason = reason ?? "\(expiry). Start again without one"
        self.init(.badRequest, "the syncToken has expired: \(reason)", details: .expiredToken(expiry))
        error.detail = .expiredSyncToken
    }
}

/// Does something; what it throws becomes the request's failure.
package func relay<Value>(_ work: @autoclosure () throws(ServiceError) -> Value) throws(RequestFailure) -> Value {
    do throws(ServiceError) { return try work() } catch { throw RequestFailure(error) }
}

/// Asks the cluster; what it throws becomes the request's failure.
func ask<Value>(
    _ question: @autoclosure () async throws(ClusterError) -> Value
) async throws(RequestFailure) -> Value {
    do throws(ClusterError) { return try await question() } catch { throw RequestFailure(error) }
}
