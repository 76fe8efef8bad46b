import Directory
package import RecordModel
package import Telemetry
package import Wire

/// What a request asks for, as far as series tell requests apart.
package enum OperationGroup: String, Hashable, Sendable, CaseIterable, WireValue {
    case recordsWrite = "records/write"
    case recordsRead = "records/read"
    case changes, zones, users, subscriptions, assets, preferences, notifications
    case signIn = "sign-in"
    case administration
    case other
}

/// A request that was answered: who asked for what, and what became of it. It has nothing of what records hold, and no
/// secret.
package struct RequestEntry: Hashable, Sendable, WireMessage {
    /// The request's own, with the time at which it came.
    package var id: UUIDv7
    /// Such as `records/query`, `kv/set` or `admin/schema`: one of those that this build has.
    package var operation: String
    /// What it does, as series tell requests apart.
    package var group: OperationGroup
    /// Empty where the request names none.
    package var container = ""
    /// The container's; nil where the request names none.
    package var environment: Environment?
    /// The kind of database; nil where it is about none.
    package var database: Scope?
    /// The name of the zone; empty where it names none.
    package var zone = ""
    /// The first one that it names.
    package var recordType = ""
    /// The user's record name in the container, which says nothing outside of it; empty where nobody is signed in.
    package var user = ""
    /// By what it was let in: the id of an API token or a key, or an administrator's name. Never a secret.
    package var credential = ""
    /// The client's address; empty where it is not known.
    package var address = ""
    /// Of HTTP.
    package var status = 0
    /// Why it failed as a whole; nil where it did not.
    package var code: ErrorCode?
    /// Items of the answer that failed alone, and why the first of them did.
    package var failedItems = 0
    /// Why the first of these failed.
    package var itemCode: ErrorCode?
    /// From the request's head to that of its answer.
    package var microseconds: UInt64 = 0
    /// Records that were asked for or found.
    package var records = 0
    /// Of the request's body.
    package var bytesIn = 0
    /// Of the answer's.
    package var bytesOut = 0
    /// Other nodes that were asked, ascending.
    package var nodes: [UInt64] = []
    /// What refused it, where a rule did.
    package var refusal: RequestRefusal?
    /// The trace that it is a part of, recorded or not.
    package var trace: TraceID?
    /// Whether a page asked by itself, to be up to date. Series do not count it.
    package var isRefresh = false

    package init(id: UUIDv7, operation: String, group: OperationGroup) {
        self.id = id
        self.operation = operation
        self.group = group
    }

    /// When it came, in milliseconds since 1970.
    package var time: Int64 { id.milliseconds }
    /// Whether it failed, or a part of it.
    package var hasFailed: Bool { code != nil || status >= 400 || failedItems > 0 }
    /// Why, as far as there is a code.
    package var firstCode: ErrorCode? { code ?? itemCode }

    /// About how much memory it takes, texts that others may share included.
    var sizeBytes: Int {
        var size = MemoryLayout<Self>.stride + 8 * nodes.count
        for text in [operation, container, zone, recordType, user, credential, address] where text.utf8.count > 15 {
            size += text.utf8.count + 32
        }
        if let refusal { size += refusal.rule.utf8.count + refusal.reason.utf8.count + 64 }
        return size
    }

    package static var blank: Self {
        RequestEntry(id: UUIDv7(milliseconds: 0, random: (0, 0)), operation: "", group: .other)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &id)
        try wire.field(2, &operation)
        try wire.field(3, &group)
        try wire.field(4, &container, unless: "")
        try wire.field(5, &environment)
        try wire.field(6, &database)
        try wire.field(7, &zone, unless: "")
        try wire.field(8, &recordType, unless: "")
        try wire.field(9, &user, unless: "")
        try wire.field(10, &credential, unless: "")
        try wire.field(11, &address, unless: "")
        try wire.field(12, &status)
        try wire.field(13, &code)
        try wire.field(14, &failedItems, unless: 0)
        try wire.field(15, &itemCode)
        try wire.field(16, &microseconds)
        try wire.field(17, &records, unless: 0)
        try wire.field(18, &bytesIn, unless: 0)
        try wire.field(19, &bytesOut, unless: 0)
        try wire.field(20, &nodes)
        try wire.field(21, &refusal)
        try wire.field(22, &trace)
        try wire.field(23, &isRefresh, unless: false)
    }
}

/// The rule by which a request was refused, as it was at that moment.
package struct RequestRefusal: Hashable, Sendable, WireMessage {
    /// The limit's name, or what the rule is about: `role`, `permission`, `credential`.
    package var rule: String
    /// What is allowed, and what there was; nil where the rule counts nothing, or it was not known.
    package var limit: Int64?
    /// At that moment.
    package var used: Int64?
    /// After so many milliseconds a repeat may be let through; nil where waiting does not help.
    package var freeAfterMilliseconds: Int64?
    /// In words; empty where they could repeat what the request said.
    package var reason = ""

    package init(rule: String, limit: Int64? = nil, used: Int64? = nil) {
        self.rule = rule
        self.limit = limit
        self.used = used
    }

    package static var blank: Self { RequestRefusal(rule: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &rule)
        try wire.field(2, &limit)
        try wire.field(3, &used)
        try wire.field(4, &freeAfterMilliseconds)
        try wire.field(5, &reason, unless: "")
    }
}

extension RequestRefusal {
    /// What refused a request; nil where no rule did, but the request itself was wrong, or the server.
    ///
    /// Reasons are kept where they are about limits only: others may quote the request.
    init?(_ failure: RequestFailure) {
        self.init(rule: "")
        switch (failure.rule, failure.details, failure.error.code) {
        case (let rule?, _, _): self = rule
        case (nil, .limit(let name, let actual, let max, _)?, _): self.init(rule: name, limit: max, used: actual)
        case (nil, .leastRole(let role)?, _): rule = "role \(role.rawValue)"
        case (nil, .freshSignIn?, _): rule = "sign-in of the last 15 minutes"
        case (nil, .bodyTooLarge?, _), (nil, .requestTooLarge?, _): rule = "requestBodyBytes"
        case (nil, _, .accessDenied): rule = "permission"
        case (nil, _, .authenticationFailed), (nil, _, .authenticationRequired): rule = "credential"
        case (nil, _, .quotaExceeded): rule = "quota"
        case (nil, _, .throttled): rule = "rate"
        case (nil, _, .tryAgainLater): rule = "availability"
        default: return nil
        }
        freeAfterMilliseconds = failure.error.retryAfterMilliseconds
        if [.throttled, .quotaExceeded, .tryAgainLater].contains(failure.error.code) {
            reason = String(failure.error.reason.prefix(300))
        }
    }
}

/// Which requests of the log are wanted; what is nil lets all through.
package struct RequestFilter: Hashable, Sendable, WireMessage {
    /// Whose requests may be seen at all; nil: everybody's, also those of no container.
    package var visible: [String]?
    /// Of this container.
    package var container: String?
    /// Of this environment.
    package var environment: Environment?
    /// Of this kind of database.
    package var database: Scope?
    /// An operation, or what comes before its slash, such as `records`.
    package var operation: String?
    /// Of the zone of this name.
    package var zone: String?
    /// Of this record type.
    package var recordType: String?
    /// Of the user of this record name.
    package var user: String?
    /// Those that failed with it, or of which an item did.
    package var code: ErrorCode?
    /// Those that failed, or of which a part did.
    package var isFailed = false
    /// Those of clients, and none of administrators.
    package var isOfClients = false
    /// Those that took so long at least.
    package var microsecondsMin: UInt64?
    /// Those that came from then on, in milliseconds since 1970.
    package var from: Int64?
    /// Those that came before then.
    package var until: Int64?
    /// Those that are a part of it.
    package var trace: TraceID?

    package static var blank: Self { RequestFilter() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &visible, members: 2)
        try wire.field(3, &container)
        try wire.field(4, &environment)
        try wire.field(5, &database)
        try wire.field(6, &operation)
        try wire.field(7, &zone)
        try wire.field(8, &recordType)
        try wire.field(9, &user)
        try wire.field(10, &code)
        try wire.field(11, &isFailed, unless: false)
        try wire.field(12, &isOfClients, unless: false)
        try wire.field(13, &microsecondsMin)
        try wire.field(14, &from)
        try wire.field(15, &until)
        try wire.field(16, &trace)
    }

    /// Whether a request is wanted.
    func admits(_ entry: RequestEntry) -> Bool {
        guard visible?.contains(entry.container) ?? true, container.map({ $0 == entry.container }) ?? true,
            environment == nil || environment == entry.environment, database == nil || database == entry.database,
            !isFailed || entry.hasFailed, !isOfClients || entry.group != .administration,
            code == nil || code == entry.code || code == entry.itemCode,
            entry.microseconds >= microsecondsMin ?? 0, entry.time >= from ?? .min, entry.time < until ?? .max
        else { return false }
        return isOperation(of: entry) && (zone.map { $0 == entry.zone } ?? true)
            && (recordType.map { $0 == entry.recordType } ?? true) && (user.map { $0 == entry.user } ?? true)
            && (trace == nil || trace == entry.trace)
    }

    private func isOperation(of entry: RequestEntry) -> Bool {
        guard let operation, operation != entry.operation else { return true }
        return entry.operation.hasPrefix(operation)
            && entry.operation.utf8.dropFirst(operation.utf8.count).first == UInt8(ascii: "/")
    }
}
