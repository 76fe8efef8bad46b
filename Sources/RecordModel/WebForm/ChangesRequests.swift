/// The body of changes/zone.
package struct ZoneChangesRequestForm: WebRequest, Hashable {
    /// What a client wants of one zone. What it leaves out stands beside `zones`, for all of them.
    package typealias Item = RecordChangesRequest

    /// At most `Limits.operationsMax`, in the order in which results must come.
    package var zones: [Item]

    package init(json: JSONValue) throws(ServiceError) {
        zones = try service { () throws(FormError) in
            let form = try Form(json)
            // Faults beside `zones` are named even where every zone has its own.
            let defaults = try Defaults(form)
            return try form.array("zones", max: Limits.operationsMax) { json throws(FormError) in
                try Item(Form(json), defaults)
            }
        }
    }

    /// The members that may stand beside `zones`, and in each of them.
    struct Defaults {
        var zoneID: ZoneID?
        var syncToken: String?
        var resultsLimit: Int?
        var desiredKeys: [String]?
        var desiredRecordTypes: [String]?
        var isReverse: Bool?
        var numbersAsStrings: Bool?

        init() {}

        init(_ form: Form) throws(FormError) {
            zoneID = try form.nested("zoneID") { json throws(FormError) in try ZoneID(form: json) }
            syncToken = try form.token("syncToken")
            resultsLimit = try form.resultsLimit()
            desiredKeys = try form.desiredKeys()
            desiredRecordTypes = try form.desiredRecordTypes()
            isReverse = try form.bool("reverse")
            numbersAsStrings = try form.numbersAsStrings()
        }
    }
}

extension RecordChangesRequest {
    init(_ form: Form, _ defaults: ZoneChangesRequestForm.Defaults) throws(FormError) {
        let own = try ZoneChangesRequestForm.Defaults(form)
        guard let zoneID = own.zoneID ?? defaults.zoneID else { throw FormError("is missing", at: "zoneID") }
        // An empty token of the zone itself means the beginning, also where another stands beside `zones`.
        let syncToken = form["syncToken"] == nil ? defaults.syncToken : own.syncToken
        self.init(
            zoneID: zoneID, syncToken: syncToken,
            resultsLimit: own.resultsLimit ?? defaults.resultsLimit ?? Limits.recordsPerPageMax,
            desiredKeys: own.desiredKeys ?? defaults.desiredKeys,
            desiredRecordTypes: own.desiredRecordTypes ?? defaults.desiredRecordTypes,
            isReverse: own.isReverse ?? defaults.isReverse ?? false,
            numbersAsStrings: own.numbersAsStrings ?? defaults.numbersAsStrings ?? false)
    }
}

/// The body of changes/database; it may be left out.
package struct DatabaseChangesForm: WebRequest, Hashable {
    /// Where the page before ended, as the server gave it; nil for the beginning.
    package var syncToken: String?
    /// Zones wanted, 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int

    package static let isBodyOptional = true

    package init(json: JSONValue) throws(ServiceError) {
        (syncToken, resultsLimit) = try service { () throws(FormError) in
            let form = try Form(json)
            return (try form.token("syncToken"), try form.resultsLimit() ?? Limits.recordsPerPageMax)
        }
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
        (syncToken, resultsLimit) = try service { () throws(FormError) in
            let form = try Form(json)
            let other = try form.token("syncToken")
            return (
                try form.token("metaSyncToken") ?? other, try form.resultsLimit() ?? Limits.recordsPerPageMax
            )
        }
    }
}
