/// The body of zones/lookup.
package struct ZonesLookupRequest: WebRequest, Hashable {
    /// In the order in which results must come.
    package var zones: [ZoneID]

    package init(json: JSONValue) throws(ServiceError) {
        zones = try service { () throws(FormError) in
            try Form(json).array("zones", max: Limits.operationsMax) { json throws(FormError) in
                // Clients send zone IDs; what zones/list returned, with the ID inside, is taken too.
                if let inner = json["zoneID"] {
                    return try at("zoneID") { () throws(FormError) in try ZoneID(form: inner) }
                }
                return try ZoneID(form: json)
            }
        }
    }
}

/// The body of zones/modify.
package struct ZonesModifyRequest: WebRequest, Hashable {
    /// One operation. That the default zone can be neither made nor deleted is the item's error, not the request's.
    package struct Operation: Hashable, Sendable {
        /// Whether the zone is made or deleted.
        package var kind: Kind
        /// The zone, whose name the client must state.
        package var zoneID: ZoneID
    }

    /// What to do; the raw value is the one on the wire.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case create, delete
    }

    /// At most `Limits.operationsMax`; no two name the same zone. All are attempted, in order.
    package var operations: [Operation]

    package init(json: JSONValue) throws(ServiceError) {
        operations = try service { () throws(FormError) in
            let operations = try Form(json).array("operations", max: Limits.operationsMax) { json throws(FormError) in
                try Self.operation(Form(json))
            }
            try Self.checkZones(operations)
            return operations
        }
    }

    private static func operation(_ form: Form) throws(FormError) -> Operation {
        let kindName = try form.need("operationType")
        guard let kind = kindName.string.flatMap(Kind.init(rawValue:)) else {
            let found = kindName.string.map { "'\($0)'" } ?? kindName.kind
            throw FormError("expected create or delete, found \(found)", at: "operationType")
        }
        let zone = try form.need("zone")
        let zoneID = try at("zone") { () throws(FormError) in
            let json = try Form(zone).need("zoneID")
            return try at("zoneID") { () throws(FormError) in
                // The default is for requests that mean no zone in particular, not for what to make or delete.
                guard try Form(json).string("zoneName") != nil else { throw FormError("is missing", at: "zoneName") }
                return try ZoneID(form: json)
            }
        }
        return Operation(kind: kind, zoneID: zoneID)
    }

    private static func checkZones(_ operations: [Operation]) throws(FormError) {
        var places: [ZoneID: Int] = [:]
        for (index, operation) in operations.enumerated() {
            if let earlier = places.updateValue(index, forKey: operation.zoneID) {
                throw FormError(
                    "operations[\(earlier)] is for '\(operation.zoneID.name)' too; at most one operation for a zone in "
                        + "one request", at: "operations[\(index)].zone.zoneID")
            }
        }
    }
}

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

    /// A request without a body starts at the beginning, with pages of the greatest size.
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

    /// A request without a body starts at the beginning, with pages of the greatest size.
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
