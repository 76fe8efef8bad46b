/// Whether a run kept to the limit that was expected.
enum LimitVerdict: Hashable, Sendable {
    case kept
    case missed(String)
    /// The run cannot tell.
    case unknown(String)

    /// - Parameters:
    ///   - measure: nil where the limit was not reached for a second.
    ///   - tolerance: 0.02 is two percent to either side.
    ///   - testerIsLimit: why the tester may not have sent in time, if so.
    init(_ measure: LimitMeasure?, limit: Double, tolerance: Double, testerIsLimit: String?) {
        guard let measure else {
            self = .unknown(
                testerIsLimit
                    ?? "never in a whole second did nodes answer more requests than \(LoadReport.short(limit)): raise --rate"
            )
            return
        }
        let allowed = measure.allowed
        let excess = Double(measure.accepted) - allowed
        // Requests come whole, and the first ones at once: a run in which those are more than the tolerance sees only gross faults.
        let grain = LimitMeasure.burst(limit) + 1
        let isCoarse = allowed * tolerance < grain
        guard abs(excess) > allowed * tolerance + (isCoarse ? grain : 0) else {
            self = isCoarse ? .unknown(Self.tooShort(measure, limit: limit, tolerance, grain: grain)) : .kept
            return
        }
        if excess < 0, let reason = Self.excuse(measure, testerIsLimit) {
            self = .unknown(reason)
            return
        }
        let off = String(off: (measure.ratio - 1) * 100)
        self = .missed("accepted was \(off) of limit x time, and \(String(percent: tolerance)) is tolerated")
    }

    /// Why too little accepted is not the cluster's limiter; nil where it is. What could not be sent was not refused, and a cluster that
    /// refuses nothing is slow, not limited.
    private static func excuse(_ measure: LimitMeasure, _ testerIsLimit: String?) -> String? {
        testerIsLimit
            ?? (measure.throttled == 0 ? "less than the limit was accepted, and yet nothing was throttled" : nil)
    }

    private static func tooShort(
        _ measure: LimitMeasure, limit: Double, _ tolerance: Double, grain: Double
    ) -> String {
        let needed = LoadReport.short((grain / (limit * tolerance)).rounded(.up))
        return
            "\(String(measure.seconds, digits: 1)) s under pressure are too few to tell \(String(percent: tolerance)) of "
            + "\(LoadReport.short(limit))/s; \(needed) s are enough"
    }

    /// For CI: 0 kept, 1 missed, 3 not known.
    var exitCode: Int32 {
        switch self {
        case .kept: 0
        case .missed: 1
        case .unknown: 3
        }
    }

    var name: String {
        switch self {
        case .kept: "kept"
        case .missed: "missed"
        case .unknown: "unknown"
        }
    }

    var reason: String? {
        switch self {
        case .kept: nil
        case .missed(let reason), .unknown(let reason): reason
        }
    }
}
