/// The body of records/modify.
package struct ModifyRecordsRequest: WebRequest, Hashable {
    /// At most `Limits.operationsMax`; no two name the same record.
    package var operations: [RecordOperation]
    package var zoneID: ZoneID
    /// Whether all happen or none; it counts in custom zones only.
    package var isAtomic: Bool
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    package var numbersAsStrings: Bool

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try ModifyRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        operations = try form.array("operations", max: Limits.operationsMax) { json throws(FormError) in
            try RecordOperation(form: json)
        }
        zoneID = try form.zoneID()
        isAtomic = try form.bool("atomic") ?? true
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
        try checkNames()
    }

    private func checkNames() throws(FormError) {
        var places: [String: Int] = [:]
        places.reserveCapacity(operations.count)
        for (index, operation) in operations.enumerated() {
            guard let name = operation.recordName else { continue }
            if let earlier = places.updateValue(index, forKey: name) {
                throw FormError(
                    "operations[\(earlier)] is for '\(name)' too; at most one operation for a record in one request",
                    at: "operations[\(index)].record.recordName")
            }
        }
    }
}

/// The body of records/lookup.
package struct LookupRecordsRequest: WebRequest, Hashable {
    /// A record to look up.
    package struct Item: Hashable, Sendable {
        package var recordName: String
        /// The fields to return; nil leaves it to the request.
        package var desiredKeys: [String]?
    }

    /// At most `Limits.recordsPerPageMax`, in the order in which results must come; a name may occur twice.
    package var records: [Item]
    package var zoneID: ZoneID
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    package var numbersAsStrings: Bool

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try LookupRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        records = try form.array("records", max: Limits.recordsPerPageMax) { json throws(FormError) in
            let record = try Form(json)
            guard let name = try record.string("recordName") else { throw FormError("is missing", at: "recordName") }
            try at("recordName") { () throws(FormError) in try Names.checkRecord(name, mayCreate: false) }
            return Item(recordName: name, desiredKeys: try record.desiredKeys())
        }
        zoneID = try form.zoneID()
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
    }
}

/// The body of records/changes, the older form of changes/zone for one zone; and what a client wants of one zone in
/// changes/zone.
package struct RecordChangesRequest: WebRequest, Hashable {
    package var zoneID: ZoneID
    /// Where the page before ended, as the server gave it; nil for the beginning.
    package var syncToken: String?
    /// 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    /// The record types to return; nil is all.
    package var desiredRecordTypes: [String]?
    /// Newest first.
    package var isReverse: Bool
    package var numbersAsStrings: Bool
}

extension RecordChangesRequest {
    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in
            try RecordChangesRequest(Form(json), ZoneChangesRequestForm.Defaults())
        }
    }
}
