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
