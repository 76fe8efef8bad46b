import Foundation
import RecordModel

/// A point on the sphere, in a form that distances are quickly computed from.
struct Place: Hashable, Sendable {
    /// Radians, -π/2 to π/2.
    let latitude: Double
    /// Radians, -π to π.
    let longitude: Double
    private let sine: Double
    private let cosine: Double

    init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
        sine = sin(latitude)
        cosine = cos(latitude)
    }

    /// Nil where a coordinate is not a finite number. A latitude beyond a pole is taken for the pole's.
    init?(_ location: Location) {
        guard location.latitude.isFinite, location.longitude.isFinite else { return nil }
        self.init(
            latitude: min(max(location.latitude, -90), 90) * .pi / 180,
            longitude: location.longitude.remainder(dividingBy: 360) * .pi / 180)
    }

    /// The point farthest away.
    var antipode: Place { Place(latitude: -latitude, longitude: longitude > 0 ? longitude - .pi : longitude + .pi) }

    /// Metres along the great circle, right to a few nanometres from nearby to the antipode: the arc tangent keeps the
    /// precision that the arc cosine loses at both ends.
    func distance(to other: Place) -> Double {
        let step = other.longitude - longitude
        let across = other.cosine * sin(step)
        let along = cosine * other.sine - sine * other.cosine * cos(step)
        let dot = sine * other.sine + cosine * other.cosine * cos(step)
        return Self.earthRadius * atan2((across * across + along * along).squareRoot(), dot)
    }

    /// Mean radius of the earth in metres (IUGG).
    static let earthRadius = 6_371_008.8
    /// The greatest distance there is.
    static let farthest = earthRadius * .pi
}

/// A part of the sphere between two parallels and two meridians, in radians; it never spans the date line.
struct PlaceBox {
    var latitudes: ClosedRange<Double>
    var longitudes: ClosedRange<Double>

    /// A bound below the least distance that costs little: how far its parallels are away, in metres.
    func leastGap(from place: Place) -> Double {
        max(latitudes.lowerBound - place.latitude, place.latitude - latitudes.upperBound, 0) * Place.earthRadius
    }

    /// The least distance of any of its points, in metres.
    func leastDistance(from place: Place) -> Double {
        if longitudes.contains(place.longitude) {
            if latitudes.contains(place.latitude) { return 0 }
            let gap =
                place.latitude < latitudes.lowerBound
                ? latitudes.lowerBound - place.latitude : place.latitude - latitudes.upperBound
            return gap * Place.earthRadius
        }
        // On every parallel the nearest point is on the meridian with the smaller step, so it is on that edge.
        let west = abs((longitudes.lowerBound - place.longitude).remainder(dividingBy: 2 * .pi))
        let east = abs((longitudes.upperBound - place.longitude).remainder(dividingBy: 2 * .pi))
        let edge = west <= east ? longitudes.lowerBound : longitudes.upperBound
        // Along a meridian the cosine of the distance is a cosine of the latitude, greatest here.
        let crest = atan2(sin(place.latitude), cos(place.latitude) * cos(edge - place.longitude))
        func distance(_ latitude: Double) -> Double { place.distance(to: Place(latitude: latitude, longitude: edge)) }
        if latitudes.contains(crest) { return distance(crest) }
        return min(distance(latitudes.lowerBound), distance(latitudes.upperBound))
    }

    /// The greatest distance of any of its points, in metres.
    func greatestDistance(from place: Place) -> Double { Place.farthest - leastDistance(from: place.antipode) }
}
