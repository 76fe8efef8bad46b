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
