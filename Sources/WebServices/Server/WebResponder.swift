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
    /// Carries the client's address and disconnection beside what Hummingbird knows of a request.
    package typealias Context = EdgeContext

    let context: WebContext

    package init(context: WebContext) { self.context = context }

    /// Answers a request; what fails is an answer, too.
    @Sendable
    package func respond(to request: Request, context edge: EdgeContext) async -> Response {
        let (service, begin) = (context.service, context.service.uptime)
        let call = WebCall(request, edge, origin: context.origin, in: service)
        var headers = AnswerHeaders(request, url: call.url)
        let span = RequestSpan(call, service.tracer)
        let reply = await RequestWork.run(call.uuid, below: span.client, span.span) { () async -> Reply in
            let reply: Reply
            do throws(RequestFailure) {
                reply = try await route(call, &headers)
            } catch {
                reply = self.reply(to: error, call)
            }
            let nanoseconds = UInt64(clamping: Int64(service.uptime) - Int64(begin))
            context.metrics.count(route: call.url.metricName, status: reply.status, nanoseconds: nanoseconds)
            call.note(reply, microseconds: nanoseconds / 1_000)
            let entry = call.note.takeEntry(of: call.id)
            span.end(call, reply, entry)
            if let entry { call.log(entry, in: service) }
            return reply
        }
        let response = headers.response(reply, uuid: call.uuid)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func reply(to failure: RequestFailure, _ call: WebCall) -> Reply {
        let redirectURL = failure.signIn.flatMap {
            context.redirectURL(for: $0, origin: call.baseURL, asker: call.request.headers[.origin])
        }
        var reply = Reply(failure.error, status: failure.status, uuid: call.uuid) { writer in
            if let redirectURL { writer.member("redirectURL", redirectURL) }
            failure.write(to: &writer)
        }
        reply.isBodyUnread = failure.details == .bodyTooLarge
        if case .methods(let methods)? = failure.details {
            reply.headers.append(("allow", methods.joined(separator: ", ")))
        }
        call.note.failed(failure)
        if failure.error.code != .throttled {
            let what = "\(reply.status) \(failure.error.code.rawValue): \(failure.error.reason)"
            context.service.report(call.uuid, "\(call.description) failed: \(what)")
        }
        return reply
    }

    private func route(_ call: WebCall, _ headers: inout AnswerHeaders) async throws(RequestFailure) -> Reply {
        if context.service.isRestoring, call.url.segments.first != "health" {
            throw .tryAgain("the cluster was restored and is not ready yet")
        }
        if call.request.method == .options {
            headers.allowPreflight(in: context.service.directory)
            return Reply(body: [])
        }
        call.note.asks(ofPath: call.url.segments)
        if let data = try DataRoute(call) {
            call.note(data)
            return try await respond(to: call, data, &headers)
        }
        switch call.url.segments.first {
        case nil:
            // What a browser asks for first.
            var reply = Reply(status: 302, body: [])
            reply.headers = [("location", "/console/")]
            return reply
        case let name? where ["health", "openapi.json"].contains(name):
            try RequestFailure.require(call.request.method.rawValue, of: ["GET"], for: "/" + name)
            return name == "health" ? try await health(call.url) : Reply(body: OpenAPIDocument.json)
        case "admin": return try await administration(call, &headers)
        case "console":
            headers.leaveOutAccessControl()
            return try console(call)
        case "assets": return try await assets(call, &headers)
        case "aps": return try await DeviceTokenRoutes(service: context.service, call: call).courier()
        default: break
        }
        guard SignInRequest.isPath(call.url.segments) else {
            throw .notFound("there is nothing at this path; /openapi.json lists those that there are")
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
        let holder = ByteHolder(call, container: nil)
        let body = try await context.bodies.read(call.request, bytesMax: SignInRequest.bodyBytesMax, for: holder)
        defer { context.bodies.release(body.count, of: holder) }
        return try await SignInRequest(
            service: context.service,
            signIn: SignIn(context.service, context.providers, requestID: call.uuid, address: call.address),
            call: call, body: body
        ).respond()
    }

    private func administration(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> Reply {
        let route = try? AdminRoute.find(call.request.method.rawValue, call.url)
        if let route { call.note.asks("admin/\(route.path)", .administration) }
        var caller: AdministratorAccess?
        if let route, route.permission == nil {
            caller = try await openingCaller(call, &headers)
        } else {
            caller = try await requireAdministrator(call, &headers)
        }
        guard call.url.segments.count >= 3, call.url.segments[1] == "1" else {
            throw .notFound("administration is under /admin/1/")
        }
        let bytesMax = caller == nil ? SignInRequest.bodyBytesMax : Limits.requestBodyBytesMax
        let holder = ByteHolder(call, container: nil)
        let body = try await context.bodies.read(call.request, bytesMax: bytesMax, for: holder)
        defer { context.bodies.release(body.count, of: holder) }
        // A body may take a minute, and who sent it be removed meanwhile.
        if !body.isEmpty, route?.permission != nil { caller = try await recheckedAdministrator(call) }
        let origin = call.origin(of: caller?.actor ?? "somebody", now: context.service.now)
        call.note(caller, bodyBytes: body.count)
        return try await AdminRequest(
            administration: Administration(context.service, origin: origin, caller: caller), responder: self,
            call: call, body: body
        ).respond()
    }
}
