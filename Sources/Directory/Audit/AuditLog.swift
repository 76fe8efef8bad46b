/// Which audit log. Each is a chain of hashes of its own and keeps its own newest records, so that what anybody can
/// cause never pushes out what administrators did.
package enum AuditLog: String, Hashable, Sendable, CaseIterable {
    /// What administrators did or tried, who signed in, and what nodes found out, such as the copy of a token.
    case changes
    /// What anybody can have written, within `AuditBudgets`: failed sign-ins, refusals, and schemas that grew by saves.
    case requests

    /// That of `requests` is made with its first record.
    var table: String {
        switch self {
        case .changes: "audit"
        case .requests: "audit_request"
        }
    }

    /// The number and hash of the last record past retention.
    var baseTable: String { table + "_base" }
}
