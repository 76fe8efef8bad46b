import Admission
import HTTPTypes
import HummingbirdCore
import KeyValueStore
import RecordModel
import Service

/// What is under `/push/1/{container}/{environment}/`.
enum NotificationAction: String, CaseIterable, Sendable {
    case changes, watch

    /// `watch` is a long poll with POST and a stream with GET.
    var methods: [String] { self == .watch ? ["GET", "POST"] : ["POST"] }

    /// - Throws: `NOT_FOUND` for an action that there is not, 405 for a method that it is not called with.
    init(_ name: String, method: String) throws(RequestFailure) {
        guard let action = NotificationAction(rawValue: name) else {
            throw .notFound("no action '\(name)': there are changes and watch")
        }
        try RequestFailure.require(method, of: action.methods, for: name)
        self = action
    }
}

/// `/push/1/{container}/{environment}/changes|watch`: the log of a user's notifications.
struct NotificationRoutes {
    let service: RecordService
    let target: Target
    let call: WebCall
    let admitted: AdmittedCall

    func respond(
        to action: NotificationAction, watch: (_ notifications: Notifications, _ limit: Int) -> PreferenceStream
    ) async throws(RequestFailure) -> Reply {
        let isStream = action == .watch && call.isSafe
        let form = isStream ? try NotificationsRequest(query: call) : try admitted.body.form()
        let ofURL = try call.clientID()
        let notifications = Notifications(
            service, admitted.store(in: target), accountID: admitted.accountID, client: form.clientID ?? ofURL,
            beginsAtEnd: form.beginsAtEnd)
        switch action {
        case .changes:
            return Reply(
                body: try await notifications.page(since: form.syncToken, limit: form.limit, by: admitted.deadline))
        case .watch where isStream:
            return try await watch(notifications, form.limit).events(since: call.lastEventID ?? form.syncToken)
        case .watch:
            return try await watch(notifications, form.limit).longPoll(since: form.syncToken, seconds: form.seconds)
        }
    }
}

extension NotificationsRequest {
    /// The parameters of a stream's URL.
    fileprivate init(query call: WebCall) throws(RequestFailure) {
        self.init()
        syncToken = call.url["syncToken"].flatMap { $0.isEmpty ? nil : $0 }
        switch call.url["fromEnd"] ?? "" {
        case "true": beginsAtEnd = true
        case "false", "": break
        default: throw .badRequest("fromEnd: true or false is expected")
        }
        guard let text = call.url["resultsLimit"] else { return }
        guard let number = Int(text), number > 0 else {
            throw .badRequest("resultsLimit: a whole number above 0 is expected")
        }
        limit = min(number, limit)
    }
}

/// `subscriptions/list`, `subscriptions/lookup` and `subscriptions/modify`.
struct SubscriptionRoutes {
    let call: DatabaseCall

    private var subscriptions: Subscriptions { Subscriptions(call.request) }

    /// `GET subscriptions/list`: all of the caller's to this database, by name.
    func list() async throws(RequestFailure) -> Reply {
        let found = try await subscriptions.list()
        return reply { writer in for subscription in found { write(subscription, to: &writer) } }
    }

    /// `POST subscriptions/lookup`.
    func lookUp() async throws(RequestFailure) -> Reply {
        let ids = try call.form(SubscriptionsLookupRequest.self).ids
        let found = try await subscriptions.lookUp(ids)
        return reply { writer in
            for id in ids {
                if let subscription = found.first(where: { $0.id.utf8.elementsEqual(id.utf8) }) {
                    write(subscription, to: &writer)
                } else {
                    writer.subscriptionError(id, ServiceError(.notFound, "no subscription '\(id)'"))
                }
            }
        }
    }

    /// `POST subscriptions/modify`: each operation stands alone.
    func modify() async throws(RequestFailure) -> Reply {
        let operations = try call.form(SubscriptionsModifyRequest.self).operations
        let outcomes = try await subscriptions.modify(operations)
        return reply { writer in
            for (operation, outcome) in zip(operations, outcomes) {
                switch outcome {
                case .saved(let subscription): write(subscription, to: &writer)
                case .deleted: writer.deletedSubscription(operation.id)
                case .failed(let error):
                    call.note.itemFailed(error)
                    writer.subscriptionError(operation.id, error)
                }
            }
        }
    }

    private func write(_ subscription: Subscription, to writer: inout JSONWriter) {
        writer.subscription(subscription) { call.request.zoneID(named: $0) }
    }

    private func reply(_ members: (inout JSONWriter) -> Void) -> Reply {
        Reply { $0.array("subscriptions", members) }
    }
}

/// What is under `/device/1/{container}/{environment}/`.
enum DeviceTokenAction: String, CaseIterable, Sendable {
    case create = "tokens/create"
    case register = "tokens/register"

    var methods: [String] { ["POST"] }

    /// - Throws: `NOT_FOUND` for a path that there is not, 405 for a method that it is not called with.
    init(_ url: RequestURL, method: String) throws(RequestFailure) {
        guard url.segments.count == 6, url.segments[1] == "1",
            let action = DeviceTokenAction(rawValue: url.segments.dropFirst(4).joined(separator: "/"))
        else {
            throw .notFound("tokens are at /device/1/{container}/{environment}/tokens/{create|register}")
        }
        try RequestFailure.require(method, of: action.methods, for: action.rawValue)
        self = action
    }
}

/// `/device/1/{container}/{environment}/tokens/create|register`, and the courier's URL.
struct DeviceTokenRoutes {
    let service: RecordService
    let call: WebCall

    func respond(
        to action: DeviceTokenAction, _ admitted: AdmittedCall, _ route: DataRoute
    ) async throws(RequestFailure) -> Reply {
        let form: DeviceTokenRequest = try admitted.body.form()
        let ofURL = try call.clientID()
        let device = DeviceTokens.Device(
            store: admitted.store(in: route.target), accountID: admitted.accountID, client: form.clientID ?? ofURL)
        guard let environment = DeviceTokens.PushEnvironment(rawValue: form.environment) else {
            throw .badRequest("apnsEnvironment: 'development' or 'production' is expected, not '\(form.environment)'")
        }
        let tokens = DeviceTokens(service)
        let token: String
        switch action {
        case .create: token = try await tokens.create(device, environment)
        case .register:
            guard let given = form.token else {
                throw .badRequest("apnsToken: a token of tokens/create is expected")
            }
            try await tokens.register(given, device, environment)
            token = given
        }
        return Reply { writer in
            writer.member("apnsEnvironment", environment.rawValue)
            writer.member("apnsToken", token)
            writer.member(
                "webcourierURL",
                "\(call.baseURL)/aps?tok=\(token)&ttl=\(DeviceTokens.lifeMilliseconds / 1_000)")
        }
    }

    /// One notification; `null`, which CloudKit JS passes over, where there is none for a while.
    func courier() async throws(RequestFailure) -> Reply {
        try RequestFailure.require(call.request.method.rawValue, of: ["GET"], for: "aps")
        guard let token = call.url["tok"], !token.isEmpty else {
            throw .badRequest("tok: a token of tokens/create is expected")
        }
        let payload = try await call.clientDisconnect.whileClientStays { [service, call] () throws(RequestFailure) in
            try await DeviceTokens(service).next(token, address: call.address)
        }
        return Reply(body: payload ?? Array("null".utf8))
    }
}
