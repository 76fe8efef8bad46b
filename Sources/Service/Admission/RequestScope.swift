package import Admission
import Authorization
import Cluster
package import Directory
import Telemetry

/// What a request is for.
package struct RequestScope: Sendable {
    /// The container and environment that the request names, and whether it needs a user.
    package var target: Target
    /// Which of the container's rates it spends.
    package var rate: RateKind
    /// Whether it waits for something to happen: then it takes no place among the requests that the node works on, and
    /// gets the session's new token of the moment in which it is answered.
    package var isWatch: Bool
    /// Whether a copy of the request would do something again.
    package var mayChangeData: Bool
    /// Whether it changes anything at all.
    package var isWrite: Bool

    package init(
        target: Target, rate: RateKind, isWatch: Bool = false, mayChangeData: Bool = false, isWrite: Bool = false
    ) {
        self.target = target
        self.rate = rate
        self.isWatch = isWatch
        self.mayChangeData = mayChangeData
        self.isWrite = isWrite
    }

    /// The rate of which the request spends a token.
    package var rateKey: RateKey { RateKey(container: target.container, kind: rate) }
}

/// What was found out about a request before its body was read. It keeps no snapshot of the directory: a body may take
/// a minute.
package struct Precheck: Sendable {
    /// Of the directory in which the credential was found.
    let directoryVersion: UInt64
    /// Nil for keys and administrators.
    let apiToken: Token?
    /// Requests a second that the container may make over all nodes.
    package let rateLimit: UInt64
}

/// What a request that was let in is worked on with: who asks, and the directory as it was when that was decided.
///
/// It is for one request. What goes on for longer asks for the directory again.
package struct AdmittedRequest: Sendable {
    /// Who asks.
    package let admitted: Admitted
    /// By which all of it is decided.
    package let directory: DirectorySnapshot
}

/// What an answer says beside its body, also where the request fails.
package struct RequestNotes: Sendable {
    /// Who asked, once that is known.
    package var admitted: Admitted?
    /// The administrator who asked, as the audit log names them, once that is known: before the request is let in.
    package var administrator: String?
    /// Who asked, as the audit log names them, also where the request was not let in.
    package var actor: String { admitted?.actor ?? administrator ?? AuditOrigin.anonymous }
    /// Takes the place of the web auth token that the request came with.
    package var webAuthToken: String?
    /// What is left of the container's rate.
    package var rate: Rate?

    /// So many more requests would be accepted at once; in so many milliseconds more of them.
    package struct Rate: Sendable {
        /// Which of the container's rates it is.
        package var kind: RateKind
        /// Requests that would be accepted at once; 0 after a refusal.
        package var remaining: Int
        /// Milliseconds until this node's burst is full again; after a refusal, until the request may come again.
        package var resetMilliseconds: Int
    }

    package init() {}
}

/// Who sends a request, and how it is found again in logs.
package struct Requester: Sendable {
    /// The caller, and the credential by which it was known.
    package var admitted: Admitted
    /// The request's own name.
    package var requestID: String
    /// The client's address, where it is known.
    package var address: String?

    package init(_ admitted: Admitted, requestID: String, address: String?) {
        self.admitted = admitted
        self.requestID = requestID
        self.address = address
    }

    func origin(at time: Int64) -> AuditOrigin {
        AuditOrigin(actor: admitted.actor, requestID: requestID, address: address ?? "", time: time)
    }
}

extension RecordService {
    /// Lets a request in, whose credential was found known before its body was read: decides who asks, replaces the
    /// session's token, spends the container's rate, takes a place among the requests that the node works on, and makes
    /// sure that a signature is new.
    ///
    /// All of it is decided by the directory as this node has it now, under its lease: what was revoked while the body
    /// came in, or while the request waited for its turn, is refused. `leave` must follow where it returns.
    /// - Parameters:
    ///   - acting: the administrator who acts as a user; nil for everybody else.
    ///   - notes: gets what the answer says beside its body.
    package func admit(
        _ credentials: Credentials, as acting: ActingCredential? = nil, _ precheck: Precheck, to scope: RequestScope,
        address: String?, by deadline: Deadline, _ notes: inout RequestNotes
    ) async throws(RequestFailure) -> AdmittedRequest {
        let span = tracer?.part("admission", of: nil)
        defer { span?.finish() }
        var context = try await identified(credentials, as: acting, precheck, to: scope, address: address)
        notes.admitted = context.admitted
        tokenUses.note(context.admitted, in: context.directory, now: now)
        if let session = context.admitted.session { notes.webAuthToken = try peerExchange.sessions.rotate(session) }
        try await takeTurn(scope, context, &notes)
        if !context.admitted.caller.isAdministrator, !node.isDirectoryCurrent {
            // It waited for longer than what is known of the directory is relied on. Who waits for that may not go on
            // at once: all that did would begin together, beyond the rate. So it pays for another turn.
            leave(scope)
            context = try await identified(credentials, as: acting, precheck, to: scope, address: address)
            try await takeTurn(scope, context, &notes)
        }
        do throws(RequestFailure) {
            if !context.admitted.caller.isAdministrator {
                guard node.isDirectoryCurrent else { throw .nothingDone("this node is behind the directory") }
                if node.directory.snapshot.version != context.directory.version {
                    context = try await identified(credentials, as: acting, precheck, to: scope, address: address)
                }
            }
            if scope.mayChangeData, let signature = credentials.signed?.signature {
                try await peerExchange.requireNew(signature, container: scope.target.container, by: deadline)
            }
        } catch {
            leave(scope)
            throw error
        }
        return context
    }

    /// Spends the container's rate, and takes a place among the requests that the node works on. May take seconds.
    private func takeTurn(
        _ scope: RequestScope, _ context: AdmittedRequest, _ notes: inout RequestNotes
    ) async throws(RequestFailure) {
        let admitted = context.admitted
        if !admitted.caller.isAdministrator {
            try await peerExchange.rates.spend(scope.rateKey, by: admitted.debtor, in: context.directory, &notes)
        }
        if !scope.isWatch {
            try await gate.takePlace(container: scope.target.container, in: context.directory, on: node)
        }
    }

    /// Who asks, and the directory as it is now.
    private func identified(
        _ credentials: Credentials, as acting: ActingCredential?, _ precheck: Precheck, to scope: RequestScope,
        address: String?
    ) async throws(RequestFailure) -> AdmittedRequest {
        if let acting { return try await acting.admitted(by: self, to: scope.target, writes: scope.isWrite) }
        guard let administrator = credentials.administrator else {
            return try await identification.identify(credentials, precheck, to: scope.target, address: address)
        }
        var admitted = Admitted(caller: .administrator)
        admitted.administrator = administrator
        return AdmittedRequest(admitted: admitted, directory: node.directory.snapshot)
    }

    /// Ends a request that `admit` let in.
    package func leave(_ scope: RequestScope) {
        if !scope.isWatch { gate.leave(container: scope.target.container) }
    }
}

extension Admitted {
    /// Who owes what requests cost beyond their first token: an account or the administrator who acts as it, or all
    /// callers without an account.
    var debtor: String { administrator ?? accountID ?? "" }

    /// Who asks, as the audit log names them.
    fileprivate var actor: String {
        if caller.isAdministrator { return administrator ?? AuditOrigin.administrator }
        if let keyID { return "key \(keyID)" }
        guard let accountID else { return AuditOrigin.anonymous }
        let user = "user \(accountName ?? accountID)"
        return administrator.map { "\($0) as \(user)" } ?? user
    }
}
