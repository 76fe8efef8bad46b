import RecordModel

extension RecordRow {
    /// The record as callers see it.
    /// - Throws: `WireError` if the body is damaged, which is corruption.
    func record(type: RecordType, zone: ZoneRow, names: inout StampNames) throws -> Record {
        Record(
            name: name, type: type.name, changeTag: zone.changeTag(sequence),
            created: Stamp(timestamp: createdAt, user: try names.name(createdBy)),
            modified: Stamp(timestamp: modifiedAt, user: try names.name(modifiedBy)), fields: try decodeBody(body))
    }
}
