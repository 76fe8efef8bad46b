import Admission
import Authorization
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
    /// Whether it came with GET or HEAD, and so without a body.
    var isGet: Bool
    /// What the log of requests is to say of it.
    var note: RequestNote

    func form<Form: WebRequest>(_: Form.Type) throws(RequestFailure) -> Form { try body.form() }
}

extension [UInt8] {
    /// A body as one of the protocol's forms.
    func form<Form: WebRequest>(_: Form.Type = Form.self) throws(RequestFailure) -> Form {
        return try relay(Form(body: self))
    }
}

/// What a request for data asks for, by its path and method.
struct DataRoute: Sendable {
    enum Action: Sendable {
        case database(Scope, DatabaseAction)
        case keyValues(KeyValueAction)
        case notifications(NotificationAction)
        case deviceTokens(DeviceTokenAction)
    }

    let scope: RequestScope
    let action: Action

    var target: Target { scope.target }

    /// Nil for a path of something else.
    /// - Throws: what is wrong with the path or the method.
    init?(_ call: WebCall) throws(RequestFailure) {
        let (url, method) = (call.url, call.request.method.rawValue)
        switch url.segments.first {
        case "database":
            guard (7...8).contains(url.segments.count), url.segments[1] == "1" else {
                throw .notFound(
                    "the path is not of the form /database/1/{container}/{environment}/{database}/{entity}/{action}")
            }
            var target = try Self.target(url)
            guard let database = Scope(rawValue: url.segments[4]) else {
                throw .badRequest("database: 'public', 'private' or 'shared' is expected, not '\(url.segments[4])'")
            }
            let action = try DatabaseAction.find(url.segments.dropFirst(5).joined(separator: "/"), method: method)
            if database == .shared { throw .notBuilt("the shared database") }
            target.needsUser = database != .public
            self.action = .database(database, action)
            scope = RequestScope(
                target: target, rate: .requests, mayChangeData: call.mayChangeData,
                isWrite: action.leastRole == .developer)
        case "kv":
            let name = try Self.action(
                url, "preferences are at /kv/1/{container}/{environment}/{get|set|list|changes|usage|watch}")
            let action = try KeyValueAction(name, method: method)
            self.action = .keyValues(action)
            scope = RequestScope(
                target: try Self.target(url), rate: .keyValues, isWatch: action == .watch,
                mayChangeData: action == .set, isWrite: action == .set)
        case "push":
            let name = try Self.action(url, "notifications are at /push/1/{container}/{environment}/{changes|watch}")
            let action = try NotificationAction(name, method: method)
            self.action = .notifications(action)
            scope = RequestScope(target: try Self.target(url), rate: .requests, isWatch: action == .watch)
        case "device":
            action = .deviceTokens(try DeviceTokenAction(url, method: method))
            scope = RequestScope(target: try Self.target(url), rate: .requests, isWrite: true)
        default: return nil
        }
    }

    /// The name of an action on a user's own store.
    private static func action(_ url: RequestURL, _ places: String) throws(RequestFailure) -> String {
        guard url.segments.count == 5, url.segments[1] == "1" else { throw .notFound(places) }
        return url.segments[4]
    }

    private static func target(_ url: RequestURL) throws(RequestFailure) -> Target {
        Target(
            container: try AdminRequest.containerName(url.segments[2]),
            environment: try AdminRequest.environment(url.segments[3]), needsUser: true)
    }

    /// As the audit log names it.
    var name: String {
        switch action {
        case .database(_, let action): action.path
        case .keyValues(let action): "kv/\(action.rawValue)"
        case .notifications(let action): "push/\(action.rawValue)"
        case .deviceTokens(let action): action.rawValue
        }
    }

    var group: OperationGroup {
        switch action {
        case .database(_, let action): action.group
        case .keyValues: .preferences
        case .notifications, .deviceTokens: .notifications
        }
    }

    /// What it is about, as the audit log names it.
    var subject: String {
        let data =
            switch action {
            case .database(let database, _): "\(database.rawValue) database"
            case .keyValues: "preferences"
            case .notifications, .deviceTokens: "notifications"
            }
        return "\(data) of \(target.container) (\(target.environment.rawValue))"
    }

    var leastRole: AdministratorRole {
        if case .database(_, let action) = action { action.leastRole } else { .admin }
    }
}

/// A request that was let in: who sends it, what it says, and by when it is answered.
struct AdmittedCall: Sendable {
    let context: AdmittedRequest
    let requester: Requester
    let body: [UInt8]
    let deadline: Deadline
    /// Nil unless an administrator acts as the user.
    let acting: ActingCredential?

    /// Whose it is; empty where nobody is signed in.
    var accountID: String { context.admitted.accountID ?? "" }

    /// The caller's own store in a container's environment.
    func store(in target: Target) -> StoreKey {
        StoreKey(
            container: target.container, environment: target.environment, user: context.admitted.caller.user ?? "")
    }
}

// Requests for data.
extension WebResponder {
    /// Lets a request in, has its operation done, and lets it out.
    func respond(
        to call: WebCall, _ route: DataRoute, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> Reply {
        var notes = RequestNotes()
        var admission = DataAdmission(self, call, route)
        defer {
            admission.release()
            headers.allow(notes.admitted?.apiToken)
            headers.add(notes)
        }
        do throws(RequestFailure) {
            let admitted = try await admission.admit(&headers, &notes)
            defer {
                context.service.leave(route.scope)
                // A token that was made before a wait would be older than those of other answers.
                if route.scope.isWatch, let session = admitted.context.admitted.session {
                    notes.webAuthToken = context.service.peerExchange.sessions.newToken(of: session)
                }
            }
            switch route.action {
            case .database(let database, let action):
                return try await respond(to: try databaseCall(call, route, admitted, database), action, call)
            case .keyValues(let action):
                let preferences = Preferences(context.service, admitted.store(in: route.target))
                return try await PreferenceRoutes(
                    preferences: preferences, call: call, asked: admitted.context, body: admitted.body,
                    deadline: admitted.deadline
                ).respond(to: action) { stream(of: $0, call, route, admitted, limit: $1) }
            case .notifications(let action):
                return try await NotificationRoutes(
                    service: context.service, target: route.target, call: call, admitted: admitted
                ).respond(to: action) { stream(of: $0, call, route, admitted, limit: $1) }
            case .deviceTokens(let action):
                let routes = DeviceTokenRoutes(service: context.service, call: call)
                return try await routes.respond(to: action, admitted, route)
            }
        } catch {
            throw refused(error, call, route, notes)
        }
    }

    /// Has an action done, and counts what it carried: what was refused is not the container's traffic.
    private func respond(
        to asked: DatabaseCall, _ action: DatabaseAction, _ call: WebCall
    ) async throws(RequestFailure) -> Reply {
        let reply = try await action.respond(to: asked, call.clientDisconnect)
        let bytes = reply.body.count + (reply.isAllRefused ? 0 : asked.body.count)
        context.service.usage.carried(bytes, for: asked.request.key, of: asked.request.caller.stampName)
        return reply
    }

    private func databaseCall(
        _ call: WebCall, _ route: DataRoute, _ admitted: AdmittedCall, _ database: Scope
    ) throws(RequestFailure) -> DatabaseCall {
        let service = context.service
        let schema = SchemaKey(container: route.target.container, environment: route.target.environment)
        let target = DatabaseKey(database, of: admitted.context.admitted.caller, in: schema)
        var request = DatabaseRequest(
            service, key: target, requester: admitted.requester, in: admitted.context.directory,
            deadline: admitted.deadline)
        if let text = call.request.headers[WebCall.idempotencyKey] {
            request.identity = try RequestIdentity(text, body: admitted.body, in: service)
        }
        request.wantsSyncToken = call.url["getCurrentSyncToken"] == "true"
        request.origin = call.baseURL
        request.clientID = try call.clientID()
        return DatabaseCall(
            request: request, body: admitted.body, isGet: call.isSafe, note: call.note)
    }

    private func stream(
        of feed: any WatchedFeed, _ call: WebCall, _ route: DataRoute, _ admitted: AdmittedCall, limit: Int
    ) -> PreferenceStream {
        PreferenceStream(
            watch: PreferenceWatch(
                feed, credentials: call.credentials, as: admitted.acting, target: route.target,
                requester: admitted.requester, limit: limit),
            bodies: context.bodies, holder: ByteHolder(call, container: route.target.container), uuid: call.uuid,
            clientDisconnect: call.clientDisconnect)
    }

    /// Says where to sign in, and tells the audit log where a request was refused for what its sender may not.
    private func refused(
        _ failure: RequestFailure, _ call: WebCall, _ route: DataRoute, _ notes: RequestNotes
    ) -> RequestFailure {
        if let admitted = notes.admitted { call.note.admitted(admitted) }
        var failure = failure
        if failure.error.code == .authenticationRequired, failure.signIn == nil {
            failure.signIn = notes.admitted?.apiToken
        }
        if failure.error.code == .accessDenied {
            context.service.audit.refused(
                call.origin(of: notes.actor, now: context.service.now),
                in: route.target.container, action: route.name, subject: route.subject)
        }
        return failure
    }
}

/// How a request for data is let in: by its credential, then with its body.
private struct DataAdmission {
    private let responder: WebResponder
    private let call: WebCall
    private let route: DataRoute
    private let holder: ByteHolder
    /// Bytes of the body that the node holds.
    private var held = 0

    private var bodies: BodyBudget { responder.context.bodies }
    private var service: RecordService { responder.context.service }

    init(_ responder: WebResponder, _ call: WebCall, _ route: DataRoute) {
        self.responder = responder
        self.call = call
        self.route = route
        holder = ByteHolder(call, container: route.target.container)
    }

    mutating func release() {
        bodies.release(held, of: holder)
        held = 0
    }

    /// The body is read before anything is decided, so that a decision is about the moment in which the request is
    /// worked on; but only that of a request whose credential is known. `release` must follow.
    mutating func admit(
        _ headers: inout AnswerHeaders, _ notes: inout RequestNotes
    ) async throws(RequestFailure) -> AdmittedCall {
        var (credentials, scope) = (call.credentials, route.scope)
        let signature = try call.signature()
        // A request with tokens is a client's, whatever else it says of its sender.
        let isClient = credentials.apiToken != nil || call.bearerToken == nil && signature != nil
        let administrator = isClient ? nil : try await responder.administrator(call, &headers)
        var acting = try allow(administrator, &credentials, &notes)
        if acting != nil { scope.rate = .acting }
        let precheck = try await service.identification.precheck(
            credentials, signature, for: scope, address: call.address)
        headers.add("RateLimit-Policy", "\"\(scope.rate.rawValue)\";q=\(precheck.rateLimit);w=1")
        let body = try await readBody(of: scope)
        if administrator != nil, !body.isEmpty {
            acting = try allow(try await responder.recheckedAdministrator(call), &credentials, &notes)
        }
        let deadline = service.deadline()
        if credentials.administrator == nil {
            credentials.signed = signature.map {
                SignedRequest(signature: $0, target: call.request.head.path ?? "/", body: body)
            }
        }
        let admitted = try await service.admit(
            credentials, as: acting, precheck, to: scope, address: call.address, by: deadline, &notes)
        call.note.admitted(admitted.admitted)
        // It waits long; its small body counts no more.
        if scope.isWatch { release() }
        return AdmittedCall(
            context: admitted,
            requester: Requester(admitted.admitted, requestID: call.uuid, address: call.address), body: body,
            deadline: deadline, acting: acting)
    }

    /// Holds an administrator's request against what they may do.
    /// - Returns: the time as a user that it names.
    private func allow(
        _ administrator: AdministratorAccess?, _ credentials: inout Credentials, _ notes: inout RequestNotes
    ) throws(RequestFailure) -> ActingCredential? {
        try call.require(administrator, route, now: service.now, &notes)
        credentials.administrator = administrator?.actor
        return try call.acting(administrator)
    }

    private mutating func readBody(of scope: RequestScope) async throws(RequestFailure) -> [UInt8] {
        let bytesMax = scope.isWatch ? Self.watchBodyBytesMax : Limits.requestBodyBytesMax
        let body = try await bodies.read(call.request, bytesMax: bytesMax, for: holder)
        held = body.count
        call.note.note { $0.bytesIn = body.count }
        return body
    }

    private static let watchBodyBytesMax = 4 << 10
}
