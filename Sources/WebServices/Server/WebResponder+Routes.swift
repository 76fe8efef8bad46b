import RecordModel

/// Every action under `/database/1/{container}/{environment}/{database}/`: the table of contents of the protocol.
enum DatabaseAction: String, CaseIterable, Sendable {
    case modifyRecords = "records/modify"
    case lookUpRecords = "records/lookup"
    case queryRecords = "records/query"
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

    func respond(
        to request: DatabaseRequest, in context: WebContext, uuid: String
    ) async throws(RequestFailure) -> Reply {
        switch self {
        case .modifyRecords: try await RecordsModify(context: context, request: request).respond(uuid: uuid)
        case .lookUpRecords: try await RecordsLookup(context: context, request: request).respond()
        case .queryRecords: try await RecordsQuery(context: context, request: request).respond()
        case .recordChanges: try await ZoneChanges(context: context, request: request).records()
        case .zoneChanges: try await ZoneChanges(context: context, request: request).zones()
        case .databaseChanges: try await DatabaseChanges(context: context, request: request).database()
        case .zonesChanges: try await DatabaseChanges(context: context, request: request).zones()
        case .listZones: try await Zones(context: context, request: request).list()
        case .lookUpZones: try await Zones(context: context, request: request).lookup()
        case .modifyZones: try await Zones(context: context, request: request).modify()
        case .caller: try await Users(context: context, request: request).caller()
        case .currentUser: try await Users(context: context, request: request).current()
        case .discoverUsers: try Users(context: context, request: request).discover()
        case .lookUpUsersByEmail: try Users(context: context, request: request).lookupByEmail()
        case .lookUpUsersByID: try Users(context: context, request: request).lookupByID()
        case .contacts: try Users(context: context, request: request).contacts()
        case .resolveShares, .acceptShares, .prepareZip, .uploadAssets, .rereferenceAssets, .listSubscriptions,
            .lookUpSubscriptions, .modifySubscriptions:
            throw .notBuilt(rawValue)
        }
    }
}
