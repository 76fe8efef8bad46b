import RecordModel

extension RecordRow {
    /// The record as callers see it: without what the installed schema has no place for.
    /// - Throws: `WireError` if the body is damaged, which is corruption.
    func record(type: InstalledType, zone: ZoneRow, names: inout UserNameCache) throws -> Record {
        Record(
            name: name, type: type.definition.name, changeTag: zone.changeTag(sequence),
            created: Stamp(timestamp: createdAt, user: try names.name(createdBy)),
            modified: Stamp(timestamp: modifiedAt, user: try names.name(modifiedBy)), fields: try type.fields(of: self))
    }
}
