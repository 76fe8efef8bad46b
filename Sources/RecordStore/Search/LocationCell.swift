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
