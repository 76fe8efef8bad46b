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
        package var kind: Kind
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
