extension JSONWriter {
    /// A record, with a type on every field and every key that clients insist on.
    /// - Parameters:
    ///   - desiredKeys: the fields to write; nil is all.
    ///   - numbersAsStrings: whether INT64, DOUBLE and TIMESTAMP values are written as strings.
    ///   - zone: the record's zone, for results from more than one.
    ///   - assets: makes the dictionaries of assets; without it they have sizes only.
    package mutating func record(
        _ record: Record, desiredKeys: [String]? = nil, numbersAsStrings: Bool = false, zone: ZoneID? = nil,
        assets: AssetPresenter? = nil
    ) {
        beginObject()
        member("recordName", record.name)
        member("recordType", record.type)
        key("fields")
        fields(record.fields, DesiredKeys(desiredKeys), numbersAsStrings: numbersAsStrings, assets)
        key("pluginFields")
        object { _ in }
        member("recordChangeTag", record.changeTag.description)
        stamp("created", record.created)
        stamp("modified", record.modified)
        member("deleted", false)
        if case .reference(let parent)? = record.fields[SystemField.parent.rawValue] {
            key("parent")
            beginObject()
            member("recordName", parent.recordName)
            endObject()
        }
        if let zone { member(zoneID: zone) }
        endObject()
    }

    /// What is left of a deleted record: the result of a deletion (without tag) or an entry of a change feed (with it),
    /// in which clients tell tombstones by a record type of null.
    package mutating func tombstone(recordName: String, changeTag: ChangeTag? = nil) {
        beginObject()
        member("recordName", recordName)
        if changeTag != nil { member("recordType", .null) }
        member("deleted", true)
        if let changeTag { member("recordChangeTag", changeTag.description) }
        endObject()
    }

    /// A record as it was before a change, with who changed it.
    /// - Parameter record: writes the record.
    package mutating func recordVersion(
        replaced: Stamp, isDeletion: Bool, record: (inout JSONWriter) -> Void
    ) {
        beginObject()
        key("record")
        record(&self)
        stamp("replaced", replaced)
        member("isDeletion", isDeletion)
        endObject()
    }

    private mutating func fields(
        _ fields: Fields, _ desired: DesiredKeys, numbersAsStrings: Bool, _ assets: AssetPresenter?
    ) {
        beginObject()
        for field in fields.all where desired.contains(field.name) {
            // The parent has a member of its own, and what is sealed is never for a client.
            if field.name.hasPrefix("___") { continue }
            if case .sealed = field.value { continue }
            key(field.name)
            beginObject()
            key("value")
            value(field.value, numbersAsStrings: numbersAsStrings) { assets?.present($0, field.name) }
            member("type", field.value.webTypeName)
            if case .encrypted = field.value { member("isEncrypted", true) }
            endObject()
        }
        endObject()
    }

    private mutating func stamp(_ name: String, _ stamp: Stamp) {
        key(name)
        beginObject()
        member("timestamp", integer: stamp.timestamp)
        member("userRecordName", stamp.user)
        // Clients drop a stamp without a device; this is what CloudKit says of writes over Web Services.
        member("deviceID", "2")
        endObject()
    }

    /// The value of a field, without its type.
    /// - Parameter asset: makes the dictionary of an asset; without one it has the size only.
    package mutating func value(
        _ value: FieldValue, numbersAsStrings: Bool, asset: (AssetReference) -> AssetDictionary? = { _ in nil }
    ) {
        switch value {
        case .string(let text): string(text)
        case .int64(let number), .timestamp(let number):
            if numbersAsStrings { string(String(number)) } else { integer(number) }
        case .double(let number):
            if numbersAsStrings { string(number.description) } else { self.number(number) }
        case .bytes(let bytes): base64(bytes)
        case .location(let location): self.location(location)
        case .reference(let reference): self.reference(reference)
        case .asset(let file): self.asset(asset(file) ?? AssetDictionary(size: file.size))
        case .list(_, let members):
            beginArray()
            for member in members { self.value(member, numbersAsStrings: numbersAsStrings, asset: asset) }
            endArray()
        case .encrypted(let plain): self.value(plain, numbersAsStrings: numbersAsStrings, asset: asset)
        case .sealed(let bytes): base64(bytes)
        }
    }

    private mutating func location(_ location: Location) {
        beginObject()
        member("latitude", number: location.latitude)
        member("longitude", number: location.longitude)
        if let metres = location.horizontalAccuracy { member("horizontalAccuracy", number: metres) }
        if let metres = location.verticalAccuracy { member("verticalAccuracy", number: metres) }
        if let metres = location.altitude { member("altitude", number: metres) }
        if let speed = location.speed { member("speed", number: speed) }
        if let degrees = location.course { member("course", number: degrees) }
        if let milliseconds = location.timestamp { member("timestamp", integer: milliseconds) }
        endObject()
    }

    private mutating func reference(_ reference: Reference) {
        beginObject()
        member("recordName", reference.recordName)
        member("action", reference.action.rawValue)
        if let zone = reference.zone { member(zoneID: zone) }
        endObject()
    }
}

extension FieldValue {
    /// The type as responses state it. An empty list is `UNKNOWN_LIST`, as in CloudKit; of the encrypted types only
    /// that of bytes has a name of its own.
    var webTypeName: String {
        switch self {
        case .list(_, let members) where members.isEmpty: "UNKNOWN_LIST"
        case .encrypted(.bytes): "ENCRYPTED_BYTES"
        case .encrypted(let plain): plain.webTypeName
        default: type.webName
        }
    }
}

/// Which fields to write; a set once there are many keys, so that no request costs keys times fields.
private struct DesiredKeys {
    private let few: [String]?
    private let many: Set<String>

    init(_ keys: [String]?) {
        few = keys.map { $0.count <= 8 ? $0 : [] }
        many = keys.map { $0.count <= 8 ? [] : Set($0) } ?? []
    }

    func contains(_ name: String) -> Bool {
        guard let few else { return true }
        return few.contains(name) || many.contains(name)
    }
}

extension JSONWriter {
    /// A zone ID; the owner is left out where it is the caller.
    package mutating func zoneID(_ zone: ZoneID) {
        beginObject()
        zoneIDMembers(zone)
        endObject()
    }

    private mutating func member(zoneID zone: ZoneID) {
        key("zoneID")
        zoneID(zone)
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
        member(zoneID: zone)
        if let syncToken { member("syncToken", syncToken) }
        member("atomic", isAtomic)
        endObject()
    }

    /// What is left of a deleted zone.
    package mutating func deletedZone(_ zone: ZoneID) {
        beginObject()
        member(zoneID: zone)
        member("deleted", true)
        endObject()
    }

    /// The result for a record that failed.
    /// - Parameters:
    ///   - zone: the record's zone, for results from more than one.
    ///   - serverRecord: with `CONFLICT` and `EXISTS`, the record as the server has it, so that the client can merge
    ///     without another request; only where the caller may read it. CloudKit's web service has no such member (its
    ///     native one has): an extension of ours.
    package mutating func recordError(
        recordName: String?, _ error: ServiceError, zone: ZoneID? = nil, serverRecord: Record? = nil,
        numbersAsStrings: Bool = false, assets: AssetPresenter? = nil
    ) {
        beginObject()
        if let recordName { member("recordName", recordName) }
        if let zone { member(zoneID: zone) }
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
        member(zoneID: zone)
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

    /// An entry of changes/database: a zone with changes, or a deleted one. Clients use entries as they are as zones of
    /// changes/zone.
    /// - Parameter incarnation: grows when the zone is deleted and made again, or restored: what it held may be gone.
    package mutating func changedZone(_ zone: ZoneID, incarnation: UInt64, isDeleted: Bool) {
        if isDeleted { return deletedZone(zone) }
        beginObject()
        member(zoneID: zone)
        member("incarnation", integer: Int64(clamping: incarnation))
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
        member(zoneID: zone)
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
    /// The first name that the account states; nil if not stated.
    package var givenName: String?
    /// The last name that the account states; nil if not stated.
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
