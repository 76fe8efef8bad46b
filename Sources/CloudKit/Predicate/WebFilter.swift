import CoreLocation
import Foundation
import RecordModel
import ServiceClient

struct WebFilter: Sendable, Equatable {
    /// The server's name of the field; nil, with tokens only, is every searchable field.
    var field: String?
    var comparator: RecordModel.Comparator
    var value: PredicateValue
    /// Metres, with `near` and only there.
    var distanceMetres: Double?

    /// The JSON, `{comparator, fieldName, fieldValue, distance}`, for a search of `zone`; nil is every zone.
    func json(zone: CKRecordZone.ID?) -> JSONValue {
        .members([
            "comparator": .string(comparator.rawValue), "fieldName": field.map { .string($0) },
            "fieldValue": value.webForm(zone: zone), "distance": distanceMetres.map { .number($0) },
        ])
    }
}

extension RecordModel.Comparator {
    /// The comparator that holds where this one does not; nil if there is none.
    var negated: RecordModel.Comparator? {
        switch self {
        case .equals: .notEquals
        case .notEquals: .equals
        case .lessThan: .greaterThanOrEquals
        case .lessThanOrEquals: .greaterThan
        case .greaterThan: .lessThanOrEquals
        case .greaterThanOrEquals: .lessThan
        case .in: .notIn
        case .notIn: .in
        case .beginsWith: .notBeginsWith
        case .notBeginsWith: .beginsWith
        case .listContains: .notListContains
        case .notListContains: .listContains
        case .listContainsAll: .notListContainsAll
        case .notListContainsAll: .listContainsAll
        case .listContainsAny: .notListContainsAny
        case .notListContainsAny: .listContainsAny
        case .listMemberBeginsWith: .notListMemberBeginsWith
        case .notListMemberBeginsWith: .listMemberBeginsWith
        case .near, .containsAllTokens, .containsAnyTokens: nil
        }
    }
}

extension PredicateValue {
    /// `{value, type}`.
    ///
    /// Numbers state no type: `rating > 4` is meant for a DOUBLE as for an INT64, and the server knows which it is. So
    /// does it for an empty list.
    ///
    /// A reference states its zone where that is not the one searched, which the server refuses. In a search of all
    /// zones it is identified by its record name: references stay within their zone, and the server keeps those without
    /// one.
    func webForm(zone: CKRecordZone.ID? = nil) -> JSONValue {
        .members(["value": json(zone), "type": webType.map { .string($0) }])
    }

    /// The web type of a value; of a list that of its first member, as lists hold one type here.
    private var webType: String? {
        switch self {
        case .null, .integer, .double: nil
        case .string: "STRING"
        case .date: "TIMESTAMP"
        case .data: "BYTES"
        case .location: "LOCATION"
        case .reference: "REFERENCE"
        case .list(let members): members.first?.webType.map { $0 + "_LIST" }
        }
    }

    private func json(_ zone: CKRecordZone.ID?) -> JSONValue {
        switch self {
        case .null: .null
        case .string(let text): .string(text)
        case .integer(let number): .integer(number)
        case .double(let number): .number(number)
        case .date(let milliseconds): .integer(milliseconds)
        case .data(let data): .string(Base64.encode([UInt8](data)))
        case .location(let latitude, let longitude):
            .members(["latitude": .number(latitude), "longitude": .number(longitude)])
        case .reference(let recordName, let zoneName, let ownerName):
            Self.reference(recordName, CKRecordZone.ID(zoneName: zoneName, ownerName: ownerName), searched: zone)
        case .list(let members): .array(members.map { $0.json(zone) })
        }
    }

    private static func reference(
        _ recordName: String, _ zone: CKRecordZone.ID, searched: CKRecordZone.ID?
    ) -> JSONValue {
        let place = JSONValue.members([
            "zoneName": .string(zone.zoneName), "ownerRecordName": .string(zone.ownerName),
        ])
        return .members([
            "recordName": .string(recordName), "zoneID": (searched ?? zone) == zone ? nil : place,
            "action": .string("NONE"),
        ])
    }
}

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
        return .members([
            "recordType": .string(recordType), "filterBy": .array(filters.map { $0.json(zone: zone) }),
            "sortBy": .array(sorts),
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
            let place = (descriptor as? CKLocationSortDescriptor)?.relativeLocation.coordinate
            keys.append(
                .members([
                    "fieldName": .string(name), "ascending": .bool(descriptor.ascending),
                    "relativeLocation": place.map {
                        PredicateValue.location(latitude: $0.latitude, longitude: $0.longitude).webForm()
                    },
                ]))
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
