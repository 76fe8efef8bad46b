import Admission
import Directory
import HTTPTypes
package import Hummingbird
import Logging
import NIOCore
import RecordModel
import Service

/// Every request's way in: finds the route, and turns what fails into CloudKit's error form.
package struct WebResponder: HTTPResponder {
    package typealias Context = EdgeContext

    let context: WebContext

    /// For one node.
    package init(context: WebContext) { self.context = context }

    /// Answers a request; what fails is an answer, too.
    @Sendable
    package func respond(to request: Request, context edge: EdgeContext) async -> Response {
        let service = context.service
        let (begin, id) = (service.uptime, service.newID())
        let uuid = id.text
        let url = RequestURL(target: request.head.path ?? "/")
        let call = WebCall(
            request: request, url: url, uuid: uuid, address: edge.remoteAddress, clientDisconnect: edge.clientDisconnect
        )
        var headers = AnswerHeaders(request, url: url)
        let (reply, nodes) = await service.tracing(uuid) { () async -> Reply in
            do throws(RequestFailure) {
                return try await route(call, &headers)
            } catch {
                let reply = self.reply(to: error, call)
                call.note.failed(error)
                if error.error.code != .throttled {
                    service.report(
                        uuid,
                        WebCall.logged(
                            "\(call.description) failed: \(reply.status) \(error.error.code.rawValue): \(error.error.reason)"
                        ))
                }
                return reply
            }
        }
        let nanoseconds = UInt64(clamping: Int64(service.uptime) - Int64(begin))
        context.metrics.count(route: Self.metricName(url), status: reply.status, nanoseconds: nanoseconds)
        if var entry = call.note.entry(id) {
            entry.address = call.address ?? ""
            entry.status = reply.status
            entry.microseconds = nanoseconds / 1_000
            entry.bytesOut = reply.stream == nil ? reply.body.count : reply.streamBytes ?? 0
            entry.nodes = nodes
            service.requests.take(entry)
        }
        let response = headers.response(reply, uuid: uuid)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func reply(to failure: RequestFailure, _ call: WebCall) -> Reply {
        let redirectURL = failure.signIn.flatMap {
            context.redirectURL(for: $0, origin: call.origin, asker: call.request.headers[.origin])
        }
        var reply = Reply(failure.error, status: failure.status, uuid: call.uuid) { writer in
            if let redirectURL { writer.member("redirectURL", redirectURL) }
            failure.write(to: &writer)
        }
        reply.isBodyUnread = failure.details == .bodyTooLarge
        if case .methods(let methods)? = failure.details {
            reply.headers.append(("allow", methods.joined(separator: ", ")))
        }
        return reply
    }

    /// A small, fixed set of names: what a client sends must not make new ones.
    private static func metricName(_ url: RequestURL) -> String {
        switch url.segments.first {
        case "database" where url.segments.count >= 7:
            known.contains(url.segments[5]) ? "\(url.segments[5])" : "database"
        case "kv": url.segments.last == "watch" ? "kv-watch" : "kv"
        case "push", "device", "aps": ["watch", "aps"].contains(url.segments.last) ? "push-watch" : "push"
        case "admin": "admin"
        case "assets": "assets"
        case "console": "console"
        case "health": "health"
        default: SignInRequest.isPath(url.segments) ? "sign-in" : "other"
        }
    }
    private static let known: Set<String> = ["changes", "records", "users", "zones"]

    private func route(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        if context.service.isRestoring, call.url.segments.first != "health" {
            throw .tryAgain("the cluster was restored and is not ready yet")
        }
        if call.request.method == .options {
            headers.allowPreflight(in: context.service.directory)
            return Reply(body: [])
        }
        call.note.asks(ofPath: call.url.segments)
        if let data = try DataRoute(call) { return try await respond(to: call, data, &headers) }
        switch call.url.segments.first {
        case "health": return try await health(call.url)
        case "admin": return try await administration(call, &headers)
        case "console":
            headers.leaveOutAccessControl()
            return try console(call)
        case "assets": return try await assets(call, &headers)
        case "aps": return try await DeviceTokenRoutes(context, call).courier()
        case "openapi.json": return Reply(body: OpenAPIDocument.json)
        default: break
        }
        guard SignInRequest.isPath(call.url.segments) else {
            throw .notFound("there is nothing at this path; requests begin with /database/1/")
        }
        headers.leaveOutAccessControl()
        return try await signIn(call)
    }

    private func health(_ url: RequestURL) async throws(RequestFailure) -> Reply {
        switch url.segments.dropFirst().first {
        case "live": return Reply { $0.member("live", true) }
        case "ready":
            if let obstacle = await context.service.obstacle() {
                throw .tryAgain("not ready: \(obstacle)")
            }
            return Reply { $0.member("ready", true) }
        default: throw .notFound("there are /health/live and /health/ready")
        }
    }

    private func signIn(_ call: WebCall) async throws(RequestFailure) -> Reply {
        let headers = call.request.headers
        let body = try await context.bodies.read(call.request, bytesMax: SignInRequest.bodyBytesMax)
        defer { context.bodies.release(body.count) }
        return try await SignInRequest(
            service: context.service,
            signIn: SignIn(context.service, context.providers, requestID: call.uuid, address: call.address),
            method: call.request.method.rawValue, url: call.url,
            headers: SignInHeaders(
                cookie: headers[.cookie], origin: headers[.origin], contentType: headers[.contentType]),
            body: body, uuid: call.uuid
        ).respond()
    }

    private func administration(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> Reply {
        let route = try? AdminRoute.find(call.request.method.rawValue, call.url)
        if let route { call.note.asks("admin/\(route.path)", .administration) }
        let caller: AdministratorAccess?
        if let route, route.permission == nil {
            caller = try await openingCaller(call, &headers)
        } else {
            caller = try await requireAdministrator(call, &headers)
        }
        guard call.url.segments.count >= 3, call.url.segments[1] == "1" else {
            throw .notFound("administration is under /admin/1/")
        }
        let bytesMax = caller == nil ? SignInRequest.bodyBytesMax : Limits.requestBodyBytesMax
        let body = try await context.bodies.read(call.request, bytesMax: bytesMax)
        defer { context.bodies.release(body.count) }
        let origin = call.origin(of: caller?.actor ?? "somebody", now: context.service.now)
        call.note.note { details in
            details.container = call.url.text("container") ?? ""
            details.environment = call.url["environment"].flatMap { Environment(rawValue: $0) }
            details.credential = caller?.actor ?? ""
            details.bytesIn = body.count
        }
        return try await AdminRequest(
            administration: Administration(context.service, origin: origin, caller: caller),
            method: call.request.method.rawValue, url: call.url, body: body, serverURL: call.origin,
            metrics: context.metrics, call: call,
            recheck: { () async throws(RequestFailure) in
                // What the answer would say besides is said already.
                var headers = AnswerHeaders(call.request, url: call.url)
                return try await requireAdministrator(call, &headers)
            }
        ).respond()
    }
}

extension RequestNote {
    /// Takes note of what a path is about, before more is known. A node's own health, the console's files, and this
    /// API's description are not logged.
    fileprivate func asks(ofPath segments: [String]) {
        switch segments.first {
        case "health", "console", "openapi.json", nil: break
        case "admin": asks("admin", .administration)
        case "assets": asks(segments.dropFirst(2).first == "upload" ? "assets/put" : "assets/get", .assets)
        case "aps": asks("push/courier", .notifications)
        case "database", "kv", "push", "device": asks("other", .other)
        default: if SignInRequest.isPath(segments) { asks("sign-in", .signIn) }
        }
    }
}
