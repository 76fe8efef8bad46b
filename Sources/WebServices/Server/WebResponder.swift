import Admission
import Authorization
import Cluster
import Directory
import HTTPTypes
import Hummingbird
import KeyValueStore
import Logging
import NIOCore
import RecordModel

/// Every request's way in: reads the body, finds the route, and turns what fails into CloudKit's error form.
struct WebResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    var context: WebContext

    @Sendable
    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        await answer(request, logger: context.logger)
    }

    func answer(_ request: Request, logger: Logger) async -> Response {
        let uuid = UUIDv7.generate(now: context.now)
        let url = RequestURL(target: request.head.path ?? "/")
        var reply: Reply
        do throws(RequestFailure) {
            reply = try await route(request, url: url, uuid: uuid)
        } catch {
            reply = Reply(error.error, status: error.status, uuid: uuid)
            if error.error.code == .internalError {
                logger.error("request \(uuid) failed: \(error.error.reason)")
            }
        }
        context.metrics.count(route: Self.metricName(url), status: reply.status)
        return Self.response(reply, uuid: uuid)
    }

    private static func response(_ reply: Reply, uuid: String) -> Response {
        var headers = HTTPFields()
        headers[.contentType] = reply.contentType
        headers[requestUUID] = uuid
        headers[.accessControlAllowOrigin] = "*"
        headers[.accessControlAllowMethods] = "GET, POST, PUT, DELETE"
        headers[.accessControlAllowHeaders] = "Content-Type, Idempotency-Key"
        headers[.accessControlExposeHeaders] = "X-Apple-Request-UUID,X-Apple-CloudKit-Web-Auth-Token,Retry-After"
        if let seconds = reply.retryAfterSeconds { headers[.retryAfter] = String(seconds) }
        if reply.status == 413 { headers[.connection] = "close" }
        return Response(
            status: HTTPResponse.Status(code: reply.status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: reply.body)))
    }

    // Both names are valid header names, so the optionals are never nil.
    private static let requestUUID = HTTPField.Name("X-Apple-Request-UUID")!
    private static let idempotencyKey = HTTPField.Name("Idempotency-Key")!

    /// A small, fixed set of names: what a client sends must not make new ones.
    private static func metricName(_ url: RequestURL) -> String {
        switch url.segments.first {
        case "database" where url.segments.count >= 7:
            known.contains(url.segments[5]) ? "\(url.segments[5])" : "database"
        case "kv": "kv"
        case "admin": "admin"
        case "health": "health"
        default: "other"
        }
    }
    private static let known: Set<String> = ["changes", "records", "users", "zones"]

    private func route(_ request: Request, url: RequestURL, uuid: String) async throws(RequestFailure) -> Reply {
        if context.node.isRestoring, url.segments.first != "health" {
            throw RequestFailure(
                ServiceError(.tryAgainLater, "the cluster was restored and is not ready yet", retryAfterSeconds: 1))
        }
        if request.method == .options { return Reply(body: []) }
        switch url.segments.first {
        case "health": return try await health(url)
        case "database": return try await database(request, url: url, uuid: uuid)
        case "kv": return try await keyValues(request, url: url, uuid: uuid)
        case "admin": return try await administration(request, url: url)
        case "device": throw .notBuilt("tokens for push")
        case "openapi.json": return Reply(body: OpenAPIDocument.json())
        default: throw RequestFailure(.notFound, "there is nothing at this path; requests begin with /database/1/")
        }
    }

    private func health(_ url: RequestURL) async throws(RequestFailure) -> Reply {
        switch url.segments.dropFirst().first {
        case "live": return Reply { $0.member("live", true) }
        case "ready":
            let replicas = await context.node.status()
            guard context.node.isReady(replicas) else {
                throw RequestFailure(
                    ServiceError(
                        .tryAgainLater, "not ready: a group that this node holds has no leader yet",
                        retryAfterSeconds: 1))
            }
            return Reply { $0.member("ready", true) }
        default: throw RequestFailure(.notFound, "there are /health/live and /health/ready")
        }
    }

    /// The body, up to the limit.
    private func body(of request: Request) async throws(RequestFailure) -> [UInt8] {
        if let text = request.headers[.contentLength], let length = Int(text), length > Limits.requestBodyBytesMax {
            throw Self.tooLarge
        }
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Limits.requestBodyBytesMax)
        } catch is NIOTooManyBytesError {
            throw Self.tooLarge
        } catch {
            throw RequestFailure(.badRequest, "the request's body did not arrive: \(error)")
        }
        return Array(buffer.readableBytesView)
    }

    private static let tooLarge = RequestFailure(
        .badRequest, "the body is larger than \(Limits.requestBodyBytesMax) bytes; send less in one request",
        status: 413)

    private func credentials(_ url: RequestURL) -> Credentials {
        Credentials(apiToken: url["ckAPIToken"], webAuthToken: url["ckWebAuthToken"] ?? url["ckSession"])
    }

    private func administration(_ request: Request, url: RequestURL) async throws(RequestFailure) -> Reply {
        guard let header = request.headers[.authorization], header.hasPrefix("Bearer "),
            context.administrator.matches(header.dropFirst("Bearer ".count))
        else {
            throw RequestFailure(
                .authenticationFailed,
                "administration needs the header 'Authorization: Bearer ...' with the administrator's token")
        }
        guard url.segments.count >= 3, url.segments[1] == "1" else {
            throw RequestFailure(.notFound, "administration is under /admin/1/")
        }
        let admin = AdminRequest(
            context: context, method: request.method.rawValue, url: url, body: try await body(of: request),
            // Counted from when the request is whole: a slow upload is not the cluster's.
            deadline: context.node.deadline())
        return try await admin.respond()
    }

    private func keyValues(_ request: Request, url: RequestURL, uuid: String) async throws(RequestFailure) -> Reply {
        guard url.segments.count == 5, url.segments[1] == "1" else {
            throw RequestFailure(.notFound, "preferences are at /kv/1/{container}/{environment}/{get|set|list|changes}")
        }
        let environment = try AdminRequest.environment(url.segments[3])
        let target = Target(container: url.segments[2], environment: environment, needsUser: true)
        let caller = try await context.admit(credentials(url), to: target)
        let body = try await body(of: request)
        let routes = KeyValues(
            context: context,
            store: StoreKey(container: target.container, environment: environment, user: caller.user ?? ""),
            deadline: context.node.deadline(), body: body, idempotencyKey: request.headers[Self.idempotencyKey],
            uuid: uuid)
        return try await routes.respond(to: url.segments[4])
    }

    private func database(_ request: Request, url: RequestURL, uuid: String) async throws(RequestFailure) -> Reply {
        let path = url.segments.dropFirst(5).joined(separator: "/")
        guard (7...8).contains(url.segments.count), url.segments[1] == "1" else {
            throw RequestFailure(
                .notFound,
                "the path is not of the form /database/1/{container}/{environment}/{database}/{entity}/{action}")
        }
        let environment = try AdminRequest.environment(url.segments[3])
        guard let scope = Scope(rawValue: url.segments[4]) else {
            throw RequestFailure(
                .badRequest, "database: 'public', 'private' or 'shared' is expected, not '\(url.segments[4])'")
        }
        guard let action = DatabaseAction(rawValue: path) else {
            throw RequestFailure(.notFound, "no action '\(path)'")
        }
        guard action.methods.contains(request.method.rawValue) else {
            throw RequestFailure(
                .badRequest,
                "\(path) is called with \(action.methods.joined(separator: " or ")), not with \(request.method.rawValue)",
                status: 405)
        }
        if scope == .shared { throw .notBuilt("the shared database") }
        let target = Target(container: url.segments[2], environment: environment, needsUser: scope != .public)
        let caller = try await context.admit(credentials(url), to: target)
        let key = DatabaseKey(
            container: target.container, environment: environment, scope: scope,
            owner: scope == .public ? DatabaseKey.publicOwner : caller.user ?? "")
        let body = try await body(of: request)
        var databaseRequest = DatabaseRequest(
            key: key, caller: caller, deadline: context.node.deadline(), body: body,
            idempotencyKey: request.headers[Self.idempotencyKey])
        databaseRequest.wantsSyncToken = url["getCurrentSyncToken"] == "true"
        databaseRequest.isGet = request.method == .get
        return try await action.respond(to: databaseRequest, in: context, uuid: uuid)
    }
}
