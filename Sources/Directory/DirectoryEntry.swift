package import RecordModel
package import Wire

/// What one entry of the directory's log holds: a command, and what the audit log shall tell.
package struct DirectoryEntry: Hashable, Sendable {
    /// Nil where the entry only brings events for the audit log, or only takes a position in the directory's log.
    package var command: DirectoryCommand?
    /// Who asked for the command; nil where the audit log need not tell of it.
    package var origin: AuditOrigin?
    /// What happened elsewhere and belongs in the audit log.
    package var events: [AuditEvent]
    /// What nodes refused for lack of permission; anybody can cause it, so it has a budget.
    package var refusals: [AuditEvent]

    package init(
        _ command: DirectoryCommand?, origin: AuditOrigin? = nil, events: [AuditEvent] = [],
        refusals: [AuditEvent] = []
    ) {
        self.command = command
        self.origin = origin
        self.events = events
        self.refusals = refusals
    }
}

extension DirectoryEntry: WireMessage {
    package static var blank: Self { DirectoryEntry(nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &command)
        try wire.field(2, &origin)
        try wire.field(3, &events)
        try wire.field(4, &refusals)
    }
}

/// A question to the directory's tables. What requests need to know is in `DirectorySnapshot`.
package enum DirectoryRead: Hashable, Sendable {
    /// Up to where the log was applied; also what no bytes at all ask for.
    case position
    /// Records of an audit log with numbers above `after`, up to `limit` of them: an `AuditPage`.
    case audit(AuditLog = .changes, after: UInt64, limit: UInt64)
    /// Records of an audit log that are looked for: `AuditFindings`.
    case search(AuditSearch)
}

extension DirectoryRead: WireCodable {
    /// Nothing: position. 1 audit: 1 after, 2 limit, 3 log (left out for that of changes). 2 search.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .position: break
        case .audit(let log, let after, let limit):
            AuditPart(after: after, limit: limit, log: log).write(1, to: &writer)
        case .search(let search): search.write(2, to: &writer)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self = .position
        while let field = try reader.nextField() {
            switch field {
            case 1:
                let part = try reader.message(AuditPart.self)
                self = .audit(part.log, after: part.after, limit: part.limit)
            case 2: self = .search(try reader.message())
            default: try reader.skip()
            }
        }
    }

    private struct AuditPart: WireMessage {
        var after: UInt64
        var limit: UInt64
        var log: AuditLog

        static var blank: Self { AuditPart(after: 0, limit: 0, log: .changes) }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &after)
            try wire.field(2, &limit)
            try wire.field(3, &log, unless: .changes)
        }
    }
}

/// One change of the directory, as the snapshots in memory take it over.
package enum DirectoryChange: Hashable, Sendable {
    case map(ClusterMap)
    /// A new container, with the schema of both its environments.
    case container(name: String, created: Int64, VersionedSchema)
    /// A container that lives no more, or whose purge begins.
    case containerDeleted(ContainerDeletion)
    case containerRestored(name: String)
    /// Nothing is left of it; its tokens, keys and roles went by changes of their own.
    case containerRemoved(name: String)
    case schema(SchemaKey, VersionedSchema)
    case containerKey(container: String, ContainerKey)
    case accountAdded(id: String)
    /// New values of an account, of its lock-out, or none any more.
    case accountChanged(id: String)
    /// A token of an app or an administrator.
    case token(Token)
    /// One of any kind: a session is over.
    case tokenRemoved(Token)
    /// So many accounts more have a session in the container, or fewer.
    case userCount(container: String, by: Int)
    /// When the first of all sessions expires, in milliseconds since 1970; nil: none does.
    case firstExpiry(Int64?)
    case serverKey(ServerKey)
    case serverKeyRemoved(id: String)
    case roleMember(RoleMember)
    case roleMemberRemoved(RoleMember)
    /// Nil: what holds for each container that has none of its own.
    case limits(container: String?, LimitOverrides)
    /// A new provider, or new values of one.
    case provider(IdentityProvider)
    case providerRemoved(name: String)
    case signUp(isOpen: Bool)
    /// A new webhook, or new values of one.
    case webhook(Webhook)
    case webhookRemoved(Webhook)
    /// What is said of a container; nothing, where it is empty.
    case containerDetails(ContainerDetails)
    case secret(ClusterSecret)
    /// All of them.
    case administrators([Administrator])
    case audit(AuditLog, AuditBounds)
}

/// Which records the audit log has.
package struct AuditBounds: Hashable, Sendable {
    /// The number of the last record past retention, 0 if all are there.
    package var purged: UInt64 = 0
    /// The number of the last record, `purged` if there is none.
    package var last: UInt64 = 0

    package init() {}

    package init(purged: UInt64, last: UInt64) {
        precondition(purged <= last, "purged to \(purged), last \(last)")
        self.purged = purged
        self.last = last
    }

    /// How many records the audit log has, without those past retention.
    package var count: UInt64 { last - purged }
}

/// One limit's new value.
package struct LimitChange: Hashable, Sendable, WireMessage {
    /// The limit that gets the value.
    package var limit: ContainerLimit
    /// Nil: what was set is taken back.
    package var value: Int64?

    package init(_ limit: ContainerLimit, _ value: Int64?) {
        self.limit = limit
        self.value = value
    }

    package static var blank: Self { LimitChange(.requestsPerSecond, nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &limit)
        try wire.field(2, &value)
    }
}

/// Where a limit's value comes from.
package enum LimitSource: String, Hashable, Sendable, CaseIterable {
    case `default`, cluster, container
}

/// The limits that were set for the cluster or for one container; all others are as they would be.
package struct LimitOverrides: Hashable, Sendable, WireMessage {
    /// Grows by one with every command that changes a value.
    package var epoch: UInt64 = 0
    /// Only the limits that were set; a container's others follow the cluster's values, and those the defaults.
    package var values: [ContainerLimit: Int64] = [:]

    package init() {}

    /// Whether a change made it differ; then it has a new epoch.
    mutating func apply(_ changes: [LimitChange]) -> Bool {
        let old = values
        for change in changes { values[change.limit] = change.value }
        if values == old { return false }
        epoch += 1
        return true
    }

    package static var blank: Self { LimitOverrides() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &epoch)
        try wire.field(2, &changes)
    }

    /// The values, sorted by the limits' names.
    private var changes: [LimitChange] {
        get { values.sorted { $0.key < $1.key }.map { LimitChange($0.key, $0.value) } }
        set { for change in newValue { values[change.limit] = change.value } }
    }
}
