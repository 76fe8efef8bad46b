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

/// The sync tokens that clients hand back.
package enum SyncToken {
    /// The bytes of a token; nil for none.
    /// - Throws: `BAD_REQUEST` with CloudKit's words if the text is not of a form that this server gives; a retry does
    ///   not help, starting without a token does.
    package static func bytes(_ text: String?) throws(ServiceError) -> [UInt8]? {
        guard let text, !text.isEmpty else { return nil }
        guard let bytes = Base64.decode(text) else {
            throw ServiceError(
                .badRequest,
                "Unknown sync continuation type: the token is not padded base64, so it is not one that this server "
                    + "gave; "
                    + "start again without a token")
        }
        return bytes
    }
}
