import CoreLocation
import Foundation
import RecordModel

extension CKQuery {
    /// The query as `records/query` takes it, `{recordType, filterBy, sortBy}`; nil where no record can match, so that
    /// no request is needed.
    /// - Parameters:
    ///   - zone: the zone that is searched; nil is every zone of the database.
    ///   - distanceUnit: what a radius in the predicate is in; the documentation of `CKQuery` says kilometres.
    ///   - now: what `now()` in the predicate is.
    /// - Throws: `invalidArguments` with the place in the format and what CloudKit has instead; a retry does not help.
    func webForm(
        zone: CKRecordZone.ID? = nil, distanceUnit: UnitLength = .kilometers, now: Date = Date()
    ) throws(CKError) -> JSONValue? {
        try checkRecordType()
        let filters = try reading.webFilters(distanceUnit: distanceUnit, now: now)
        let sorts = try sortKeys()
        guard let filters else { return nil }
        return .object([
            JSONValue.Member("recordType", .string(recordType)),
            JSONValue.Member("filterBy", .array(filters.map { $0.json(zone: zone) })),
            JSONValue.Member("sortBy", .array(sorts)),
        ])
    }

    private func checkRecordType() throws(CKError) {
        if recordType.isEmpty { throw .invalidQuery("Invalid query: the record type is empty") }
        if recordType == "Users" {
            throw .invalidQuery(
                "Invalid query: records of users cannot be searched; fetch them by their ID, such as that of "
                    + "CKContainer.userRecordID()")
        }
    }

    private func sortKeys() throws(CKError) -> [JSONValue] {
        var keys: [JSONValue] = []
        for (index, descriptor) in (sortDescriptors ?? []).enumerated() {
            guard let key = descriptor.key else {
                throw .invalidQuery(
                    "Invalid query: sort descriptor \(index + 1) has no key; make it with "
                        + "NSSortDescriptor(key:ascending:)")
            }
            let name: String
            do throws(QueryKey.Reason) { name = try QueryKey.webName(key) } catch {
                throw .invalidQuery("Invalid query: sort descriptor \(index + 1): \(error.text)")
            }
            var members = [
                JSONValue.Member("fieldName", .string(name)),
                JSONValue.Member("ascending", .bool(descriptor.ascending)),
            ]
            if let place = (descriptor as? CKLocationSortDescriptor)?.relativeLocation.coordinate {
                let value = PredicateValue.location(latitude: place.latitude, longitude: place.longitude)
                members.append(JSONValue.Member("relativeLocation", value.webForm()))
            }
            keys.append(.object(members))
        }
        return keys
    }
}

extension Result<PredicateNode, PredicateReading.Fault> {
    /// The filters of `records/query` for this predicate, all of which must hold; nil where no record can match.
    /// - Throws: `invalidArguments`, as `CKQuery.webForm` does.
    func webFilters(distanceUnit: UnitLength = .kilometers, now: Date) throws(CKError) -> [WebFilter]? {
        let node: PredicateNode
        switch self {
        case .success(let found): node = found
        case .failure(let fault): throw fault.error
        }
        let metres = Measurement(value: 1, unit: distanceUnit).converted(to: .meters).value
        var compiler = FilterCompiler(
            metresPerUnit: metres, nowMilliseconds: Int64((now.timeIntervalSince1970 * 1000).rounded()))
        do throws(PredicateRefusal) { try compiler.add(node) } catch { throw error.error }
        return compiler.isNever ? nil : compiler.filters
    }
}
