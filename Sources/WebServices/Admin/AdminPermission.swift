import Directory
import RecordModel
import Service

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

    /// Anybody with the role, wherever it holds.
    static let anyViewer = AdminPermission(.viewer, .anywhere)

    init(_ role: AdministratorRole, _ subject: Subject, isDangerous: Bool = false) {
        self.role = role
        self.subject = subject
        self.isDangerous = isDangerous
    }

    /// - Throws: `ACCESS_DENIED` where the request's administrator may not do this.
    func require(for request: AdminRequest) async throws(RequestFailure) {
        var need = AdministratorNeed(role, .container, isDangerous: isDangerous)
        var container: String?
        var environment: Environment?
        switch subject {
        case .cluster: need.place = .cluster
        case .anywhere: need.place = .anywhere
        case .query:
            container = request.url["container"].flatMap { $0.isEmpty ? nil : $0 }
            environment = try AdminRequest.environment(request.url["environment"] ?? "development")
        case .body, .newToken:
            let json = try request.json
            container = json["container"]?.string
            environment = try AdminRequest.environment(json["environment"]?.string ?? "development")
            if case .newToken = subject, json["kind"]?.string != "api" { need = Self.forOthers }
        case .oldToken:
            let token = try await request.directory().token(withID: request.url["id"] ?? "")
            if case .api(let name, let place, _, _)? = token?.kind {
                (container, environment) = (name, place)
            } else {
                need = Self.forOthers
            }
        case .oldKey:
            let key = try await request.directory().serverKey(id: request.url["id"] ?? "")
            (container, environment) = (key?.container, key?.environment)
        }
        try request.access.require(
            need, container: container, environment: environment, now: request.context.service.now)
    }

    /// For what would let somebody speak for another person, or takes that away.
    private static let forOthers = AdministratorNeed(.admin, .cluster, isDangerous: true)
}
