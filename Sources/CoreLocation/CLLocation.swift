// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

/// Degrees of latitude or longitude, WGS 84.
public typealias CLLocationDegrees = Double
/// Metres.
public typealias CLLocationDistance = Double
/// Metres; negative says that the measure it belongs to is not valid.
public typealias CLLocationAccuracy = Double
/// Metres a second; negative is not valid.
public typealias CLLocationSpeed = Double
/// Metres a second; negative is not valid.
public typealias CLLocationSpeedAccuracy = Double
/// Degrees clockwise from true north, 0 to 360; negative is not valid.
public typealias CLLocationDirection = Double
/// Degrees; negative is not valid.
public typealias CLLocationDirectionAccuracy = Double

/// A place on the earth and when and how well it was measured.
///
/// Immutable. Two locations are equal when all their parts are, where Apple's class compares identity only.
public final class CLLocation: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// Latitude and longitude.
    public let coordinate: CLLocationCoordinate2D
    /// Metres above the sea; valid where `verticalAccuracy` is above 0.
    public let altitude: CLLocationDistance
    /// Metres around the coordinate; negative where the coordinate is not valid.
    public let horizontalAccuracy: CLLocationAccuracy
    /// Metres above and below the altitude; 0 or less where the altitude is not valid.
    public let verticalAccuracy: CLLocationAccuracy
    /// The direction of travel.
    public let course: CLLocationDirection
    /// How well the course is known.
    public let courseAccuracy: CLLocationDirectionAccuracy
    /// The speed of travel.
    public let speed: CLLocationSpeed
    /// How well the speed is known.
    public let speedAccuracy: CLLocationSpeedAccuracy
    /// When the place was measured.
    public let timestamp: Date

    /// A place of which no more than the coordinate is known: altitude 0 and not valid, no course, no speed, now.
    public convenience init(latitude: CLLocationDegrees, longitude: CLLocationDegrees) {
        self.init(
            coordinate: CLLocationCoordinate2D(latitude: latitude, longitude: longitude), altitude: 0,
            horizontalAccuracy: 0, verticalAccuracy: -1, timestamp: Date())
    }

    /// A place without course and speed.
    public convenience init(
        coordinate: CLLocationCoordinate2D, altitude: CLLocationDistance,
        horizontalAccuracy hAccuracy: CLLocationAccuracy,
        verticalAccuracy vAccuracy: CLLocationAccuracy, timestamp: Date
    ) {
        self.init(
            coordinate: coordinate, altitude: altitude, horizontalAccuracy: hAccuracy, verticalAccuracy: vAccuracy,
            course: -1, speed: -1, timestamp: timestamp)
    }

    /// A place with course and speed of unknown accuracy.
    public convenience init(
        coordinate: CLLocationCoordinate2D, altitude: CLLocationDistance,
        horizontalAccuracy hAccuracy: CLLocationAccuracy,
        verticalAccuracy vAccuracy: CLLocationAccuracy, course: CLLocationDirection, speed: CLLocationSpeed,
        timestamp: Date
    ) {
        self.init(
            coordinate: coordinate, altitude: altitude, horizontalAccuracy: hAccuracy, verticalAccuracy: vAccuracy,
            course: course, courseAccuracy: -1, speed: speed, speedAccuracy: -1, timestamp: timestamp)
    }

    /// A place with all that can be said of it.
    public init(
        coordinate: CLLocationCoordinate2D, altitude: CLLocationDistance,
        horizontalAccuracy hAccuracy: CLLocationAccuracy,
        verticalAccuracy vAccuracy: CLLocationAccuracy, course: CLLocationDirection,
        courseAccuracy: CLLocationDirectionAccuracy, speed: CLLocationSpeed, speedAccuracy: CLLocationSpeedAccuracy,
        timestamp: Date
    ) {
        self.coordinate = coordinate
        self.altitude = altitude
        self.horizontalAccuracy = hAccuracy
        self.verticalAccuracy = vAccuracy
        self.course = course
        self.courseAccuracy = courseAccuracy
        self.speed = speed
        self.speedAccuracy = speedAccuracy
        self.timestamp = timestamp
    }

    /// Metres along the great circle between two places, altitude left aside, on a sphere of the earth's mean radius:
    /// the same measure that the server's queries by distance use. It differs from the ellipsoid's by 0.6 % at most.
    public func distance(from location: CLLocation) -> CLLocationDistance {
        coordinate.distance(to: location.coordinate)
    }

    /// Whether the object is a location with the same numbers and timestamp.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CLLocation else { return false }
        return parts == other.parts && timestamp == other.timestamp
    }

    /// The same for equal locations; it changes with each start of the process.
    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(parts)
        hasher.combine(timestamp)
        return hasher.finalize()
    }

    /// `<+51.50,-0.12> +/- 5.00m (speed -1.00 mps / course -1.00) @ 2025-01-31 12:00:00 +0000`.
    public override var description: String {
        func two(_ number: Double) -> String { String(format: "%.2f", number) }
        let place = String(format: "<%+.8f,%+.8f>", coordinate.latitude, coordinate.longitude)
        let motion = "(speed \(two(speed)) mps / course \(two(course)))"
        return "\(place) +/- \(two(horizontalAccuracy))m \(motion) @ \(timestamp)"
    }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Coding

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    /// Archives each number as a double under its property's name, and the timestamp in seconds since 2001 (UTC).
    public func encode(with coder: NSCoder) {
        for (key, part) in zip(Self.keys, parts) { coder.encode(part, forKey: key) }
        coder.encode(timestamp.timeIntervalSinceReferenceDate, forKey: Self.timestampKey)
    }

    /// Nil where the archive holds no location.
    public convenience init?(coder: NSCoder) {
        guard coder.containsValue(forKey: Self.keys[0]), coder.containsValue(forKey: Self.timestampKey) else {
            return nil
        }
        let parts = Self.keys.map { coder.decodeDouble(forKey: $0) }
        let time = coder.decodeDouble(forKey: Self.timestampKey)
        self.init(parts: parts, timestamp: Date(timeIntervalSinceReferenceDate: time))
    }

    package convenience init(parts: [Double], timestamp: Date) {
        self.init(
            coordinate: CLLocationCoordinate2D(latitude: parts[0], longitude: parts[1]), altitude: parts[2],
            horizontalAccuracy: parts[3], verticalAccuracy: parts[4], course: parts[5], courseAccuracy: parts[6],
            speed: parts[7], speedAccuracy: parts[8], timestamp: timestamp)
    }

    /// The names of `parts` in an archive, in their order.
    private static let keys = [
        "latitude", "longitude", "altitude", "horizontalAccuracy", "verticalAccuracy", "course", "courseAccuracy",
        "speed", "speedAccuracy",
    ]
    private static let timestampKey = "timestamp"

    /// Every number but the timestamp, in an order that archives rely on.
    package var parts: [Double] {
        [
            coordinate.latitude, coordinate.longitude, altitude, horizontalAccuracy, verticalAccuracy, course,
            courseAccuracy, speed, speedAccuracy,
        ]
    }
}

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

/// Whether a coordinate is a place: latitude within 90 degrees, longitude within 180, both numbers.
public func CLLocationCoordinate2DIsValid(_ coord: CLLocationCoordinate2D) -> Bool {
    abs(coord.latitude) <= 90 && abs(coord.longitude) <= 180
}

/// A coordinate of two numbers.
public func CLLocationCoordinate2DMake(
    _ latitude: CLLocationDegrees, _ longitude: CLLocationDegrees
) -> CLLocationCoordinate2D {
    CLLocationCoordinate2D(latitude: latitude, longitude: longitude)
}
