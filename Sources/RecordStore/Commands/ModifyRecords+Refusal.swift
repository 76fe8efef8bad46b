package import Authorization
package import RecordModel

// What can be said of a request without any stored record. The edge asks before it sends a command on, so that what can
// only be refused is not logged; apply asks again.

extension ModifyRecords {
    /// Why the whole request fails, whatever is stored; nil if the records decide.
    package var refusal: ServiceError? {
        if let refusal = ZoneRules.refusal(of: caller, in: zone) { return refusal }
        guard operations.count <= Limits.operationsMax else {
            return ServiceError(
                .badRequest, "\(operations.count) operations in one request, at most \(Limits.operationsMax)")
        }
        let members = operations.reduce(0) { sum, operation in
            operation.fields.reduce(sum) { $0 + ($1.value?.memberCount ?? 0) }
        }
        guard members <= Limits.listMembersPerRequestMax else {
            return ServiceError(
                .badRequest,
                """
                the lists of the request have \(members) members together, at most \(Limits.listMembersPerRequestMax): \
                send the records in several requests
                """)
        }
        return nil
    }
}

extension RecordChange {
    /// Why the operation fails, whatever is stored; nil if the records decide.
    /// - Parameter type: the type that the operation names; nil where it names none, or one that the schema lacks.
    package func refusal(as type: RecordType?, by caller: Caller, in zone: ZoneKey) -> ServiceError? {
        let length = recordName.count
        guard (1...Limits.nameLengthMax).contains(length) else {
            return ServiceError(
                .badRequest, "recordName has \(length) characters, 1 to \(Limits.nameLengthMax) are allowed")
        }
        if let type, let denial = denial(type, caller, zone) { return denial }
        let bytes = fields.reduce(0) { sum, field in
            sum + (field.value.map { field.name.utf8.count + $0.sizeBytes } ?? 0)
        }
        return Self.refusal(ofRecordBytes: bytes)
    }

    /// Why a record of so many bytes may not be stored; nil if it may.
    static func refusal(ofRecordBytes bytes: Int) -> ServiceError? {
        if bytes <= Limits.recordSizeBytesMax { return nil }
        return ServiceError(.badRequest, "record is \(bytes) bytes, at most \(Limits.recordSizeBytesMax)")
    }

    /// Why the caller may not do it to any record of the type, not even one of its own making.
    private func denial(_ type: RecordType, _ caller: Caller, _ zone: ZoneKey) -> ServiceError? {
        if kind == .create, let refusal = UsersRules.refusalToCreate(recordName, type: type, by: caller, in: zone) {
            return refusal
        }
        if type.name == RecordType.usersName { return nil }
        let most = Permissions(of: caller, in: type, of: zone.database, isCreator: true)
        return switch kind {
        case .create: most.contains(.create) ? nil : Self.mayNotCreate(type)
        case .forceUpdate, .forceReplace: most.isDisjoint(with: [.create, .write]) ? Self.mayNotCreate(type) : nil
        case .update, .replace: most.contains(.write) ? nil : Self.mayNotChange
        case .delete, .forceDelete: nil
        }
    }

    static func mayNotCreate(_ type: RecordType) -> ServiceError {
        ServiceError(.accessDenied, "no permission to create records of type \(type.name)")
    }

    static let mayNotChange = ServiceError(.accessDenied, "no permission to change the record")
}

extension ModifyZone {
    /// Why nothing of the command can be done, whatever zones there are.
    var refusal: ServiceError? {
        if let refusal = ZoneRules.refusal(of: caller, inZonesOf: zone.database) { return refusal }
        guard !zone.isDefault else {
            return ServiceError(.badRequest, "the default zone can be neither created nor deleted")
        }
        guard (1...Limits.nameLengthMax).contains(zone.name.count) else {
            return ServiceError(
                .badRequest, "zoneName has \(zone.name.count) characters, 1 to \(Limits.nameLengthMax) are allowed")
        }
        return nil
    }
}

extension FieldValue {
    /// How many values a list holds; a sealed one counts as a single value.
    fileprivate var memberCount: Int {
        switch self {
        case .list(_, let members): members.count
        case .encrypted(let value): value.memberCount
        default: 0
        }
    }
}
