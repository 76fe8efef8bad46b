extension JSONWriter {
    /// A zone ID; the owner is left out where it is the caller.
    package mutating func zoneID(_ zone: ZoneID) {
        beginObject()
        zoneIDMembers(zone)
        endObject()
    }

    private mutating func zoneIDMembers(_ zone: ZoneID) {
        let isDefault = zone.name == ZoneKey.defaultZoneName
        member("zoneName", zone.name)
        if let owner = zone.owner { member("ownerRecordName", owner) }
        member("zoneType", isDefault ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE")
    }

    /// A zone dictionary.
    /// - Parameters:
    ///   - syncToken: opaque padded base64; nil where the zone has no change tracking.
    ///   - isAtomic: whether the zone takes atomic batches.
    package mutating func zone(_ zone: ZoneID, syncToken: String?, isAtomic: Bool) {
        beginObject()
        key("zoneID")
        zoneID(zone)
        if let syncToken { member("syncToken", syncToken) }
        member("atomic", isAtomic)
        endObject()
    }

    /// What is left of a deleted zone.
    package mutating func deletedZone(_ zone: ZoneID) {
        beginObject()
        key("zoneID")
        zoneID(zone)
        member("deleted", true)
        endObject()
    }
}

extension JSONWriter {
    /// The result for a record that failed.
    /// - Parameter serverRecord: with `CONFLICT` and `EXISTS`, the record as the server has it, so that the client can
    ///   merge without another request; only where the caller may read it. CloudKit's web service has no such member
    ///   (its native one has): an extension of ours.
    package mutating func recordError(
        recordName: String?, _ error: ServiceError, serverRecord: Record? = nil, numbersAsStrings: Bool = false
    ) {
        beginObject()
        if let recordName { member("recordName", recordName) }
        errorMembers(error)
        if let serverRecord {
            key("serverRecord")
            record(serverRecord, numbersAsStrings: numbersAsStrings)
        }
        endObject()
    }

    /// The result for a zone that failed.
    package mutating func zoneError(_ zone: ZoneID, _ error: ServiceError) {
        beginObject()
        key("zoneID")
        zoneID(zone)
        errorMembers(error)
        endObject()
    }

    /// The body of a request that failed.
    /// - Parameters:
    ///   - uuid: the request's own, for the logs.
    ///   - redirectURL: where to sign in, with `AUTHENTICATION_REQUIRED`.
    ///   - more: members to add, such as the `records` of an atomic batch.
    package mutating func requestError(
        uuid: String, _ error: ServiceError, redirectURL: String? = nil,
        more: (inout JSONWriter) -> Void = { _ in }
    ) {
        beginObject()
        member("uuid", uuid)
        errorMembers(error)
        if let redirectURL { member("redirectURL", redirectURL) }
        more(&self)
        endObject()
    }

    private mutating func errorMembers(_ error: ServiceError) {
        member("reason", error.reason)
        member("serverErrorCode", error.code.rawValue)
        retryAfter(error)
    }

    /// When a retry may help: `retryAfter` in whole seconds, rounded up, as CloudKit's clients expect it, and
    /// `retryAfterMilliseconds` exactly. Nothing where no retry helps.
    package mutating func retryAfter(_ error: ServiceError) {
        if let seconds = error.retryAfterWholeSeconds { member("retryAfter", integer: seconds) }
        if let milliseconds = error.retryAfterMilliseconds { member("retryAfterMilliseconds", integer: milliseconds) }
    }
}
