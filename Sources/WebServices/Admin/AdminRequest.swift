import Cluster
import Directory
import RecordModel
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
    func flag(_ name: String) throws(RequestFailure) -> Bool {
        switch url[name] {
        case nil, "", "false": return false
        case "true": return true
        case let other?: throw RequestFailure(.badRequest, "\(name): 'true' or 'false' is expected, not '\(other)'")
        }
    }

    /// Has the directory changed, which the audit log tells of, and waits until this node knows it.
    /// - Returns: the new version, where the command gives one.
    @discardableResult
    func change(_ command: DirectoryCommand) async throws(RequestFailure) -> UInt64 {
        switch try await context.settle(command, origin: origin, by: deadline) {
        case .refused(let error): throw RequestFailure(error)
        case .done(let version):
            await context.catchUp()
            return version
        }
    }

    /// The directory as it is now.
    func directory() async throws(RequestFailure) -> DirectorySnapshot {
        try await context.refreshDirectory()
        return context.node.directory.snapshot
    }

    func respond() async throws(RequestFailure) -> Reply {
        if let name = url["container"], !name.isEmpty { _ = try Self.containerName(name) }
        let route = url.segments.dropFirst(2).joined(separator: "/")
        switch route.prefix(while: { $0 != "/" }) {
        case "containers", "schema": return try await respondAboutData(route)
        case "users", "tokens", "keys", "roles": return try await respondAboutAccess(route)
        case "cluster": return try await respondAboutCluster(route)
        case "limits", "usage", "audit", "providers", "sign-up": return try await respondAboutRules(route)
        default: return try await respondAboutNode(route)
        }
    }

    private func respondAboutData(_ route: String) async throws(RequestFailure) -> Reply {
        switch (method, route) {
        case ("GET", "containers"): return try await containers()
        case ("POST", "containers"): return try await createContainer()
        case ("POST", "containers/keys"): return try await rotateKey()
        case ("GET", "schema"): return try await exportSchema()
        case ("POST", "schema"): return try await importSchema()
        case ("GET", "schema/state"): return try await schemaState()
        case ("POST", "schema/validate"): return try await validateSchema()
        case ("POST", "schema/deploy"): return try await deploySchema()
        case ("POST", "schema/reset"): return try await resetDevelopment()
        case ("POST", "schema/indexes"): return try await addIndex()
        case ("DELETE", "schema/indexes"): return try await removeIndex()
        default: throw unknown(route)
        }
    }

    private func respondAboutAccess(_ route: String) async throws(RequestFailure) -> Reply {
        switch (method, route) {
        case ("GET", "users"): return try await users()
        case ("POST", "users"): return try await createUser()
        case ("PATCH", "users"): return try await updateUser()
        case ("DELETE", "users"): return try await deleteUser()
        case ("POST", "users/password"): return try await setPassword()
        case ("GET", "tokens"): return try await tokens()
        case ("POST", "tokens"): return try await createToken()
        case ("DELETE", "tokens"): return try await revokeToken()
        case ("GET", "keys"): return try await keys()
        case ("POST", "keys"): return try await createKey()
        case ("DELETE", "keys"): return try await revokeKey()
        case ("GET", "roles"): return try await roles()
        case ("POST", "roles/members"): return try await addRoleMember()
        case ("DELETE", "roles/members"): return try await removeRoleMember()
        default: throw unknown(route)
        }
    }

    private func respondAboutRules(_ route: String) async throws(RequestFailure) -> Reply {
        switch (method, route) {
        case ("GET", "limits"): return try await limits()
        case ("PATCH", "limits"): return try await setLimits()
        case ("GET", "limits/explain"): return try await explainLimits()
        case ("GET", "usage"): return try await usage()
        case ("GET", "audit"): return try await auditLog()
        case ("GET", "providers"): return try await providers()
        case ("POST", "providers"): return try await setProvider()
        case ("DELETE", "providers"): return try await removeProvider()
        case ("GET", "sign-up"): return try await signUp()
        case ("PATCH", "sign-up"): return try await setSignUp()
        default: throw unknown(route)
        }
    }

    private func respondAboutNode(_ route: String) async throws(RequestFailure) -> Reply {
        switch (method, route) {
        case ("GET", "status"): return try await status()
        case ("GET", "leader"): return try await leader()
        case ("POST", "state-hash"): return try await hashState()
        case ("GET", "state-hash"): return try await stateHashes()
        case ("GET", "metrics"):
            return Reply(
                body: Array(context.metrics.text(of: context.node).utf8), contentType: "text/plain; version=0.0.4")
        default: throw unknown(route)
        }
    }

    private func unknown(_ route: String) -> RequestFailure {
        RequestFailure(.notFound, "no administration route '\(method) \(route)'")
    }
}
