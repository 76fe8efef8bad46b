import Directory
import RecordModel
import Service

/// Every action under `/database/1/{container}/{environment}/{database}/`: the table of contents of the protocol.
enum DatabaseAction: String, CaseIterable, Sendable {
    case modifyRecords = "records/modify"
    case lookUpRecords = "records/lookup"
    case queryRecords = "records/query"
    case recordVersions = "records/versions"
    case recordChanges = "records/changes"
    case zoneChanges = "changes/zone"
    case databaseChanges = "changes/database"
    case zonesChanges = "zones/changes"
    case listZones = "zones/list"
    case lookUpZones = "zones/lookup"
    case modifyZones = "zones/modify"
    case caller = "users/caller"
    case currentUser = "users/current"
    case discoverUsers = "users/discover"
    case lookUpUsersByEmail = "users/lookup/email"
    case lookUpUsersByID = "users/lookup/id"
    case contacts = "users/lookup/contacts"
    case resolveShares = "records/resolve"
    case acceptShares = "records/accept"
    case prepareZip = "records/zip/prepare"
    case uploadAssets = "assets/upload"
    case rereferenceAssets = "assets/rereference"
    case listSubscriptions = "subscriptions/list"
    case lookUpSubscriptions = "subscriptions/lookup"
    case modifySubscriptions = "subscriptions/modify"

    /// Clients call what needs no body with either method.
    var methods: [String] {
        switch self {
        case .listZones, .caller, .currentUser, .discoverUsers, .contacts, .listSubscriptions: ["GET", "POST"]
        default: ["POST"]
        }
    }

    /// - Throws: `NOT_FOUND` for an action that there is not, 405 for a method that it is not called with.
    init(_ path: String, method: String) throws(RequestFailure) {
        guard let action = DatabaseAction(rawValue: path) else {
            throw .notFound("no action '\(path)'")
        }
        try RequestFailure.require(method, of: action.methods, for: path)
        self = action
    }

    /// The least role of an administrator who calls it for public data; production asks for `admin` to change anything.
    var leastRole: AdministratorRole {
        switch self {
        case .modifyRecords, .modifyZones, .uploadAssets, .rereferenceAssets, .acceptShares, .modifySubscriptions:
            .developer
        case .caller, .currentUser, .discoverUsers, .lookUpUsersByEmail, .lookUpUsersByID, .contacts: .admin
        case .lookUpRecords, .queryRecords, .recordVersions, .recordChanges, .zoneChanges, .databaseChanges,
            .zonesChanges, .listZones, .lookUpZones, .resolveShares, .prepareZip, .listSubscriptions,
            .lookUpSubscriptions:
            .viewer
        }
    }

    /// What it does, as series tell requests apart.
    var group: OperationGroup {
        switch self {
        case .modifyRecords, .acceptShares: .recordsWrite
        case .lookUpRecords, .queryRecords, .recordVersions, .resolveShares: .recordsRead
        case .recordChanges, .zoneChanges, .databaseChanges, .zonesChanges: .changes
        case .listZones, .lookUpZones, .modifyZones: .zones
        case .caller, .currentUser, .discoverUsers, .lookUpUsersByEmail, .lookUpUsersByID, .contacts: .users
        case .prepareZip, .uploadAssets, .rereferenceAssets: .assets
        case .listSubscriptions, .lookUpSubscriptions, .modifySubscriptions: .subscriptions
        }
    }

    private var isLongRead: Bool {
        switch self {
        case .queryRecords, .recordChanges, .zoneChanges, .databaseChanges, .zonesChanges: true
        default: false
        }
    }

    /// - Parameter long: ends what may read much when its client goes away.
    func respond(to call: DatabaseCall, _ long: ClientDisconnect?) async throws(RequestFailure) -> Reply {
        if isLongRead, long != nil {
            return try await long.whileClientStays { () throws(RequestFailure) in try await respond(to: call, nil) }
        }
        return switch self {
        case .modifyRecords: try await RecordRoutes(call: call).modify()
        case .lookUpRecords: try await RecordRoutes(call: call).lookUp()
        case .queryRecords: try await RecordRoutes(call: call).query()
        case .recordVersions: try await RecordRoutes(call: call).versions()
        case .recordChanges: try await ChangeRoutes(call: call).records()
        case .zoneChanges: try await ChangeRoutes(call: call).zones()
        case .databaseChanges: try await ChangeRoutes(call: call).database()
        case .zonesChanges: try await ChangeRoutes(call: call).zoneDictionaries()
        case .listZones: try await ZoneRoutes(call: call).list()
        case .lookUpZones: try await ZoneRoutes(call: call).lookUp()
        case .modifyZones: try await ZoneRoutes(call: call).modify()
        case .caller: try await UserRoutes(call: call).caller()
        case .currentUser: try await UserRoutes(call: call).current()
        case .discoverUsers: try await UserRoutes(call: call).discover()
        case .lookUpUsersByEmail: try await UserRoutes(call: call).lookUpByEmail()
        case .lookUpUsersByID: try await UserRoutes(call: call).lookUpByID()
        case .contacts: try UserRoutes(call: call).contacts()
        case .uploadAssets: try await AssetRoutes(call: call).upload()
        case .rereferenceAssets: try await AssetRoutes(call: call).rereference()
        case .listSubscriptions: try await SubscriptionRoutes(call: call).list()
        case .lookUpSubscriptions: try await SubscriptionRoutes(call: call).lookUp()
        case .modifySubscriptions: try await SubscriptionRoutes(call: call).modify()
        case .resolveShares, .acceptShares, .prepareZip: throw .notBuilt(rawValue)
        }
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
