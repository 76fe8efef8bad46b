import Directory
import RecordModel
import Service

/// One method of one path under `/admin/1/`.
struct AdminRoute: Sendable {
    typealias Answer = () async throws(RequestFailure) -> Reply

    let method: String
    let path: String
    /// What it asks of the administrator; nil: nothing, as somebody signs in.
    let permission: AdminPermission?
    let respond: @Sendable (AdminRequest) -> Answer

    private init(
        _ method: String, _ path: String, _ permission: AdminPermission?,
        _ respond: @escaping @Sendable (AdminRequest) -> Answer
    ) {
        self.method = method
        self.path = path
        self.permission = permission
        self.respond = respond
    }

    /// - Throws: `NOT_FOUND` where there is no such path, 405 for a method that it is not called with. HEAD is as GET.
    static func find(_ method: String, _ url: RequestURL) throws(RequestFailure) -> AdminRoute {
        let path = url.segments.dropFirst(2).joined(separator: "/")
        let routes = all.filter { $0.path == path }
        if let route = routes.first(where: { $0.method == (method == "HEAD" ? "GET" : method) }) { return route }
        if routes.isEmpty { throw .notFound("no administration route '\(path)'") }
        throw RequestFailure.wrongMethod(method, of: RequestFailure.withHead(routes.map(\.method)), for: path)
    }

    /// The table of contents of the administration, and of its permissions; openapi.json repeats both.
    static let all: [AdminRoute] = [
        .init("GET", "containers", .anyViewer) { ContainerRoutes(request: $0).list },
        .init("POST", "containers", .init(.admin, .cluster)) { ContainerRoutes(request: $0).create },
        .init("DELETE", "containers", .dangerous(.cluster)) { ContainerRoutes(request: $0).delete },
        .init("PATCH", "containers", .init(.admin, .cluster)) { ContainerRoutes(request: $0).describe },
        .init("POST", "containers/restore", .dangerous(.cluster)) { ContainerRoutes(request: $0).restore },
        .init("POST", "containers/keys", .dangerous(.query)) { ContainerRoutes(request: $0).rotateKey },
        .init("GET", "subscriptions", .init(.developer, .query)) { SubscriberRoutes(request: $0).list },
        .init("DELETE", "subscriptions", .init(.developer, .query)) { SubscriberRoutes(request: $0).delete },
        .init("POST", "subscriptions/test", .init(.developer, .query)) { SubscriberRoutes(request: $0).test },
        .init("GET", "webhooks", .init(.developer, .query)) { WebhookRoutes(request: $0).list },
        .init("POST", "webhooks", .dangerous(.body)) { WebhookRoutes(request: $0).create },
        .init("PATCH", "webhooks", .dangerous(.body)) { WebhookRoutes(request: $0).change },
        .init("DELETE", "webhooks", .dangerous(.query)) { WebhookRoutes(request: $0).delete },
        .init("POST", "webhooks/test", .init(.developer, .body)) { WebhookRoutes(request: $0).test },
        .init("GET", "webhooks/deliveries", .init(.developer, .query)) { WebhookRoutes(request: $0).deliveries },
        .init("GET", "act-as", .anyViewer) { ActingRoutes(request: $0).list },
        .init("POST", "act-as", .init(.admin, .body, isDangerous: true)) { ActingRoutes(request: $0).begin },
        .init("DELETE", "act-as", .anyViewer) { ActingRoutes(request: $0).end },
        .init("GET", "schema", .init(.viewer, .query)) { SchemaRoutes(request: $0).export },
        .init("POST", "schema", .init(.developer, .query)) { SchemaRoutes(request: $0).replace },
        .init("GET", "schema/state", .init(.viewer, .query)) { SchemaRoutes(request: $0).state },
        .init("GET", "schema/code", .init(.viewer, .query)) { SchemaRoutes(request: $0).code },
        .init("GET", "schema/history", .init(.viewer, .query)) { SchemaRoutes(request: $0).history },
        .init("POST", "schema/restore", .init(.developer, .query)) { SchemaRoutes(request: $0).restore },
        .init("POST", "schema/validate", .init(.viewer, .query)) { SchemaRoutes(request: $0).validate },
        .init("POST", "schema/deploy", .dangerous(.query, unlessDry: true)) { SchemaRoutes(request: $0).deploy },
        .init("POST", "schema/reset", .dangerous(.query, unlessDry: true)) {
            SchemaRoutes(request: $0).resetDevelopment
        },
        .init("POST", "schema/indexes", .init(.developer, .query)) { SchemaRoutes(request: $0).addIndex },
        .init("DELETE", "schema/indexes", .init(.developer, .query)) { SchemaRoutes(request: $0).removeIndex },
        .init("GET", "users", .init(.admin, .cluster)) { AccountRoutes(request: $0).list },
        .init("POST", "users", .init(.admin, .cluster)) { AccountRoutes(request: $0).create },
        .init("PATCH", "users", .init(.admin, .cluster)) { AccountRoutes(request: $0).update },
        .init("DELETE", "users", .init(.admin, .cluster)) { AccountRoutes(request: $0).delete },
        .init("POST", "users/password", .dangerous(.cluster)) { AccountRoutes(request: $0).setPassword },
        .init("POST", "users/unlock", .init(.admin, .cluster)) { AccountRoutes(request: $0).unlock },
        .init("GET", "tokens", .init(.developer, .query)) { TokenRoutes(request: $0).list },
        .init("POST", "tokens", .init(.developer, .newToken)) { TokenRoutes(request: $0).create },
        .init("PATCH", "tokens", .init(.developer, .oldToken)) { TokenRoutes(request: $0).change },
        .init("DELETE", "tokens", .init(.developer, .oldToken)) { TokenRoutes(request: $0).revoke },
        .init("GET", "keys", .init(.developer, .anywhere)) { KeyRoutes(request: $0).list },
        .init("POST", "keys", .dangerous(.body)) { KeyRoutes(request: $0).create },
        .init("PATCH", "keys", .dangerous(.oldKey)) { KeyRoutes(request: $0).change },
        .init("DELETE", "keys", .dangerous(.oldKey)) { KeyRoutes(request: $0).revoke },
        .init("GET", "roles", .init(.viewer, .query)) { RoleRoutes(request: $0).list },
        .init("GET", "roles/explain", .init(.viewer, .query)) { RoleRoutes(request: $0).explain },
        .init("POST", "roles/members", .init(.developer, .body)) { RoleRoutes(request: $0).add },
        .init("DELETE", "roles/members", .init(.developer, .query)) { RoleRoutes(request: $0).remove },
        .init("GET", "limits", .init(.viewer, .query)) { LimitRoutes(request: $0).show },
        .init("PATCH", "limits", .dangerous(.cluster)) { LimitRoutes(request: $0).set },
        .init("GET", "limits/explain", .init(.viewer, .query)) { LimitRoutes(request: $0).explain },
        .init("GET", "usage", .init(.viewer, .query)) { UsageRoutes(request: $0).show },
        .init("GET", "usage/days", .init(.viewer, .query)) { UsageDayRoutes(request: $0).show },
        .init("GET", "usage/export", .init(.viewer, .query)) { UsageRoutes(request: $0).export },
        .init("GET", "audit", .anyViewer) { AuditRoutes(request: $0).show },
        .init("GET", "audit/export", .anyViewer) { AuditRoutes(request: $0).export },
        .init("GET", "requests", .anyViewer) { RequestRoutes(request: $0).list },
        .init("GET", "requests/trace", .anyViewer) { RequestRoutes(request: $0).trace },
        .init("GET", "requests/watch", .anyViewer) { RequestRoutes(request: $0).watch },
        .init("POST", "jobs/count", .init(.viewer, .body)) { JobRoutes(request: $0).count },
        .init("POST", "jobs/export", .init(.viewer, .body)) { JobRoutes(request: $0).export },
        .init("POST", "jobs/delete", .init(.developer, .body)) { JobRoutes(request: $0).deleteMatches },
        .init("GET", "jobs", .anyViewer) { JobRoutes(request: $0).list },
        .init("DELETE", "jobs", .anyViewer) { JobRoutes(request: $0).cancel },
        .init("GET", "jobs/state", .anyViewer) { JobRoutes(request: $0).state },
        .init("GET", "jobs/result", .anyViewer) { JobRoutes(request: $0).result },
        .init("GET", "telemetry", .anyViewer) { TelemetryRoutes(request: $0).show },
        .init("GET", "alerts", .anyViewer) { AlertRoutes(request: $0).show },
        .init("GET", "providers", .init(.admin, .cluster)) { ProviderRoutes(request: $0).list },
        .init("POST", "providers", .dangerous(.cluster)) { ProviderRoutes(request: $0).set },
        .init("DELETE", "providers", .dangerous(.cluster)) { ProviderRoutes(request: $0).remove },
        .init("GET", "sign-up", .init(.admin, .cluster)) { ProviderRoutes(request: $0).signUp },
        .init("PATCH", "sign-up", .init(.admin, .cluster)) { ProviderRoutes(request: $0).setSignUp },
        .init("GET", "status", .anyViewer) { NodeRoutes(request: $0).status },
        .init("GET", "leader", .init(.viewer, .query)) { NodeRoutes(request: $0).leader },
        .init("GET", "metrics", .anyViewer) { NodeRoutes(request: $0).metrics },
        .init("POST", "state-hash", .init(.admin, .cluster)) { NodeRoutes(request: $0).hashState },
        .init("GET", "state-hash", .anyViewer) { NodeRoutes(request: $0).stateHashes },
        .init("GET", "cluster", .anyViewer) { ClusterRoutes(request: $0).show },
        .init("GET", "cluster/health", .anyViewer) { ClusterRoutes(request: $0).health },
        .init("POST", "cluster/nodes", .dangerous(.cluster)) { ClusterRoutes(request: $0).addNode },
        .init("DELETE", "cluster/nodes", .dangerous(.cluster)) { ClusterRoutes(request: $0).removeNode },
        .init("POST", "cluster/replace", .dangerous(.cluster)) { ClusterRoutes(request: $0).replaceNode },
        .init("POST", "cluster/leaders", .dangerous(.cluster)) { ClusterRoutes(request: $0).setLeaders },
        .init("GET", "administrators", .init(.admin, .cluster)) { AdministratorRoutes(request: $0).list },
        .init("POST", "administrators", .dangerous(.cluster)) { AdministratorRoutes(request: $0).create },
        .init("PATCH", "administrators", .dangerous(.cluster)) { AdministratorRoutes(request: $0).update },
        .init("DELETE", "administrators", .dangerous(.cluster)) { AdministratorRoutes(request: $0).delete },
        .init("POST", "console/links", .anyViewer) { ConsoleRoutes(request: $0).makeLink },
        .init("POST", "console/sign-in", nil) { ConsoleRoutes(request: $0).signIn },
        .init("GET", "console/me", .anyViewer) { ConsoleRoutes(request: $0).caller },
        .init("POST", "console/password", .init(.viewer, .anywhere, isDangerous: true)) {
            ConsoleRoutes(request: $0).setPassword
        },
        .init("POST", "console/token", .init(.viewer, .anywhere, isDangerous: true)) {
            ConsoleRoutes(request: $0).makeToken
        },
        .init("DELETE", "console/token", .anyViewer) { ConsoleRoutes(request: $0).revokeToken },
        .init("POST", "console/sign-out", .anyViewer) { ConsoleRoutes(request: $0).signOut },
    ]
}

/// What an operation of the administration asks of the administrator, and where its request says what it is about.
///
/// Routes read a container from one place only, and so does the check: a request that names two is judged by the one
/// that is used.
struct AdminPermission: Sendable {
    enum Subject: Sendable {
        case cluster
        /// Everybody with the role; the operation shows each what they may see.
        case anywhere
        /// The parameters `container` and `environment`.
        case query
        /// The body's members `container` and `environment`.
        case body
        /// As `body`. A token that is not an app's speaks for somebody: for that the role is `admin`.
        case newToken
        /// What the token or the key of the parameter `id` is for.
        case oldToken, oldKey
    }

    let role: AdministratorRole
    let subject: Subject
    let isDangerous: Bool
    /// Whether the operation only says what it would do where the parameter `dryRun` asks for that.
    var hasDryRun = false

    /// Anybody with the role, wherever it holds.
    static let anyViewer = AdminPermission(.viewer, .anywhere)

    init(_ role: AdministratorRole, _ subject: Subject, isDangerous: Bool = false) {
        self.role = role
        self.subject = subject
        self.isDangerous = isDangerous
    }

    /// For an admin who has signed in a short time ago.
    /// - Parameter hasDryRun: what it would do may be seen without.
    static func dangerous(_ subject: Subject, unlessDry hasDryRun: Bool = false) -> Self {
        var permission = Self(.admin, subject, isDangerous: true)
        permission.hasDryRun = hasDryRun
        return permission
    }

    /// - Throws: `ACCESS_DENIED` where the request's administrator may not do this.
    func require(for request: AdminRequest) async throws(RequestFailure) {
        let isDry = hasDryRun && request.url["dryRun"] == "true"
        var need = AdministratorNeed(role, .container, isDangerous: isDangerous && !isDry)
        var container: String?
        var environment: Environment?
        switch subject {
        case .cluster: need.place = .cluster
        case .anywhere: need.place = .anywhere
        case .query:
            container = request.url.text("container")
            environment = try AdminRequest.environment(request.url["environment"])
        case .body, .newToken:
            let json = try request.json()
            container = json["container"]?.string
            environment = try json.environment()
            if case .newToken = subject, json["kind"]?.string != "api" { need = Self.forOthers }
        case .oldToken:
            let token = try await request.service.cluster.newestDirectory().token(withID: request.url["id"] ?? "")
            if case .api(let name, let place, _, _)? = token?.kind {
                (container, environment) = (name, place)
            } else {
                need = Self.forOthers
            }
        case .oldKey:
            let key = try await request.service.cluster.newestDirectory().serverKey(id: request.url["id"] ?? "")
            (container, environment) = (key?.container, key?.environment)
        }
        try request.administration.access.require(
            need, container: container, environment: environment, now: request.service.now)
    }

    /// For what would let somebody speak for another person, or takes that away.
    private static let forOthers = AdministratorNeed(.admin, .cluster, isDangerous: true)
}
