import Cluster
import Directory
import RecordModel
import Service
import Wire

/// A request under `/admin/1`.
struct AdminRequest: Sendable {
    var context: WebContext
    var method: String
    var url: RequestURL
    var body: [UInt8]
    var deadline: Deadline
    /// Who asks, for the audit log.
    var origin: AuditOrigin
    /// Who asks; nil where somebody signs in.
    var caller: AdministratorAccess?
    /// Where browsers find this node.
    var serverURL: String

    /// Who asks.
    var access: AdministratorAccess {
        get throws(RequestFailure) {
            if let caller { return caller }
            throw RequestFailure(.authenticationFailed, "an administrator is expected to have signed in")
        }
    }

    var json: JSONValue {
        get throws(RequestFailure) {
            do throws(JSONError) {
                return body.isEmpty ? .object([]) : try JSONParser.parse(body)
            } catch {
                throw RequestFailure(.badRequest, "the body is not JSON: \(error)")
            }
        }
    }

    /// A string of the body that must be there.
    func text(_ key: String) throws(RequestFailure) -> String {
        guard let text = try json[key]?.string, !text.isEmpty else {
            throw RequestFailure(.badRequest, "\(key): a string is expected")
        }
        return text
    }

    /// A query parameter that must be there.
    func parameter(_ name: String) throws(RequestFailure) -> String {
        guard let value = url[name], !value.isEmpty else {
            throw RequestFailure(.badRequest, "the parameter '\(name)' is missing")
        }
        return value
    }

    /// The container and environment that the parameters name.
    func schemaKey() throws(RequestFailure) -> SchemaKey {
        let container = try parameter("container")
        return SchemaKey(container: container, environment: try Self.environment(url["environment"] ?? "development"))
    }

    /// A container as a path, a parameter or a body names it: checked before anything is looked up by it.
    static func containerName(_ text: String) throws(RequestFailure) -> String {
        do throws(ServiceError) {
            try ContainerName.check(text)
        } catch {
            throw RequestFailure(error)
        }
        return text
    }

    static func environment(_ text: String) throws(RequestFailure) -> Environment {
        guard let environment = Environment(rawValue: text) else {
            throw RequestFailure(.badRequest, "environment: 'development' or 'production' is expected, not '\(text)'")
        }
        return environment
    }

    /// Whether a parameter that is `true` or `false`, and `false` where it is missing, is set.
    /// - Throws: `BAD_REQUEST` for any other value, and for none: `dryRun=` must not be taken for `false`.
    func flag(_ name: String) throws(RequestFailure) -> Bool {
        switch url[name] {
        case nil, "false": return false
        case "true": return true
        case let other?: throw RequestFailure(.badRequest, "\(name): 'true' or 'false' is expected, not '\(other)'")
        }
    }

    /// Has the directory changed, which the audit log tells of, and waits until this node knows it.
    /// - Returns: the new version, where the command gives one.
    @discardableResult
    func change(_ command: DirectoryCommand) async throws(RequestFailure) -> UInt64 {
        switch try await context.service.settle(command, origin: origin, by: deadline) {
        case .refused(let error): throw RequestFailure(error)
        case .done(let version):
            await context.service.catchUp()
            return version
        }
    }

    /// The directory as it is now.
    func directory() async throws(RequestFailure) -> DirectorySnapshot {
        try await context.service.refreshDirectory()
        return context.service.node.directory.snapshot
    }

    /// The account of a name, with every change that was acknowledged before this call.
    /// - Throws: `NOT_FOUND` if it does not exist.
    func account(named name: String) async throws(RequestFailure) -> Account {
        try await context.service.refreshDirectory()
        if let account = try await context.service.accounts.account(named: name) { return account }
        throw Self.unknownUser(name)
    }

    func respond() async throws(RequestFailure) -> Reply {
        if let name = url["container"], !name.isEmpty { _ = try Self.containerName(name) }
        let route = try AdminRoute.find(method, url)
        do throws(RequestFailure) {
            try await route.permission?.require(for: self)
        } catch {
            if error.error.code == .accessDenied {
                context.service.audit.refused(
                    origin, in: url["container"] ?? "", action: "admin/\(route.path)",
                    subject: "\(method) of the administration")
            }
            throw error
        }
        return try await route.respond(self)()
    }

    fileprivate func metrics() async throws(RequestFailure) -> Reply {
        let replicas = await context.service.node.status()
        let text = context.metrics.text(of: context.service.node, replicas)
        return Reply(body: Array(text.utf8), contentType: "text/plain; version=0.0.4")
    }
}

/// One method of one path under `/admin/1/`.
struct AdminRoute: Sendable {
    let method: String
    let path: String
    /// What it asks of the administrator; nil: nothing, as somebody signs in.
    let permission: AdminPermission?
    /// `AdminRequest`'s method that answers.
    let respond: @Sendable (AdminRequest) -> () async throws(RequestFailure) -> Reply

    private init(
        _ method: String, _ path: String, _ permission: AdminPermission?,
        _ respond: @escaping @Sendable (AdminRequest) -> () async throws(RequestFailure) -> Reply
    ) {
        self.method = method
        self.path = path
        self.permission = permission
        self.respond = respond
    }

    /// - Throws: `NOT_FOUND` where there is no such path, 405 for a method that it is not called with.
    static func find(_ method: String, _ url: RequestURL) throws(RequestFailure) -> AdminRoute {
        let path = url.segments.dropFirst(2).joined(separator: "/")
        let routes = all.filter { $0.path == path }
        if let route = routes.first(where: { $0.method == method }) { return route }
        if routes.isEmpty { throw RequestFailure(.notFound, "no administration route '\(path)'") }
        let methods = routes.map(\.method)
        throw RequestFailure(
            .badRequest, "\(path) is called with \(methods.joined(separator: " or ")), not with \(method)",
            details: .methods(methods))
    }

    /// The table of contents of the administration, and of its permissions; openapi.json repeats both.
    static let all: [AdminRoute] = [
        .init("GET", "containers", .anyViewer, AdminRequest.containers),
        .init("POST", "containers", .init(.admin, .cluster), AdminRequest.createContainer),
        .init("DELETE", "containers", .init(.admin, .cluster, isDangerous: true), AdminRequest.deleteContainer),
        .init("POST", "containers/restore", .init(.admin, .cluster, isDangerous: true), AdminRequest.restoreContainer),
        .init("POST", "containers/keys", .init(.admin, .query, isDangerous: true), AdminRequest.rotateKey),
        .init("GET", "schema", .init(.viewer, .query), AdminRequest.exportSchema),
        .init("POST", "schema", .init(.developer, .query), AdminRequest.importSchema),
        .init("GET", "schema/state", .init(.viewer, .query), AdminRequest.schemaState),
        .init("POST", "schema/validate", .init(.viewer, .query), AdminRequest.validateSchema),
        .init("POST", "schema/deploy", .init(.admin, .query, isDangerous: true), AdminRequest.deploySchema),
        .init("POST", "schema/reset", .init(.admin, .query, isDangerous: true), AdminRequest.resetDevelopment),
        .init("POST", "schema/indexes", .init(.developer, .query), AdminRequest.addIndex),
        .init("DELETE", "schema/indexes", .init(.developer, .query), AdminRequest.removeIndex),
        .init("GET", "users", .init(.admin, .cluster), AdminRequest.users),
        .init("POST", "users", .init(.admin, .cluster), AdminRequest.createUser),
        .init("PATCH", "users", .init(.admin, .cluster), AdminRequest.updateUser),
        .init("DELETE", "users", .init(.admin, .cluster), AdminRequest.deleteUser),
        .init("POST", "users/password", .init(.admin, .cluster, isDangerous: true), AdminRequest.setPassword),
        .init("GET", "tokens", .init(.developer, .query), AdminRequest.tokens),
        .init("POST", "tokens", .init(.developer, .newToken), AdminRequest.createToken),
        .init("DELETE", "tokens", .init(.developer, .oldToken), AdminRequest.revokeToken),
        .init("GET", "keys", .init(.developer, .anywhere), AdminRequest.keys),
        .init("POST", "keys", .init(.admin, .body, isDangerous: true), AdminRequest.createKey),
        .init("DELETE", "keys", .init(.admin, .oldKey, isDangerous: true), AdminRequest.revokeKey),
        .init("GET", "roles", .init(.viewer, .query), AdminRequest.roles),
        .init("POST", "roles/members", .init(.developer, .body), AdminRequest.addRoleMember),
        .init("DELETE", "roles/members", .init(.developer, .query), AdminRequest.removeRoleMember),
        .init("GET", "limits", .init(.viewer, .query), AdminRequest.limits),
        .init("PATCH", "limits", .init(.admin, .cluster, isDangerous: true), AdminRequest.setLimits),
        .init("GET", "limits/explain", .init(.viewer, .query), AdminRequest.explainLimits),
        .init("GET", "usage", .init(.viewer, .query), AdminRequest.usage),
        .init("GET", "subscriptions", .init(.developer, .query)) { UserSubscriptionsRequest(request: $0).respond },
        .init("GET", "webhooks", .init(.developer, .query)) { WebhookRoutes(request: $0).list },
        .init("POST", "webhooks", .init(.admin, .body, isDangerous: true)) { WebhookRoutes(request: $0).create },
        .init("PATCH", "webhooks", .init(.admin, .body, isDangerous: true)) { WebhookRoutes(request: $0).change },
        .init("DELETE", "webhooks", .init(.admin, .query, isDangerous: true)) { WebhookRoutes(request: $0).delete },
        .init("POST", "webhooks/test", .init(.developer, .body)) { WebhookRoutes(request: $0).test },
        .init("GET", "webhooks/deliveries", .init(.developer, .query)) { WebhookRoutes(request: $0).deliveries },
        .init("GET", "audit", .anyViewer) { AuditRequest(request: $0).respond },
        .init("GET", "providers", .init(.admin, .cluster), AdminRequest.providers),
        .init("POST", "providers", .init(.admin, .cluster, isDangerous: true), AdminRequest.setProvider),
        .init("DELETE", "providers", .init(.admin, .cluster, isDangerous: true), AdminRequest.removeProvider),
        .init("GET", "sign-up", .init(.admin, .cluster), AdminRequest.signUp),
        .init("PATCH", "sign-up", .init(.admin, .cluster), AdminRequest.setSignUp),
        .init("GET", "status", .anyViewer, AdminRequest.status),
        .init("GET", "leader", .init(.viewer, .query), AdminRequest.leader),
        .init("GET", "cluster", .anyViewer, AdminRequest.cluster),
        .init("POST", "cluster/nodes", .init(.admin, .cluster, isDangerous: true), AdminRequest.addNode),
        .init("DELETE", "cluster/nodes", .init(.admin, .cluster, isDangerous: true), AdminRequest.removeNode),
        .init("POST", "cluster/replace", .init(.admin, .cluster, isDangerous: true), AdminRequest.replaceNode),
        .init("POST", "cluster/leaders", .init(.admin, .cluster, isDangerous: true), AdminRequest.setLeaders),
        .init("GET", "metrics", .anyViewer, AdminRequest.metrics),
        .init("POST", "state-hash", .init(.admin, .cluster), AdminRequest.hashState),
        .init("GET", "state-hash", .anyViewer, AdminRequest.stateHashes),
        .init("GET", "administrators", .init(.admin, .cluster), AdminRequest.administrators),
        .init("POST", "administrators", .init(.admin, .cluster, isDangerous: true), AdminRequest.createAdministrator),
        .init("PATCH", "administrators", .init(.admin, .cluster, isDangerous: true), AdminRequest.updateAdministrator),
        .init("DELETE", "administrators", .init(.admin, .cluster, isDangerous: true), AdminRequest.deleteAdministrator),
        .init("POST", "console/links", .anyViewer, AdminRequest.makeConsoleLink),
        .init("POST", "console/sign-in", nil, AdminRequest.signInToConsole),
        .init("GET", "console/me", .anyViewer, AdminRequest.consoleCaller),
        .init(
            "POST", "console/password", .init(.viewer, .anywhere, isDangerous: true),
            AdminRequest.setConsolePassword),
        .init("POST", "console/sign-out", .anyViewer, AdminRequest.signOutOfConsole),
    ]
}
