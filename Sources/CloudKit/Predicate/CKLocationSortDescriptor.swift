public import CoreLocation
public import Foundation

/// An order of records by the distance of a location field from a place, the nearest first.
///
/// Immutable. Records without the field come last.
public final class CKLocationSortDescriptor: NSSortDescriptor, NSSecureCoding {
    /// The place that distances are from.
    public let relativeLocation: CLLocation

    /// - Parameters:
    ///   - key: the name of a field of type LOCATION with the index SORTABLE.
    ///   - relativeLocation: the place that distances are from.
    public init(key: String, relativeLocation: CLLocation) {
        self.relativeLocation = relativeLocation
        super.init(keyPath: \SortKeyProbe[key], ascending: true)
    }

    public static var supportsSecureCoding: Bool { true }

    public func encode(with coder: NSCoder) {
        coder.write(key ?? "", "key")
        coder.encode(relativeLocation.coordinate.latitude, forKey: "latitude")
        coder.encode(relativeLocation.coordinate.longitude, forKey: "longitude")
    }

    public init?(coder: NSCoder) {
        guard let key = coder.text("key") else { return nil }
        relativeLocation = CLLocation(
            latitude: coder.decodeDouble(forKey: "latitude"), longitude: coder.decodeDouble(forKey: "longitude"))
        super.init(keyPath: \SortKeyProbe[key], ascending: true)
    }

    public override func copy(with zone: NSZone? = nil) -> Any { self }
}
