/// The body of subscriptions/lookup.
package struct SubscriptionsLookupRequest: WebRequest, Hashable {
    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var ids: [String]

    /// Reads the body.
    package init(json: JSONValue) throws(ServiceError) {
        ids = try service { () throws(FormError) in
            try Form(json).array("subscriptions", max: Limits.operationsMax) { json throws(FormError) in
                try SubscriptionInput.id(Form(json), isNeeded: true)
            }
        }
    }
}

/// The body of subscriptions/modify.
package struct SubscriptionsModifyRequest: WebRequest, Hashable {
    /// One operation.
    package enum Operation: Hashable, Sendable {
        /// `create` and `update` do the same: a subscription of the same name is replaced.
        case save(SubscriptionInput)
        case delete(id: String)
        /// It is not carried out, and answered for with the error.
        case invalid(id: String, ServiceError)

        /// The ID of the subscription; empty where the server is to make one, and where none was given.
        package var id: String {
            switch self {
            case .save(let input): input.id
            case .delete(let id), .invalid(let id, _): id
            }
        }
    }

    /// At most `Limits.operationsMax`. Each stands alone; of several for one subscription only the first counts.
    package var operations: [Operation]

    /// Reads the body. What is wrong with an operation is its own.
    package init(json: JSONValue) throws(ServiceError) {
        operations = try service { () throws(FormError) in
            var places: [String: Int] = [:]
            var index = -1
            return try Form(json).array("operations", max: Limits.operationsMax) { json throws(FormError) in
                index += 1
                do throws(FormError) {
                    let operation = try Self.operation(Form(json))
                    guard !operation.id.isEmpty, let earlier = places[operation.id] else {
                        places[operation.id] = index
                        return operation
                    }
                    throw FormError(
                        "operations[\(earlier)] is for '\(operation.id)' too; at most one operation for a subscription in "
                            + "one request", at: "subscription.subscriptionID")
                } catch {
                    return .invalid(id: Self.id(in: json), error.inside("operations[\(index)]").serviceError)
                }
            }
        }
    }

    /// The ID in an operation that cannot be read; empty where that cannot, either.
    private static func id(in operation: JSONValue) -> String {
        guard let form = try? Form(operation["subscription"] ?? .null) else { return "" }
        return (try? SubscriptionInput.id(form, isNeeded: false)) ?? ""
    }

    private static func operation(_ form: Form) throws(FormError) -> Operation {
        let kind = try form.need("operationType")
        let json = try form.need("subscription")
        return try at("subscription") { () throws(FormError) in
            switch kind.string {
            case "create", "update": .save(try SubscriptionInput(Form(json)))
            case "delete": .delete(id: try SubscriptionInput.id(Form(json), isNeeded: true))
            default:
                throw FormError(
                    "expected create, update or delete, found \(kind.string.map { "'\($0)'" } ?? kind.kind)",
                    at: "operationType")
            }
        }
    }
}

/// A subscription as a client sent it.
package struct SubscriptionInput: Hashable, Sendable {
    /// Empty where the server is to make one.
    package var id: String
    /// What it looks at.
    package var kind: Subscription.Kind
    /// Nil is every zone.
    package var zoneID: ZoneID?
    /// Nil is every type.
    package var recordType: String?
    /// What records must match, for a query.
    package var query: QueryInput?
    /// The query as it was sent.
    package var queryJSON: [UInt8] = []
    /// On what it tells; only of a query.
    package var firing: Subscription.Firing = []
    /// Tells once, and is gone.
    package var firesOnce = false
    /// The JSON object; empty where there is none.
    package var info: [UInt8] = []

    static func id(_ form: Form, isNeeded: Bool) throws(FormError) -> String {
        guard let id = try form.string("subscriptionID") else {
            if isNeeded { throw FormError("is missing", at: "subscriptionID") }
            return ""
        }
        try at("subscriptionID") { () throws(FormError) in try Names.checkPrintable(id) }
        return id
    }

    init(_ form: Form) throws(FormError) {
        id = try Self.id(form, isNeeded: false)
        let type = try form.need("subscriptionType")
        switch type.string?.lowercased() {
        case "query": kind = .query
        case "zone": kind = .zone
        case "database": kind = .database
        default:
            throw FormError(
                "expected query, zone or database, found \(type.string.map { "'\($0)'" } ?? type.kind)",
                at: "subscriptionType")
        }
        zoneID = try form.nested("zoneID") { json throws(FormError) in try ZoneID(form: json) }
        if let name = try form.string("recordType") {
            try at("recordType") { () throws(FormError) in try Names.checkType(name) }
            recordType = name
        }
        if kind == .query { try readQuery(form) }
        if kind == .zone, zoneID == nil { throw FormError("is missing", at: "zoneID") }
        if kind == .database, zoneID != nil {
            throw FormError("a subscription to a database has no zone", at: "zoneID")
        }
        if let json = form["notificationInfo"] {
            info = try at("notificationInfo") { () throws(FormError) in
                try NotificationInfoForm.checked(json, for: kind)
            }
        }
    }

    private mutating func readQuery(_ form: Form) throws(FormError) {
        let json = try form.need("query")
        let input = try at("query") { () throws(FormError) in try QueryInput(form: json) }
        query = input
        recordType = input.recordType
        var writer = JSONWriter()
        writer.value(json)
        queryJSON = writer.bytes
        let events = try form.array("firesOn") { json throws(FormError) -> Subscription.Firing in
            switch json.string {
            case "create": .create
            case "update": .update
            case "delete": .delete
            default: throw FormError("expected create, update or delete, found \(json.string ?? json.kind)")
            }
        }
        firing = (events ?? []).reduce(into: []) { $0.formUnion($1) }
        if firing.isEmpty { throw FormError("at least one of create, update and delete is needed", at: "firesOn") }
        firesOnce = try form.bool("firesOnce") ?? false
        if zoneID == nil, try form.bool("zoneWide") == false { zoneID = ZoneID() }
    }
}

/// The rules of `notificationInfo`. What is not known is kept.
private enum NotificationInfoForm {
    private static let texts = [
        "alertBody", "alertLocalizationKey", "title", "titleLocalizationKey", "subtitle", "subtitleLocalizationKey",
        "alertActionLocalizationKey", "alertLaunchImage", "soundName", "category", "collapseIDKey",
    ]
    private static let lists = [
        "alertLocalizationArgs", "titleLocalizationArgs", "subtitleLocalizationArgs", "additionalFields",
    ]
    private static let flags = ["shouldBadge", "shouldSendContentAvailable", "shouldSendMutableContent"]
    private static let bytesMax = 8 << 10

    static func checked(_ json: JSONValue, for kind: Subscription.Kind) throws(FormError) -> [UInt8] {
        let form = try Form(json)
        for key in texts { _ = try form.string(key) }
        for key in flags { _ = try form.bool(key) }
        for key in lists {
            _ = try form.array(key) { json throws(FormError) in
                guard let name = json.string else { throw .expected("a string", json) }
                try Names.checkIdentifier(name)
            }
        }
        if let fields = form["additionalFields"]?.array, !fields.isEmpty {
            guard kind == .query else {
                throw FormError("cannot add additionalFields to this subscription type", at: "additionalFields")
            }
            guard fields.count <= Limits.notificationFieldsMax else {
                throw FormError(
                    "\(fields.count) given, at most \(Limits.notificationFieldsMax)", at: "additionalFields")
            }
        }
        var writer = JSONWriter()
        writer.value(json)
        guard writer.bytes.count <= bytesMax else {
            throw FormError("has \(writer.bytes.count) bytes, at most \(bytesMax)", detail: .tooLarge)
        }
        return writer.bytes
    }
}

extension JSONWriter {
    /// A subscription dictionary.
    /// - Parameter zone: names a zone of the subscription's database.
    package mutating func subscription(_ subscription: Subscription, zone: (String) -> ZoneID) {
        beginObject()
        member("subscriptionID", subscription.id)
        member("subscriptionType", subscription.kind.webName)
        if let name = subscription.zone {
            key("zoneID")
            zoneID(zone(name))
        }
        if subscription.kind == .query {
            member("zoneWide", subscription.zone == nil)
            key("query")
            raw(subscription.queryJSON)
            key("firesOn")
            array { writer in for name in subscription.firing.names { writer.string(name) } }
            member("firesOnce", subscription.firesOnce)
        } else if let type = subscription.recordType {
            member("recordType", type)
        }
        if !subscription.info.isEmpty {
            key("notificationInfo")
            raw(subscription.info)
        }
        endObject()
    }

    /// What is left of a deleted subscription.
    package mutating func deletedSubscription(_ id: String) {
        object { $0.member("subscriptionID", id) }
    }

    /// The result for a subscription that failed.
    package mutating func subscriptionError(_ id: String, _ error: ServiceError) {
        beginObject()
        if !id.isEmpty { member("subscriptionID", id) }
        errorMembers(error)
        endObject()
    }
}

extension Subscription.Kind {
    /// As requests and answers have it.
    package var webName: String {
        switch self {
        case .query: "query"
        case .zone: "zone"
        case .database: "database"
        }
    }
}

extension Subscription.Firing {
    /// Those that are set, as requests and answers have them.
    package var names: [String] {
        [(Subscription.Firing.create, "create"), (.update, "update"), (.delete, "delete")]
            .filter { contains($0.0) }.map(\.1)
    }
}

/// The body of tokens/create and tokens/register.
package struct DeviceTokenRequest: WebRequest, Hashable {
    /// `development` or `production`, unchecked.
    package var environment: String
    /// For register, the token of an earlier create.
    package var token: String?
    /// The device, as it names itself.
    package var clientID: String?

    /// Reads the body.
    package init(json: JSONValue) throws(ServiceError) {
        (environment, token, clientID) = try service { () throws(FormError) in
            let form = try Form(json)
            guard let environment = try form.string("apnsEnvironment") else {
                throw FormError("'development' or 'production' is expected", at: "apnsEnvironment")
            }
            let client = try form.token("clientId")
            if let client { try at("clientId") { () throws(FormError) in try Names.checkPrintable(client) } }
            return (environment, try form.token("apnsToken"), client)
        }
    }
}

/// The body of push/changes and push/watch.
package struct NotificationsRequest: WebRequest, Hashable {
    /// Without a body everything is as by default.
    package static var isBodyOptional: Bool { true }

    /// How long a long poll waits at most, in seconds.
    private static let secondsMax = 30

    /// Where to go on; nil begins with the first notification that is kept, or at the end.
    package var syncToken: String?
    /// Whether what has no token begins with what comes next.
    package var beginsAtEnd = false
    /// The device that reads: it is not told of its own changes.
    package var clientID: String?
    /// Notifications of a page.
    package var limit = Limits.recordsPerPageMax
    /// How long a long poll waits.
    package var seconds = UInt64(secondsMax)

    package init() {}

    /// Reads the body.
    package init(json: JSONValue) throws(ServiceError) {
        self.init()
        try service { () throws(FormError) in
            let form = try Form(json)
            syncToken = try form.token("syncToken")
            beginsAtEnd = try form.bool("fromEnd") ?? false
            limit = try form.resultsLimit() ?? limit
            if let name = try form.token("clientId") {
                try at("clientId") { () throws(FormError) in try Names.checkPrintable(name) }
                clientID = name
            }
            if let given = try form.integer("timeout") {
                guard given >= 0 else { throw FormError("expected seconds, at most \(Self.secondsMax)", at: "timeout") }
                seconds = UInt64(min(given, Self.secondsMax))
            }
        }
    }
}
