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
        recordName: String?, _ error: ServiceError, serverRecord: Record? = nil, numbersAsStrings: Bool = false,
        assets: AssetPresenter? = nil
    ) {
        beginObject()
        if let recordName { member("recordName", recordName) }
        errorMembers(error)
        if let serverRecord {
            key("serverRecord")
            record(serverRecord, numbersAsStrings: numbersAsStrings, assets: assets)
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

    mutating func errorMembers(_ error: ServiceError) {
        member("reason", error.reason)
        member("serverErrorCode", error.code.rawValue)
        retryAfter(error)
        if let detail = error.detail { member("detail", detail.rawValue) }
    }

    /// When a retry may help: `retryAfter` in whole seconds, rounded up, as CloudKit's clients expect it, and
    /// `retryAfterMilliseconds` exactly. Nothing where no retry helps.
    package mutating func retryAfter(_ error: ServiceError) {
        if let seconds = error.retryAfterWholeSeconds { member("retryAfter", integer: seconds) }
        if let milliseconds = error.retryAfterMilliseconds { member("retryAfterMilliseconds", integer: milliseconds) }
    }
}

extension JSONWriter {
    /// An entry of changes/database: a zone with changes, or a deleted one. Clients use entries as they are as zones of
    /// changes/zone.
    package mutating func changedZone(_ zone: ZoneID, isDeleted: Bool) {
        if isDeleted { return deletedZone(zone) }
        beginObject()
        key("zoneID")
        zoneID(zone)
        endObject()
    }

    /// An entry of changes/zone for a zone that could be read; one that could not is a `zoneError`.
    /// - Parameters:
    ///   - records: the array of records and tombstones, rendered.
    ///   - isReverse: whether the walk is newest first; nil leaves it out.
    package mutating func zoneChanges(
        _ zone: ZoneID, records: [UInt8], moreComing: Bool, syncToken: [UInt8], isReverse: Bool? = nil
    ) {
        beginObject()
        key("zoneID")
        zoneID(zone)
        changesMembers(records: records, moreComing: moreComing, syncToken: syncToken, isReverse: isReverse)
        endObject()
    }

    /// The members of records/changes, into the object of the answer, which is open. Parameters as `zoneChanges`.
    package mutating func changesMembers(
        records: [UInt8], moreComing: Bool, syncToken: [UInt8], isReverse: Bool? = nil
    ) {
        key("records")
        raw(records)
        member("moreComing", moreComing)
        key("syncToken")
        base64(syncToken)
        if let isReverse { member("reverse", isReverse) }
    }
}

/// A user as others see it. One who is not discoverable has no names.
package struct UserIdentity: Hashable, Sendable {
    /// The user's record name in the container; nil hides it.
    package var userRecordName: String?
    package var givenName: String?
    package var familyName: String?
    /// How the user was asked for, which answers repeat.
    package var lookupInfo: LookupInfo?
    /// Whether others may find the user; told to the user alone.
    package var isDiscoverable = false

    package init(
        userRecordName: String?, givenName: String? = nil, familyName: String? = nil, lookupInfo: LookupInfo? = nil
    ) {
        self.userRecordName = userRecordName
        self.givenName = givenName
        self.familyName = familyName
        self.lookupInfo = lookupInfo
    }
}

extension JSONWriter {
    /// A user's identity, as users/discover has it.
    package mutating func identity(_ identity: UserIdentity) {
        beginObject()
        identityMembers(identity)
        endObject()
    }

    /// The members of an identity, into an object that is open: users/caller has them at its top level, and the
    /// identity once more in `users`.
    package mutating func identityMembers(_ identity: UserIdentity) {
        if let name = identity.userRecordName { member("userRecordName", name) }
        if identity.givenName != nil || identity.familyName != nil {
            key("nameComponents")
            beginObject()
            if let name = identity.givenName { member("givenName", name) }
            if let name = identity.familyName { member("familyName", name) }
            endObject()
        }
        if let info = identity.lookupInfo {
            key("lookupInfo")
            beginObject()
            if let address = info.emailAddress { member("emailAddress", address) }
            if let number = info.phoneNumber { member("phoneNumber", number) }
            if let name = info.userRecordName { member("userRecordName", name) }
            endObject()
        }
    }

    /// A user as the older endpoints have it.
    package mutating func legacyUser(_ identity: UserIdentity) {
        beginObject()
        legacyUserMembers(identity)
        endObject()
    }

    /// The members of a user in the older form, into an object that is open: users/current has them at its top level.
    package mutating func legacyUserMembers(_ identity: UserIdentity) {
        if let name = identity.userRecordName { member("userRecordName", name) }
        if let name = identity.givenName { member("firstName", name) }
        if let name = identity.familyName { member("lastName", name) }
        if let address = identity.lookupInfo?.emailAddress { member("emailAddress", address) }
    }
}
