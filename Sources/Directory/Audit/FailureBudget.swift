import Foundation
import GRDB
import Wire

/// How many failed sign-ins the audit log has told of in this hour. Anybody can fail to sign in, without an account: beyond
/// `recordsPerHourMax` failures are counted only, and one record tells of them when the next hour's first comes. So they cannot push
/// what others did out of the log.
struct FailureBudget: Hashable, Sendable {
    /// Records that failures may take in an hour, of all nodes together: 70 days of them fill what the log keeps.
    static let recordsPerHourMax: UInt64 = 600
    private static let hourMilliseconds: Int64 = 3_600_000

    /// Hours since 1970.
    var hour: Int64 = 0
    var records: UInt64 = 0
    /// Failures that no record tells of yet.
    var untold: UInt64 = 0

    init() {}

    /// What the log is to tell of a failure.
    mutating func take(_ event: AuditEvent) -> [AuditEvent] {
        let eventHour = event.origin.time / Self.hourMilliseconds
        var told: [AuditEvent] = []
        // A clock that is behind begins no new hour.
        if eventHour > hour {
            if untold > 0 {
                let origin = AuditOrigin(actor: "somebody", requestID: "", address: "", time: event.origin.time)
                told.append(
                    AuditEvent(
                        origin: origin, action: event.action,
                        subject: "many, since there were too many to tell one by one",
                        outcome: "refused", count: untold))
            }
            self = FailureBudget()
            hour = eventHour
            records = UInt64(told.count)
        }
        if records < Self.recordsPerHourMax {
            records += 1
            told.append(event)
        } else {
            untold &+= event.count
        }
        return told
    }
}

extension AuditEvent {
    /// Whether it tells of somebody who could not sign in.
    var isSignInFailure: Bool { action == Self.signInFailure || (action == Self.signIn && outcome != Self.done) }

    static let signInFailure = "sign-in.fail"
    static let signIn = "sign-in"
    static let schemaGrowth = "schema.grow"
}

extension DirectoryTables {
    /// The events that the log tells of; what failed sign-ins have too many of is counted.
    static func withinBudget(_ events: [AuditEvent], in db: Database) throws -> [AuditEvent] {
        guard events.contains(where: \.isSignInFailure) else { return events }
        let body = try Data.fetchOne(db, sql: "SELECT body FROM audit_failures")
        var budget = try body.map { try FailureBudget(decoding: [UInt8]($0)) } ?? FailureBudget()
        let told = events.flatMap { $0.isSignInFailure ? budget.take($0) : [$0] }
        try db.execute(
            sql: "INSERT OR REPLACE INTO audit_failures (id, body) VALUES (1, ?)", arguments: [Data(budget.encoded())])
        return told
    }
}

extension FailureBudget: WireCodable {
    /// 1 hour, 2 records, 3 untold.
    func encode(to writer: inout WireWriter) {
        writer.field(1, signed: hour)
        writer.field(2, records)
        writer.field(3, untold)
    }

    init(from reader: inout WireReader) throws(WireError) {
        while let field = try reader.nextField() {
            switch field {
            case 1: hour = try reader.signed()
            case 2: records = try reader.unsigned()
            case 3: untold = try reader.unsigned()
            default: try reader.skip()
            }
        }
    }
}
