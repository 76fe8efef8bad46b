/// The body of changes/database; it may be left out.
package struct DatabaseChangesForm: WebRequest, Hashable {
    /// Where the page before ended, as the server gave it; nil for the beginning.
    package var syncToken: String?
    /// Zones wanted, 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int

    package static let isBodyOptional = true

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in
            let form = try Form(json)
            return DatabaseChangesForm(
                syncToken: try form.token("syncToken"),
                resultsLimit: try form.resultsLimit() ?? Limits.recordsPerPageMax)
        }
    }

    private init(syncToken: String?, resultsLimit: Int) {
        self.syncToken = syncToken
        self.resultsLimit = resultsLimit
    }
}

/// The body of zones/changes, the older form of changes/database; it may be left out.
package struct ZonesChangesForm: WebRequest, Hashable {
    /// Where the page before ended: `metaSyncToken`, or `syncToken`, of which the reference speaks too; nil for the
    /// beginning.
    package var syncToken: String?
    /// Zones wanted, 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int

    package static let isBodyOptional = true

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in
            let form = try Form(json)
            let other = try form.token("syncToken")
            return ZonesChangesForm(
                syncToken: try form.token("metaSyncToken") ?? other,
                resultsLimit: try form.resultsLimit() ?? Limits.recordsPerPageMax)
        }
    }

    private init(syncToken: String?, resultsLimit: Int) {
        self.syncToken = syncToken
        self.resultsLimit = resultsLimit
    }
}
