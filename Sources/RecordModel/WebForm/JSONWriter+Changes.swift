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
