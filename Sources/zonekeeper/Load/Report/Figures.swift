import Foundation

/// Numbers as reports write them.
extension String {
    init(_ value: Double, digits: Int) { self = String(format: "%.\(digits)f", value) }

    /// `0.02` as `2 %`, with as many digits as say something.
    init(percent share: Double) {
        let value = share * 100
        let digits = value == value.rounded() ? 0 : abs(value) < 10 ? 2 : 1
        self = String(value, digits: digits) + " %"
    }

    /// A deviation in percent, with its sign.
    init(off percent: Double) { self = String(format: "%+.2f %%", percent) }

    /// Milliseconds with three significant digits or so; `-` for nil.
    init(milliseconds: Double?) {
        guard let value = milliseconds else {
            self = "-"
            return
        }
        self = String(value, digits: value < 10 ? 2 : value < 100 ? 1 : 0)
    }
}
