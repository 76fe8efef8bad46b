import Admission
import Authorization
import Cluster
import Crypto
import Directory
import Hummingbird
import KeyValueStore
import RecordModel
import Service

/// A request for a database, as its route sees it.
struct DatabaseCall: Sendable {
    var request: DatabaseRequest
    var body: [UInt8]
    /// Whether it came with GET, and so without a body.
    var isGet: Bool

    /// The request's body as one of the protocol's forms.
    func form<Form: WebRequest>(_: Form.Type) throws(RequestFailure) -> Form {
        do throws(ServiceError) {
            return try Form(body: body)
        } catch {
            throw RequestFailure(error)
        }
    }
}

// Requests for data: what each goes through before its route sees it.
extension WebResponder {
    /// A request that was let in: who sends it, what it says, and by when it is answered.
    private struct Entry {
        var requester: Requester
        var body: [UInt8]
        var deadline: Deadline
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
        let scope = RequestScope(
            target: target, rate: .keyValues, isWatch: action == .watch, mayChangeData: action == .set)
        return try await enter(call, scope, action: "kv/\(action.rawValue)", role: .admin, &headers) {
            entry throws(RequestFailure) in
            let store = StoreKey(
                container: target.container, environment: environment,
                user: entry.requester.admitted.caller.user ?? "")
            let preferences = Preferences(context.service, store)
            return try await PreferenceRoutes(
                preferences: preferences, call: call, body: entry.body, deadline: entry.deadline
            ).respond(to: action) { limit in
                PreferenceStream(
                    watch: PreferenceWatch(
                        preferences, credentials: call.credentials, target: target, requester: entry.requester,
                        limit: limit),
                    bodies: context.bodies, uuid: call.uuid, clientDisconnect: call.clientDisconnect)
            }
        }
    }

    func notifications(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let url = call.url
        guard url.segments.count == 5, url.segments[1] == "1" else {
            throw RequestFailure(.notFound, "notifications are at /push/1/{container}/{environment}/{changes|watch}")
        }
        let environment = try AdminRequest.environment(url.segments[3])
        let container = try AdminRequest.containerName(url.segments[2])
        let target = Target(container: container, environment: environment, needsUser: true)
        let action = try NotificationAction(url.segments[4], method: call.request.method.rawValue)
        let scope = RequestScope(target: target, rate: .requests, isWatch: action == .watch)
        return try await enter(call, scope, action: "push/\(action.rawValue)", role: .admin, &headers) {
            entry throws(RequestFailure) in
            let store = StoreKey(
                container: container, environment: environment, user: entry.requester.admitted.caller.user ?? "")
            return try await NotificationRoutes(
                service: context.service, store: store, accountID: entry.requester.admitted.accountID ?? "", call: call,
                entry.body
            ).respond(to: action, by: entry.deadline) { notifications, limit in
                PreferenceStream(
                    watch: PreferenceWatch(
                        notifications, credentials: call.credentials, target: target, requester: entry.requester,
                        limit: limit),
                    bodies: context.bodies, uuid: call.uuid, clientDisconnect: call.clientDisconnect)
            }
        }
    }

    func database(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        let (target, databaseScope, action) = try Self.parse(call)
        let scope = RequestScope(target: target, rate: .requests, mayChangeData: call.mayChangeData)
        return try await enter(call, scope, action: action.rawValue, role: action.leastRole, &headers) {
            entry throws(RequestFailure) in
            let key = DatabaseKey(
                container: target.container, environment: target.environment, scope: databaseScope,
                owner: databaseScope == .public
                    ? DatabaseKey.publicOwner : entry.requester.admitted.caller.user ?? "")
            var request = DatabaseRequest(key: key, requester: entry.requester, deadline: entry.deadline)
            if let text = call.request.headers[WebCall.idempotencyKey] {
                request.identity = try context.service.judgedByClock { now throws(RequestFailure) in
                    try RequestIdentity(text, body: entry.body, now: now)
                }
            }
            request.wantsSyncToken = call.url["getCurrentSyncToken"] == "true"
            request.origin = call.origin
            request.clientID = try call.clientID()
            context.service.usage.carried(entry.body.count, for: key)
            let asked = DatabaseCall(request: request, body: entry.body, isGet: call.request.method == .get)
            let clientDisconnect = action.isLongRead ? call.clientDisconnect : nil
            let reply = try await clientDisconnect.whileClientStays {
                [service = context.service] () throws(RequestFailure) in
                try await action.respond(to: asked, in: service)
            }
            context.service.usage.carried(reply.body.count, for: key)
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
                details: .methods(action.methods))
        }
        if scope == .shared { throw .notBuilt("the shared database") }
        let target = Target(container: container, environment: environment, needsUser: scope != .public)
        return (target, scope, action)
    }

    /// Lets a request in and has it worked on, and tells the audit log where it was refused for what its sender may
    /// not.
    private func enter(
        _ call: WebCall, _ scope: RequestScope, action: String, role: AdministratorRole,
        _ headers: inout AnswerHeaders, _ work: (Entry) async throws(RequestFailure) -> Reply
    ) async throws(RequestFailure) -> Reply {
        var notes = RequestNotes()
        defer { headers.add(notes) }
        do throws(RequestFailure) {
            return try await admit(call, scope, role, &headers, &notes, work)
        } catch {
            var failure = error
            if error.error.code == .authenticationRequired, failure.signIn == nil {
                failure.signIn = notes.admitted?.apiToken
            }
            if error.error.code == .accessDenied {
                let subject =
                    switch call.url.segments.first {
                    case "kv": "preferences"
                    case "push": "notifications"
                    default: "\(call.url.segments.dropFirst(4).first ?? "") database"
                    }
                context.service.audit.refused(
                    context.service.origin(notes.admitted, requestID: call.uuid, address: call.address),
                    in: scope.target.container, action: action,
                    subject: "\(subject) of \(scope.target.container) (\(scope.target.environment.rawValue))")
            }
            throw failure
        }
    }

    /// The body is read before anything is decided, so that a decision is about the moment in which the request is
    /// worked on; but only that of a request whose credential is known.
    private func admit(
        _ call: WebCall, _ scope: RequestScope, _ role: AdministratorRole, _ headers: inout AnswerHeaders,
        _ notes: inout RequestNotes, _ work: (Entry) async throws(RequestFailure) -> Reply
    ) async throws(RequestFailure) -> Reply {
        let service = context.service
        let sender = try await precheckCredential(call, for: scope.target, role, &headers)
        headers.add("RateLimit-Policy", service.ratePolicy(scope.rateKey))
        let body = try await context.bodies.read(
            call.request, bytesMax: scope.isWatch ? Self.watchBodyBytesMax : Limits.requestBodyBytesMax)
        var held = body.count
        defer { context.bodies.release(held) }
        let deadline = service.node.deadline()
        var credentials = call.credentials
        switch sender {
        case .administrator(let name): credentials.administrator = name
        case .client(let signature):
            credentials.signed = signature.map {
                SignedRequest(signature: $0, target: call.request.head.path ?? "/", body: body)
            }
        }
        defer { headers.allow(notes.admitted?.apiToken) }
        let admitted = try await service.admit(
            credentials, to: scope, address: call.address, by: deadline, &notes)
        defer { service.leave(scope) }
        if scope.isWatch {
            // It waits long; its small body counts no more.
            context.bodies.release(held)
            held = 0
        }
        defer {
            // A token that was made before a wait would be older than those of other answers.
            if scope.isWatch, let session = admitted.session { notes.webAuthToken = service.newToken(of: session) }
        }
        return try await work(
            Entry(
                requester: Requester(admitted, requestID: call.uuid, address: call.address), body: body,
                deadline: deadline))
    }

    private static let watchBodyBytesMax = 4 << 10

    /// By what a request may be known.
    private enum Sender {
        /// As the audit log names them.
        case administrator(String)
        /// With the signature of a server-to-server key, where it has one.
        case client(RequestSignature?)
    }

    /// Turns away a request whose credential is not known here, before any of its body is read.
    private func precheckCredential(
        _ call: WebCall, for target: Target, _ role: AdministratorRole, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> Sender {
        let signature = try call.signature()
        // A request with tokens is a client's, whoever else it says it is.
        if call.credentials.apiToken == nil, call.bearerToken != nil || signature == nil,
            let administrator = try await administrator(call, &headers)
        {
            guard !target.needsUser else {
                throw RequestFailure(
                    .accessDenied, "the administrator may use public data, and nobody's private data or preferences")
            }
            try administrator.require(
                AdministratorNeed(role, .container), container: target.container, environment: target.environment,
                now: context.service.now)
            try await context.service.requireContainer(target.container)
            return .administrator(administrator.actor)
        }
        if let signature {
            try await context.service.requireKey(signature.keyID, address: call.address)
            return .client(signature)
        }
        try await context.service.requireAPIToken(call.credentials, for: target, address: call.address)
        return .client(nil)
    }
}
