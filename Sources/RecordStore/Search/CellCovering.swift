/// Ranges of cells that hold every location within a ring around a place.
enum CellCovering {
    /// A square of the grid, by quartering one of the two hemispheres `depth` times.
    private struct Square {
        var first: Int64
        var depth: Int
        /// The last cell.
        var last: Int64 { first + ((Int64(1) << Int64(62 - 2 * depth)) - 1) }
    }

    /// Ascending ranges, none touching another, at most `rangesMax` (but never fewer than the two hemispheres need).
    ///
    /// Every location with a distance in `inner...outer` metres is in one; some that are not may be too. The coarsest
    /// square that the ring's edge crosses is quartered next, until the number is spent, so that the ranges exceed the
    /// ring by a share that falls with `rangesMax`.
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
