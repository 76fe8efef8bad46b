package import RecordModel
package import Telemetry
package import Wire

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

    package init() {}

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
