package import Logging
import NIOCore

/// Says a thing that repeats every second or two once, and again after a minute with the number of times it went
/// unsaid.
package struct QuietLog: Sendable {
    /// The most different things remembered; beyond it, all are forgotten and said again.
    static let entriesMax = 64
    static let pause: TimeAmount = .seconds(60)

    private var said: [String: (at: NIODeadline, unsaid: Int)] = [:]

    package init() {}

    /// - Parameter key: what makes two messages the same; the message itself unless given.
    package mutating func log(_ logger: Logger, _ level: Logger.Level, _ message: String, key: String? = nil) {
        let now = NIODeadline.now()
        let key = key ?? message
        if let last = said[key], now < last.at + Self.pause {
            said[key] = (last.at, last.unsaid + 1)
            logger.trace("\(message)")
            return
        }
        let unsaid = said[key]?.unsaid ?? 0
        if said.count >= Self.entriesMax { said.removeAll() }
        said[key] = (now, 0)
        logger.log(level: level, "\(message)\(unsaid > 0 ? " (and \(unsaid) times before)" : "")")
    }

    /// The matter is settled: say it at once if it comes back.
    mutating func forget() { said.removeAll() }
}
