import Directory
import RecordModel
import Service

/// One action under `/database/1/{container}/{environment}/{database}/`.
struct DatabaseAction: Sendable {
    /// Its place behind that, by which logs name it, too.
    let path: String
    /// The least role of an administrator who calls it for public data; production asks for `admin` to change anything.
    let leastRole: AdministratorRole
    /// What it does, as series tell requests apart.
    let group: OperationGroup
    let methods: [String]
    /// Whether it may read much, which ends when its client goes away.
    private let isLong: Bool
    /// The method that answers a call; nil where CloudKit has the action, and this version does not have it yet.
    private let answer: (@Sendable (DatabaseCall) -> AdminRoute.Answer)?

    /// - Parameter takesGet: clients call what needs no body with either method.
    private init(
        _ path: String, _ leastRole: AdministratorRole, _ group: OperationGroup, isLong: Bool = false,
        takesGet: Bool = false, _ answer: (@Sendable (DatabaseCall) -> AdminRoute.Answer)? = nil
    ) {
        self.path = path
        self.leastRole = leastRole
        self.group = group
        self.isLong = isLong
        methods = takesGet ? ["GET", "POST"] : ["POST"]
        self.answer = answer
    }

    /// - Throws: `NOT_FOUND` for an action that there is not, 405 for a method that it is not called with.
    static func find(_ path: String, method: String) throws(RequestFailure) -> DatabaseAction {
        guard let action = all.first(where: { $0.path == path }) else { throw .notFound("no action '\(path)'") }
        try RequestFailure.require(method, of: action.methods, for: path)
        return action
    }

    /// The table of contents of the protocol.
    static let all: [DatabaseAction] = [
        .init("records/modify", .developer, .recordsWrite) { RecordRoutes(call: $0).modify },
        .init("records/lookup", .viewer, .recordsRead) { RecordRoutes(call: $0).lookUp },
        .init("records/query", .viewer, .recordsRead, isLong: true) { RecordRoutes(call: $0).query },
        .init("records/versions", .viewer, .recordsRead) { RecordRoutes(call: $0).versions },
        .init("records/changes", .viewer, .changes, isLong: true) { ChangeRoutes(call: $0).records },
        .init("changes/zone", .viewer, .changes, isLong: true) { ChangeRoutes(call: $0).zones },
        .init("changes/database", .viewer, .changes, isLong: true) { ChangeRoutes(call: $0).database },
        .init("zones/changes", .viewer, .changes, isLong: true) { ChangeRoutes(call: $0).zoneDictionaries },
        .init("zones/list", .viewer, .zones, takesGet: true) { ZoneRoutes(call: $0).list },
        .init("zones/lookup", .viewer, .zones) { ZoneRoutes(call: $0).lookUp },
        .init("zones/modify", .developer, .zones) { ZoneRoutes(call: $0).modify },
        .init("users/caller", .admin, .users, takesGet: true) { UserRoutes(call: $0).caller },
        .init("users/current", .admin, .users, takesGet: true) { UserRoutes(call: $0).current },
        .init("users/discover", .admin, .users, takesGet: true) { UserRoutes(call: $0).discover },
        .init("users/lookup/email", .admin, .users) { UserRoutes(call: $0).lookUpByEmail },
        .init("users/lookup/id", .admin, .users) { UserRoutes(call: $0).lookUpByID },
        .init("users/lookup/contacts", .admin, .users, takesGet: true) { UserRoutes(call: $0).contacts },
        .init("records/resolve", .viewer, .recordsRead),
        .init("records/accept", .developer, .recordsWrite),
        .init("records/zip/prepare", .viewer, .assets),
        .init("assets/upload", .developer, .assets) { AssetRoutes(call: $0).upload },
        .init("assets/rereference", .developer, .assets) { AssetRoutes(call: $0).rereference },
        .init("subscriptions/list", .viewer, .subscriptions, takesGet: true) { SubscriptionRoutes(call: $0).list },
        .init("subscriptions/lookup", .viewer, .subscriptions) { SubscriptionRoutes(call: $0).lookUp },
        .init("subscriptions/modify", .developer, .subscriptions) { SubscriptionRoutes(call: $0).modify },
    ]

    /// - Parameter client: ends what may read much when it goes away.
    func respond(to call: DatabaseCall, _ client: ClientDisconnect?) async throws(RequestFailure) -> Reply {
        guard let answer else { throw .notBuilt(path) }
        guard isLong else { return try await answer(call)() }
        return try await client.whileClientStays { () throws(RequestFailure) in try await answer(call)() }
    }
}

extension RequestFailure {
    /// - Throws: 405 for a method that an action is not called with. HEAD is asked for as GET is.
    static func require(_ method: String, of methods: [String], for action: String) throws(RequestFailure) {
        let all = withHead(methods)
        guard all.contains(method) else { throw wrongMethod(method, of: all, for: action) }
    }

    /// These methods, and HEAD where GET is among them.
    static func withHead(_ methods: [String]) -> [String] {
        methods.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] }
    }

    static func wrongMethod(_ method: String, of methods: [String], for action: String) -> RequestFailure {
        RequestFailure(
            .badRequest, "\(action) is called with \(methods.joined(separator: " or ")), not with \(method)",
            details: .methods(methods))
    }
}
