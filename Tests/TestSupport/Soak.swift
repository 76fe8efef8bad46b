import Foundation

/// Whether tests run in their long forms: `scripts/soak` sets `ZONEKEEPER_SOAK`. Without it each has a short form.
package enum Soak {
    /// Whether the long forms run.
    package static let isOn = ProcessInfo.processInfo.environment["ZONEKEEPER_SOAK"] == "1"

    /// How often something is done, in the short form and in the long one.
    package static func count(_ short: Int, soak long: Int) -> Int { isOn ? long : short }
}
