import Admission
import Authorization
import Cluster
import Directory
import Hummingbird
import KeyValueStore
import RecordModel

// Requests for data: what each goes through before its route sees it, in this order.
extension WebResponder {
    /// A request that was let in: who sends it, what it says, and by when it is answered.
    private struct Entry {
        var admitted: Admitted
        var body: [UInt8]
        var deadline: Deadline
        /// Who asks, for the audit log.
        var origin: AuditOrigin
    }

    /// What a request is for.
    private struct Errand {
        var target: Target
        /// Which of the container's rates it spends.
        var rate: RateKind
        /// What it does and to what, as the audit log names them.
        var action: String
        var subject: String
        /// Whether it waits for something to happen: then it takes no place among the requests that the node works on, has a small body
        /// that counts until it is read, and gets the session's new token of the moment in which it is answered.
        var isWatch = false

        var bodyBytesMax: Int { isWatch ? 4 << 10 : Limits.requestBodyBytesMax }
    }

    func keyValues(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let url = call.url
        guard url.segments.count == 5, url.segments[1] == "1" else {
            throw RequestFailure(
                .notFound, "preferences are at /kv/1/{container}/{environment}/{get|set|list|changes|usage|watch}")
        }
        let environment = try AdminRequest.environment(url.segments[3])
        let container = try AdminRequest.containerName(url.segments[2])
        let target = Target(container: container, environment: environment, needsUser: true)
        let action = try KeyValueAction(url.segments[4], method: call.request.method.rawValue)
        var errand = Errand(
            target: target, rate: .keyValues, action: "kv/\(action.rawValue)",
            subject: "preferences of \(target.container) (\(environment.rawValue))")
        errand.isWatch = action == .watch
        return try await enter(call, errand, &headers) { entry throws(RequestFailure) in
            let store = StoreKey(
                container: target.container, environment: environment, user: entry.admitted.caller.user ?? "")
            return try await KeyValues(
                context: context, store: store, deadline: entry.deadline, body: entry.body,
                idempotencyKey: call.request.headers[WebCall.idempotencyKey], uuid: call.uuid,
                watching: KeyValues.Watching(
                    credentials: call.credentials, target: target, isStream: call.request.method == .get,
                    token: call.lastEventID ?? call.url["syncToken"].flatMap { $0.isEmpty ? nil : $0 },
                    limit: call.url["resultsLimit"], departure: call.departure, origin: entry.origin)
            ).respond(to: action)
        }
    }

    func database(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let (target, scope, action) = try Self.parse(call)
        let subject = "\(scope.rawValue) database of \(target.container) (\(target.environment.rawValue))"
        let errand = Errand(target: target, rate: .requests, action: action.rawValue, subject: subject)
        return try await enter(call, errand, &headers) { entry throws(RequestFailure) in
            let caller = entry.admitted.caller
            let key = DatabaseKey(
                container: target.container, environment: target.environment, scope: scope,
                owner: scope == .public ? DatabaseKey.publicOwner : caller.user ?? "")
            var request = DatabaseRequest(
                key: key, caller: caller, deadline: entry.deadline, body: entry.body,
                idempotencyKey: call.request.headers[WebCall.idempotencyKey])
            request.wantsSyncToken = call.url["getCurrentSyncToken"] == "true"
            request.isGet = call.request.method == .get
            request.origin = entry.origin
            request.subject = subject
            context.usage.carried(entry.body.count, for: key)
            let reply = try await action.respond(to: request, in: context, uuid: call.uuid)
            context.usage.carried(reply.body.count, for: key)
            return reply
        }
    }

    /// What a path asks for.
    private static func parse(
        _ call: WebCall
    ) throws(RequestFailure) -> (target: Target, scope: Scope, action: DatabaseAction) {
        let url = call.url
        let path = url.segments.dropFirst(5).joined(separator: "/")
        guard (7...8).contains(url.segments.count), url.segments[1] == "1" else {
            throw RequestFailure(
                .notFound,
                "the path is not of the form /database/1/{container}/{environment}/{database}/{entity}/{action}")
        }
        let container = try AdminRequest.containerName(url.segments[2])
        let environment = try AdminRequest.environment(url.segments[3])
        guard let scope = Scope(rawValue: url.segments[4]) else {
            throw RequestFailure(
                .badRequest, "database: 'public', 'private' or 'shared' is expected, not '\(url.segments[4])'")
        }
        guard let action = DatabaseAction(rawValue: path) else {
            throw RequestFailure(.notFound, "no action '\(path)'")
        }
        let method = call.request.method.rawValue
        guard action.methods.contains(method) else {
            throw RequestFailure(
                .badRequest,
                "\(path) is called with \(action.methods.joined(separator: " or ")), not with \(method)",
                status: 405)
        }
        if scope == .shared { throw .notBuilt("the shared database") }
        let target = Target(container: container, environment: environment, needsUser: scope != .public)
        return (target, scope, action)
    }

    /// Lets a request in and has it worked on, and tells the audit log where it was refused for what its sender may not.
    private func enter(
        _ call: WebCall, _ errand: Errand, _ headers: inout AnswerHeaders,
        _ work: (Entry) async throws(RequestFailure) -> Reply
    ) async throws(RequestFailure) -> Reply {
        var actor = "anonymous"
        do throws(RequestFailure) {
            return try await letIn(call, errand, &headers, &actor, work)
        } catch {
            if error.error.code == .accessDenied {
                context.audit.refused(
                    call.origin(of: actor, now: context.now), in: errand.target.container, action: errand.action,
                    subject: errand.subject)
            }
            throw error
        }
    }

    /// The body is read before anything is decided, so that a decision is about the moment in which the request is worked on; but
    /// nobody's whose credential is not known.
    private func letIn(
        _ call: WebCall, _ errand: Errand, _ headers: inout AnswerHeaders, _ actor: inout String,
        _ work: (Entry) async throws(RequestFailure) -> Reply
    ) async throws(RequestFailure) -> Reply {
        let target = errand.target
        let key = RateKey(container: target.container, kind: errand.rate)
        let sender = try await foresee(call, to: target)
        headers.add("RateLimit-Policy", context.ratePolicy(key))
        let body = try await context.bodies.read(call.request, bytesMax: errand.bodyBytesMax)
        var held = body.count
        defer { context.bodies.release(held) }
        let deadline = context.node.deadline()
        let admitted = try await identify(call, sender, to: target, body: body)
        actor = self.actor(admitted)
        headers.allow(admitted.apiToken)
        let token = try admitted.session.flatMap { session throws(RequestFailure) in try context.rotate(session) }
        defer {
            // One that was made before a wait would be older than those that came of other requests meanwhile.
            let newest = errand.isWatch ? admitted.session.flatMap { context.newToken(of: $0) } : token
            if let newest { headers.add("X-Apple-CloudKit-Web-Auth-Token", newest) }
        }
        if !admitted.caller.isAdministrator { try await context.spend(key, headers: &headers) }
        if errand.isWatch {
            context.bodies.release(held)
            held = 0
        } else {
            try await context.enter(container: target.container)
        }
        defer { if !errand.isWatch { context.gate.leave(container: target.container) } }
        if case .key(let signature) = sender, call.mayChangeData {
            try await context.requireNew(signature, container: target.container, by: deadline)
        }
        do throws(RequestFailure) {
            return try await work(
                Entry(
                    admitted: admitted, body: body, deadline: deadline,
                    origin: call.origin(of: actor, now: context.now)))
        } catch {
            var failure = error
            if error.error.code == .authenticationRequired { failure.signIn = admitted.apiToken }
            throw failure
        }
    }

    /// By what a request may be known.
    private enum Sender {
        case administrator
        case key(RequestSignature)
        case client
    }

    /// Turns away whoever sends no credential that is known here, before any of the body is read.
    private func foresee(_ call: WebCall, to target: Target) async throws(RequestFailure) -> Sender {
        // A request with tokens is a client's, whoever else it says it is.
        if call.bearerToken != nil, call.credentials.apiToken == nil {
            try requireAdministrator(call)
            guard !target.needsUser else {
                throw RequestFailure(
                    .accessDenied, "the administrator may use public data, and nobody's private data or preferences")
            }
            try await context.requireContainer(target.container)
            return .administrator
        }
        if let signature = try call.signature() {
            try await context.requireKey(signature.keyID, address: call.address)
            return .key(signature)
        }
        try await context.requireAPIToken(call.credentials, for: target, address: call.address)
        return .client
    }

    private func identify(
        _ call: WebCall, _ sender: Sender, to target: Target, body: [UInt8]
    ) async throws(RequestFailure) -> Admitted {
        var credentials = call.credentials
        switch sender {
        case .administrator: return Admitted(caller: .administrator)
        case .client: break
        case .key(let signature):
            credentials.signed = SignedRequest(
                signature: signature, target: call.request.head.path ?? "/", body: body)
        }
        return try await context.admit(credentials, to: target, address: call.address)
    }

    /// Who it was, for the audit log.
    private func actor(_ admitted: Admitted) -> String {
        if admitted.caller.isAdministrator { return AuditOrigin.administrator }
        if let key = admitted.keyID { return "key \(key)" }
        guard let id = admitted.accountID else { return "anonymous" }
        return "user \(context.node.directory.snapshot.account(withID: id)?.name ?? id)"
    }
}
