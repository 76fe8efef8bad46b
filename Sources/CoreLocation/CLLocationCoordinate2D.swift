import Foundation

/// A latitude and a longitude.
///
/// As on Apple's systems it is neither Equatable nor Hashable.
public struct CLLocationCoordinate2D: Sendable {
    /// Degrees north of the equator, -90 to 90.
    public var latitude: CLLocationDegrees
    /// Degrees east of the meridian of zero, -180 to 180.
    public var longitude: CLLocationDegrees

    /// The place at 0, 0.
    public init() { self.init(latitude: 0, longitude: 0) }

    /// Any two numbers: `CLLocationCoordinate2DIsValid` says whether they are a place.
    public init(latitude: CLLocationDegrees, longitude: CLLocationDegrees) {
        self.latitude = latitude
        self.longitude = longitude
    }

    /// Metres along the great circle; the arc tangent keeps its precision for near places and for antipodes.
    func distance(to other: CLLocationCoordinate2D) -> CLLocationDistance {
        let (here, there) = (latitude * .pi / 180, other.latitude * .pi / 180)
        let step = (other.longitude - longitude).remainder(dividingBy: 360) * .pi / 180
        let across = cos(there) * sin(step)
        let along = cos(here) * sin(there) - sin(here) * cos(there) * cos(step)
        let dot = sin(here) * sin(there) + cos(here) * cos(there) * cos(step)
        return Self.earthRadiusMetres * atan2((across * across + along * along).squareRoot(), dot)
    }

    /// The mean radius of the earth (IUGG), as the server has it.
    static let earthRadiusMetres = 6_371_008.8
}

/// A coordinate that is no place.
public let kCLLocationCoordinate2DInvalid = CLLocationCoordinate2D(latitude: -180, longitude: -180)

/// The accuracy that says: as good as it gets, with other sensors.
public let kCLLocationAccuracyBestForNavigation: CLLocationAccuracy = -2
/// The accuracy that says: as good as it gets.
public let kCLLocationAccuracyBest: CLLocationAccuracy = -1
/// The distance that says: no filter.
public let kCLDistanceFilterNone: CLLocationDistance = -1

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Whether a coordinate is a place: latitude within 90 degrees, longitude within 180, both numbers.
public func CLLocationCoordinate2DIsValid(_ coord: CLLocationCoordinate2D) -> Bool {
    abs(coord.latitude) <= 90 && abs(coord.longitude) <= 180
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// A coordinate of two numbers.
public func CLLocationCoordinate2DMake(
    _ latitude: CLLocationDegrees, _ longitude: CLLocationDegrees
) -> CLLocationCoordinate2D {
    CLLocationCoordinate2D(latitude: latitude, longitude: longitude)
}
