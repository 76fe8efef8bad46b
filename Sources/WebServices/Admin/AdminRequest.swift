import Cluster
import Directory
import RecordModel
import Service
import Wire

/// A request under `/admin/1`, whose sender has shown the administrator's token.
struct AdminRequest: Sendable {
    var context: WebContext
    var method: String
    var url: RequestURL
    var body: [UInt8]
    var deadline: Deadline
    /// Who asks, for the audit log.
    var origin: AuditOrigin

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
        let path = url.segments.dropFirst(2).joined(separator: "/")
        guard let route = AdminRoute.all.first(where: { $0.method == method && $0.path == path }) else {
            throw RequestFailure(.notFound, "no administration route '\(method) \(path)'")
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
    /// `AdminRequest`'s method that answers.
    let respond: @Sendable (AdminRequest) -> () async throws(RequestFailure) -> Reply

    private init(
        _ method: String, _ path: String,
        _ respond: @escaping @Sendable (AdminRequest) -> () async throws(RequestFailure) -> Reply
    ) {
        self.method = method
        self.path = path
        self.respond = respond
    }

    /// The table of contents of the administration.
    static let all: [AdminRoute] = [
        .init("GET", "containers", AdminRequest.containers),
        .init("POST", "containers", AdminRequest.createContainer),
        .init("DELETE", "containers", AdminRequest.deleteContainer),
        .init("POST", "containers/restore", AdminRequest.restoreContainer),
        .init("POST", "containers/keys", AdminRequest.rotateKey),
        .init("GET", "schema", AdminRequest.exportSchema),
        .init("POST", "schema", AdminRequest.importSchema),
        .init("GET", "schema/state", AdminRequest.schemaState),
        .init("POST", "schema/validate", AdminRequest.validateSchema),
        .init("POST", "schema/deploy", AdminRequest.deploySchema),
        .init("POST", "schema/reset", AdminRequest.resetDevelopment),
        .init("POST", "schema/indexes", AdminRequest.addIndex),
        .init("DELETE", "schema/indexes", AdminRequest.removeIndex),
        .init("GET", "users", AdminRequest.users),
        .init("POST", "users", AdminRequest.createUser),
        .init("PATCH", "users", AdminRequest.updateUser),
        .init("DELETE", "users", AdminRequest.deleteUser),
        .init("POST", "users/password", AdminRequest.setPassword),
        .init("GET", "tokens", AdminRequest.tokens),
        .init("POST", "tokens", AdminRequest.createToken),
        .init("DELETE", "tokens", AdminRequest.revokeToken),
        .init("GET", "keys", AdminRequest.keys),
        .init("POST", "keys", AdminRequest.createKey),
        .init("DELETE", "keys", AdminRequest.revokeKey),
        .init("GET", "roles", AdminRequest.roles),
        .init("POST", "roles/members", AdminRequest.addRoleMember),
        .init("DELETE", "roles/members", AdminRequest.removeRoleMember),
        .init("GET", "limits", AdminRequest.limits),
        .init("PATCH", "limits", AdminRequest.setLimits),
        .init("GET", "limits/explain", AdminRequest.explainLimits),
        .init("GET", "usage", AdminRequest.usage),
        .init("GET", "audit", AdminRequest.auditLog),
        .init("GET", "providers", AdminRequest.providers),
        .init("POST", "providers", AdminRequest.setProvider),
        .init("DELETE", "providers", AdminRequest.removeProvider),
        .init("GET", "sign-up", AdminRequest.signUp),
        .init("PATCH", "sign-up", AdminRequest.setSignUp),
        .init("GET", "status", AdminRequest.status),
        .init("GET", "leader", AdminRequest.leader),
        .init("GET", "cluster", AdminRequest.cluster),
        .init("POST", "cluster/nodes", AdminRequest.addNode),
        .init("DELETE", "cluster/nodes", AdminRequest.removeNode),
        .init("POST", "cluster/replace", AdminRequest.replaceNode),
        .init("POST", "cluster/leaders", AdminRequest.setLeaders),
        .init("GET", "metrics", AdminRequest.metrics),
        .init("POST", "state-hash", AdminRequest.hashState),
        .init("GET", "state-hash", AdminRequest.stateHashes),
    ]
}
