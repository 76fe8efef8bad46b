import Foundation
import GRDB
package import RecordModel
import Wire

/// The hours of the audit log's budgets, as numbers since 1970.
package enum AuditHour {
    private static let milliseconds: Int64 = 3_600_000

    /// The hour that begins with an event; nil where the present one goes on. A clock that is a little behind begins no
    /// new hour; one that was far ahead must not keep its own for long, from `FeatureLevel.presentHours` on.
    package static func begun(
        at time: Int64, after hour: Int64, level: FeatureLevel = .presentHours
    ) -> Int64? {
        let new = time / milliseconds
        return new > hour || level >= .presentHours && new < hour - 1 ? new : nil
    }
}

/// Counts the audit log's records of one kind in this hour, of all nodes together. Beyond `recordsPerHourMax` they are
/// only counted, and one record reports their number when the next hour's first comes.
struct AuditBudget: Hashable, Sendable, WireMessage {
    /// Records that one kind may take in an hour: three kinds fill what the log keeps in 23 days.
    static let recordsPerHourMax: UInt64 = 600

    /// Hours since 1970.
    var hour: Int64 = 0
    var records: UInt64 = 0
    /// Events not yet reported by a record.
    var untold: UInt64 = 0

    init() {}

    /// The records to write for an event.
    /// - Parameter outcome: that of all events of the kind.
    mutating func take(
        _ event: AuditEvent, outcome: String = "refused", at level: FeatureLevel
    ) -> [AuditEvent] {
        var told: [AuditEvent] = []
        if let new = AuditHour.begun(at: event.origin.time, after: hour, level: level) {
            if untold > 0 {
                let origin = AuditOrigin(actor: "somebody", requestID: "", address: "", time: event.origin.time)
                told.append(
                    AuditEvent(
                        origin: origin, action: event.action,
                        subject: "many, since there were too many to tell one by one",
                        outcome: outcome, count: untold))
            }
            self = AuditBudget()
            hour = new
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

    static var blank: Self { AuditBudget() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &hour)
        try wire.field(2, &records)
        try wire.field(3, &untold)
    }
}

/// The budgets of what anybody can cause, one for each kind, so that a flood of one does not hide another.
struct AuditBudgets: Hashable, Sendable, WireMessage {
    enum Kind {
        /// Failed sign-ins, which need no account.
        case failures
        /// Requests without permission, and refused commands of others than administrators.
        case refusals
        /// Schemas that grew by saves.
        case growths
    }

    private var failures = AuditBudget()
    private var refusals = AuditBudget()
    private var growths = AuditBudget()

    init() {}

    /// The records to write for an event.
    mutating func take(_ event: AuditEvent, _ kind: Kind, at level: FeatureLevel) -> [AuditEvent] {
        switch kind {
        case .failures: failures.take(event, at: level)
        case .refusals: refusals.take(event, at: level)
        case .growths: growths.take(event, outcome: AuditEvent.done, at: level)
        }
    }

    static var blank: Self { AuditBudgets() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &failures.hour)
        try wire.field(2, &failures.records)
        try wire.field(3, &failures.untold)
        try wire.field(4, &refusals, unless: AuditBudget())
        try wire.field(5, &growths, unless: AuditBudget())
    }
}

/// What one entry of the directory tells the audit logs.
struct AuditedEvents {
    var changes: [AuditEvent] = []
    private var requests: [(event: AuditEvent, kind: AuditBudgets.Kind)] = []

    /// - Parameter outcome: of the entry's command.
    init(_ entry: DirectoryEntry, _ outcome: DirectoryOutcome) {
        if let command = entry.command, let origin = entry.origin,
            let event = command.auditEvent(of: origin, outcome)
        {
            add(event, Self.kind(of: command, by: origin, outcome))
        }
        for event in entry.events { add(event, event.isSignInFailure ? .failures : nil) }
        for event in entry.refusals { add(event, .refusals) }
    }

    private mutating func add(_ event: AuditEvent, _ kind: AuditBudgets.Kind?) {
        if let kind {
            requests.append((event, kind))
        } else {
            changes.append(event)
        }
    }

    /// Nil where the record needs no budget.
    private static func kind(
        of command: DirectoryCommand, by origin: AuditOrigin, _ outcome: DirectoryOutcome
    ) -> AuditBudgets.Kind? {
        switch command {
        case .noteSignInFailure, .console(.noteFailure): return .failures
        default: break
        }
        if case .setSchema(_, _, _, .some) = command { return .growths }
        if case .refused = outcome, !origin.isAdministrator { return .refusals }
        return nil
    }

    /// What the log of requests tells; what there is too much of is counted.
    func requestsWithinBudget(at level: FeatureLevel, in db: Database) throws -> [AuditEvent] {
        if requests.isEmpty { return [] }
        var budgets = try db.message("SELECT body FROM audit_failures") ?? AuditBudgets()
        let told = requests.flatMap { budgets.take($0.event, $0.kind, at: level) }
        try db.run("INSERT OR REPLACE INTO audit_failures (id, body) VALUES (1, ?)", [budgets.body])
        return told
    }
}

extension AuditEvent {
    /// Whether it reports a failed sign-in.
    var isSignInFailure: Bool { action == Self.signInFailure || (action == Self.signIn && outcome != Self.done) }

    static let signInFailure = "sign-in.fail"
    static let signIn = "sign-in"
    static let schemaGrowth = "schema.grow"
}
