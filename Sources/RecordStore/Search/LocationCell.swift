import Foundation
import RecordModel

/// The grid square that a location is in, as an integer: the bits of its longitude and latitude in turn (z-order), so
/// that a square of any size is a range of integers. Version 1 of the grid: 2^32 columns by 2^31 rows, 9 mm each.
///
/// Arithmetic only, so that every replica finds the same cell.
struct LocationCell: Hashable, Sendable {
    /// 0 to `Int64.max`.
    let value: Int64

    init(value: Int64) { self.value = value }

    /// Nil where a coordinate is not a finite number. Longitude 180 is -180; a latitude beyond a pole is the pole's.
    init?(_ location: Location) {
        guard location.latitude.isFinite, location.longitude.isFinite else { return nil }
        let latitude = min(max(location.latitude, -90), 90)
        let longitude = location.longitude.remainder(dividingBy: 360)
        let row = min(((latitude + 90) / 180 * 2_147_483_648).rounded(.down), 2_147_483_647)
        let column = ((longitude + 180) / 360 * 4_294_967_296).rounded(.down)
        let wrapped = column >= 4_294_967_296 ? 0 : UInt32(column)
        value = Int64(Self.spread(UInt32(row)) << 1 | Self.spread(wrapped))
    }

    /// The middle of the cell.
    var center: Place {
        let bits = UInt64(value)
        let row = Double(Self.gather(bits >> 1)) + 0.5
        let column = Double(Self.gather(bits)) + 0.5
        return Place(
            latitude: (row / 2_147_483_648 - 0.5) * .pi, longitude: (column / 4_294_967_296 - 0.5) * 2 * .pi)
    }

    /// The box of a square: the first cell of it, and how often the hemisphere was quartered (0 to 31).
    static func box(first: Int64, depth: Int) -> PlaceBox {
        let bits = UInt64(first)
        let south = (Double(gather(bits >> 1)) / 2_147_483_648 - 0.5) * .pi
        let west = (Double(gather(bits)) / 4_294_967_296 - 0.5) * 2 * .pi
        let side = Double.pi / Double(UInt64(1) << UInt64(depth))
        return PlaceBox(latitudes: south...min(south + side, .pi / 2), longitudes: west...min(west + side, .pi))
    }

    /// Puts a zero before each bit.
    private static func spread(_ number: UInt32) -> UInt64 {
        var bits = UInt64(number)
        bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF
        bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF
        bits = (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F
        bits = (bits | bits << 2) & 0x3333_3333_3333_3333
        return (bits | bits << 1) & 0x5555_5555_5555_5555
    }

    /// Undoes `spread`, whatever is in the bits between.
    private static func gather(_ spread: UInt64) -> UInt32 {
        var bits = spread & 0x5555_5555_5555_5555
        bits = (bits | bits >> 1) & 0x3333_3333_3333_3333
        bits = (bits | bits >> 2) & 0x0F0F_0F0F_0F0F_0F0F
        bits = (bits | bits >> 4) & 0x00FF_00FF_00FF_00FF
        bits = (bits | bits >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: bits | bits >> 16)
    }
}

/// Ranges of cells that hold every location within a ring around a place.
enum CellCovering {
    /// A square of the grid, by quartering one of the two hemispheres `depth` times.
    private struct Square {
        var first: Int64
        var depth: Int
        /// The last cell.
        var last: Int64 { first + ((Int64(1) << Int64(62 - 2 * depth)) - 1) }
    }

    /// Ascending, disjoint ranges, at most `rangesMax` (but never fewer than the two hemispheres need).
    ///
    /// They contain every location with a distance in `inner...outer` metres, and may contain others. The coarsest
    /// square that the ring's edge crosses is quartered next, until the number is spent, so that the excess shrinks as
    /// `rangesMax` grows.
    static func ranges(
        around place: Place, inner: Double = 0, outer: Double, rangesMax: Int = 40
    ) -> [ClosedRange<Int64>] {
        // A location and its cell's box may differ by rounding; a centimetre is far more.
        let (inner, outer) = (inner - 0.01, outer + 0.01)
        var whole: [Square] = []
        var crossed: [Square] = []
        func sort(_ square: Square) {
            let box = LocationCell.box(first: square.first, depth: square.depth)
            if box.leastGap(from: place) > outer { return }
            let least = box.leastDistance(from: place)
            if least > outer { return }
            let greatest = box.greatestDistance(from: place)
            if greatest < inner { return }
            if (least >= inner && greatest <= outer) || square.depth == 31 {
                whole.append(square)
            } else {
                crossed.append(square)
            }
        }
        sort(Square(first: 0, depth: 0))
        sort(Square(first: Int64(1) << 62, depth: 0))
        var next = 0
        while next < crossed.count, whole.count + crossed.count - next + 3 <= rangesMax {
            let square = crossed[next]
            next += 1
            let step = Int64(1) << Int64(60 - 2 * square.depth)
            for quarter in 0..<Int64(4) { sort(Square(first: square.first + quarter * step, depth: square.depth + 1)) }
        }
        return merged(whole + crossed[next...])
    }

    private static func merged(_ squares: [Square]) -> [ClosedRange<Int64>] {
        var ranges: [ClosedRange<Int64>] = []
        for square in squares.sorted(by: { $0.first < $1.first }) {
            if let last = ranges.last, last.upperBound + 1 == square.first {
                ranges[ranges.count - 1] = last.lowerBound...square.last
            } else {
                ranges.append(square.first...square.last)
            }
        }
        return ranges
    }
}

/// A point on the sphere, in a form that distances are quickly computed from.
struct Place: Hashable, Sendable {
    /// Radians, -π/2 to π/2.
    let latitude: Double
    /// Radians, -π to π.
    let longitude: Double
    /// What its distances are computed by.
    let trigonometry: Trigonometry
    private let sine: Double
    private let cosine: Double

    init(latitude: Double, longitude: Double, by trigonometry: Trigonometry = .own) {
        self.latitude = latitude
        self.longitude = longitude
        self.trigonometry = trigonometry
        (sine, cosine) = trigonometry.sineAndCosine(latitude)
    }

    /// Nil where a coordinate is not a finite number. A latitude beyond a pole is taken for the pole's.
    init?(_ location: Location, by trigonometry: Trigonometry = .own) {
        guard location.latitude.isFinite, location.longitude.isFinite else { return nil }
        self.init(
            latitude: min(max(location.latitude, -90), 90) * .pi / 180,
            longitude: location.longitude.remainder(dividingBy: 360) * .pi / 180, by: trigonometry)
    }

    /// The point farthest away.
    var antipode: Place {
        Place(
            latitude: -latitude, longitude: longitude > 0 ? longitude - .pi : longitude + .pi, by: trigonometry)
    }

    /// Metres along the great circle, right to a few nanometres from nearby to the antipode: the arc tangent keeps the
    /// precision that the arc cosine loses at both ends.
    func distance(to other: Place) -> Double {
        let step = trigonometry.sineAndCosine(other.longitude - longitude)
        let across = other.cosine * step.sine
        let along = cosine * other.sine - sine * other.cosine * step.cosine
        let dot = sine * other.sine + cosine * other.cosine * step.cosine
        return Self.earthRadius * trigonometry.angle((across * across + along * along).squareRoot(), dot)
    }

    /// The latitude at which a meridian comes nearest to this place, if less than a quarter of a turn off.
    fileprivate func crest(on meridian: Double) -> Double {
        trigonometry.angle(sine, cosine * trigonometry.sineAndCosine(meridian - longitude).cosine)
    }

    /// Mean radius of the earth in metres (IUGG).
    static let earthRadius = 6_371_008.8
    /// The greatest distance there is.
    static let farthest = earthRadius * .pi
}

/// Sines and arc tangents, of angles in radians.
enum Trigonometry: Hashable, Sendable {
    /// Of IEEE's basic operations alone, so that every machine finds the same bits. Right to two units in the last
    /// place of 1.
    case own
    /// The C library's, the last bit of which is up to the machine. By these subscriptions told distances below
    /// `FeatureLevel.ownTrigonometry`.
    case library

    /// Of an angle of at most a few turns.
    func sineAndCosine(_ angle: Double) -> (sine: Double, cosine: Double) {
        if self == .library { return (sin(angle), cos(angle)) }
        // The rest of an eighth of a turn at most. The parts of π/2 are so short that their multiples are exact.
        let quarters = (angle * (2 / .pi)).rounded()
        let rest =
            angle - quarters * 1.570_796_326_734_125_614_17 - quarters * 6.077_100_506_303_965_976_60e-11
            - quarters * 2.022_266_248_795_950_631_54e-21
        let square = rest * rest
        let sine = rest + rest * square * Self.series(square, Self.sines)
        let cosine = 1 - (square / 2 - square * square * Self.series(square, Self.cosines))
        return switch Int(quarters) & 3 {
        case 0: (sine, cosine)
        case 1: (cosine, -sine)
        case 2: (-sine, -cosine)
        default: (-cosine, sine)
        }
    }

    /// The angle of a point from the x axis, -π to π; 0 for the origin.
    func angle(_ y: Double, _ x: Double) -> Double {
        if self == .library { return atan2(y, x) }
        let (less, greater) = (min(abs(x), abs(y)), max(abs(x), abs(y)))
        if greater == 0 { return 0 }
        // Beyond a sixteenth of a turn the angle from the diagonal is taken, so that few terms are enough.
        let isSteep = less > greater * 0.414_213_562_373_095_048_8
        let tangent = isSteep ? (greater - less) / (greater + less) : less / greater
        let square = tangent * tangent
        let small = tangent - tangent * square * Self.series(square, Self.arcTangents)
        let fromAxis = isSteep ? .pi / 4 - small : small
        let inQuarter = abs(y) > abs(x) ? .pi / 2 - fromAxis : fromAxis
        let inHalf = x < 0 ? .pi - inQuarter : inQuarter
        return y < 0 ? -inHalf : inHalf
    }

    private static func series(_ square: Double, _ terms: [Double]) -> Double {
        var sum = 0.0
        for term in terms.reversed() { sum = term + square * sum }
        return sum
    }

    // Polynomials of the least error, from FDLIBM 5.3.
    private static let sines = [
        -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
    ]
    private static let cosines = [
        4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
    ]
    private static let arcTangents = [
        3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
        -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02,
        6.66107313738753120669e-02, -5.83357013379057348645e-02, 4.97687799461593236017e-02,
        -3.65315727442169155270e-02, 1.62858201153657823623e-02,
    ]
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
        let crest = place.crest(on: edge)
        func distance(_ latitude: Double) -> Double {
            place.distance(to: Place(latitude: latitude, longitude: edge, by: place.trigonometry))
        }
        if latitudes.contains(crest) { return distance(crest) }
        return min(distance(latitudes.lowerBound), distance(latitudes.upperBound))
    }

    /// The greatest distance of any of its points, in metres.
    func greatestDistance(from place: Place) -> Double { Place.farthest - leastDistance(from: place.antipode) }
}
