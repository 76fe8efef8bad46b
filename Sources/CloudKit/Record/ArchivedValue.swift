import CoreLocation
import Foundation

/// A value in the form in which an archive holds it.
enum ArchivedValue: Codable {
    case string(String)
    case data(Data)
    case int64(Int64)
    case double(Double)
    case date(Double)
    /// Latitude, longitude, altitude, horizontal and vertical accuracy, course and its accuracy, speed and its
    /// accuracy, timestamp.
    case location([Double])
    case reference(name: String, zone: String, owner: String, deletesSelf: Bool)
    case asset(URL?)
    case list([ArchivedValue])
    case unusable(String)

    init(_ value: RecordValue) {
        switch value {
        case .string(let text): self = .string(text)
        case .data(let data): self = .data(data)
        case .int64(let number): self = .int64(number)
        case .double(let number): self = .double(number)
        case .date(let date): self = .date(date.timeIntervalSinceReferenceDate)
        case .location(let place):
            self = .location([
                place.coordinate.latitude, place.coordinate.longitude, place.altitude, place.horizontalAccuracy,
                place.verticalAccuracy, place.course, place.courseAccuracy, place.speed, place.speedAccuracy,
                place.timestamp.timeIntervalSinceReferenceDate,
            ])
        case .reference(let reference):
            let id = reference.recordID
            self = .reference(
                name: id.recordName, zone: id.zoneID.zoneName, owner: id.zoneID.ownerName,
                deletesSelf: reference.action == .deleteSelf)
        case .asset(let asset): self = .asset(asset.fileURL)
        case .list(let elements): self = .list(elements.map(ArchivedValue.init))
        case .unusable(let reason): self = .unusable(reason)
        }
    }

    var value: RecordValue {
        switch self {
        case .string(let text): .string(text)
        case .data(let data): .data(data)
        case .int64(let number): .int64(number)
        case .double(let number): .double(number)
        case .date(let seconds): .date(Date(timeIntervalSinceReferenceDate: seconds))
        case .location(let parts): Self.location(parts)
        case .reference(let name, let zone, let owner, let deletesSelf):
            .reference(
                CKReference(
                    recordID: CKRecordID(
                        recordName: name, zoneID: CKRecordZoneID(zoneName: zone, ownerName: owner)),
                    action: deletesSelf ? .deleteSelf : .none))
        case .asset(let url): .asset(url.map { CKAsset(fileURL: $0) } ?? CKAsset(unfetched: ()))
        case .list(let elements): .list(elements.map(\.value))
        case .unusable(let reason): .unusable(reason)
        }
    }

    private static func location(_ parts: [Double]) -> RecordValue {
        guard parts.count == 10 else { return .unusable("a location that the archive holds in part") }
        return .location(
            CLLocation(
                coordinate: CLLocationCoordinate2D(latitude: parts[0], longitude: parts[1]), altitude: parts[2],
                horizontalAccuracy: parts[3], verticalAccuracy: parts[4], course: parts[5], courseAccuracy: parts[6],
                speed: parts[7], speedAccuracy: parts[8],
                timestamp: Date(timeIntervalSinceReferenceDate: parts[9])))
    }
}
