import Authorization
import GRDB
import RecordModel

/// A query by one caller in one database: makes its plans and runs, zone by zone.
struct QueryReader {
    let db: Database
    let query: Query
    let container: String
    let type: InstalledType
    /// The only creator whose records the caller may read; nil if all.
    let onlyCreatedBy: Int64?
    /// Made once: a query has up to thousands of values, and a database thousands of zones.
    private let plan: QueryPlan
    /// Whether a filter asks for change tags, which mean something in one zone only.
    private let namesTags: Bool

    /// - Throws: `ServiceError` where the type is unknown, cannot be queried, or is closed to the caller.
    init(_ query: Query, caller: Caller, database: DatabaseKey, schema: InstalledSchema, in db: Database) throws {
        guard query.recordType != RecordType.usersName else {
            throw ServiceError(
                .badRequest, "records of type \(RecordType.usersName) cannot be queried: look them up by name")
        }
        guard let type = schema.byName[query.recordType] else {
            throw ServiceError(.badRequest, "record type not found: \(query.recordType)", detail: .unknownRecordType)
        }
        func mayRead(isCreator: Bool) -> Bool {
            Permissions(of: caller, in: type.definition, of: database, isCreator: isCreator).contains(.read)
        }
        guard mayRead(isCreator: true) else {
            throw ServiceError(.accessDenied, "no permission to read records of type \(type.definition.name)")
        }
        if mayRead(isCreator: false) {
            onlyCreatedBy = nil
        } else {
            // A number that no caller has: one that never wrote here has no records.
            onlyCreatedBy = try caller.user.flatMap { try Rows(db: db).userID($0) } ?? -1
        }
        self.db = db
        self.query = query
        self.type = type
        container = database.container
        namesTags = query.filters.contains { $0.field == SystemField.etag.rawValue }
        plan = try Self.plan(query, container: database.container, type: type)
    }

    /// The query's plan in a zone; nil stands for no particular zone.
    /// - Throws: `BAD_REQUEST` where the query asks for what the schema does not have.
    func plan(in zone: ZoneRow?) throws(ServiceError) -> QueryPlan {
        guard let zone, namesTags else { return plan }
        return try Self.plan(query, container: container, type: type, UInt64(bitPattern: zone.incarnation))
    }

    private static func plan(
        _ query: Query, container: String, type: InstalledType, _ incarnation: UInt64? = nil
    ) throws(ServiceError) -> QueryPlan {
        try QueryPlan(query, scope: QueryScope(container: container, type: type, incarnation: incarnation))
    }
}
