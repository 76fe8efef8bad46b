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
    private let service: RecordService
    private let store: StoreKey
    private let accountID: String
    private let call: WebCall
    private let body: [UInt8]

    init(_ service: RecordService, _ call: WebCall, _ admitted: AdmittedCall, _ route: DataRoute) {
        accountID = admitted.accountID
        self.service = service
        store = admitted.store(in: route.target)
        self.call = call
        body = admitted.body
    }

    func respond(
        to action: NotificationAction, by deadline: Deadline,
        watch: (_ notifications: Notifications, _ limit: Int) -> PreferenceStream
    ) async throws(RequestFailure) -> Reply {
        let isStream = action == .watch && call.request.method == .get
        let form = isStream ? try NotificationsRequest(query: call) : try body.form()
        let ofURL = try call.clientID()
        let notifications = Notifications(
            service, store, accountID: accountID, client: form.clientID ?? ofURL, beginsAtEnd: form.beginsAtEnd)
        switch action {
        case .changes:
            return Reply(
                body: try await notifications.page(since: form.syncToken, limit: form.limit, by: deadline))
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
