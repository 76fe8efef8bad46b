/// Tells intervals and events of a name apart that happen at the same time.
public struct OSSignpostID: Hashable, Sendable {
    /// The number of the ID.
    public let rawValue: UInt64

    /// The ID of a number.
    public init(_ value: UInt64) { rawValue = value }

    /// An ID that no other has.
    public init(log: OSLog) { rawValue = .random(in: 2..<(.max)) }

    /// The ID of an object, for as long as that lives.
    public init(log: OSLog, object: AnyObject) { rawValue = UInt64(UInt(bitPattern: ObjectIdentifier(object))) }

    /// For a name of which only one interval is open at a time.
    public static let exclusive = OSSignpostID(0xEEEE_B0B5_B2B2_EEEE)
    /// For a log that is disabled.
    public static let invalid = OSSignpostID(.max)
    /// None.
    public static let null = OSSignpostID(0)
}

/// An interval that began.
public final class OSSignpostIntervalState: Sendable {
    let id: OSSignpostID
    let start = ContinuousClock.now

    init(_ id: OSSignpostID) { self.id = id }

    /// An interval that began somewhere else: its length is not known.
    public static func beginState(id: OSSignpostID) -> OSSignpostIntervalState { OSSignpostIntervalState(id) }
}

/// The metadata of a signpost.
public typealias SignpostMetadata = OSLogMessage

/// Says when intervals begin and end, and how long they took.
///
/// There is no tool that draws them: they are messages of the level `trace`, which most log handlers drop.
public struct OSSignposter: Sendable {
    private let logger: Logger?

    /// A signposter of a subsystem and a part of it.
    public init(subsystem: String, category: String) { logger = Logger(subsystem: subsystem, category: category) }

    /// A signposter of a subsystem and one of the system's categories.
    public init(subsystem: String, category: OSLog.Category) {
        self.init(subsystem: subsystem, category: category.rawValue)
    }

    /// A signposter that writes where a logger does.
    public init(logger: Logger) { self.logger = logger }

    /// A signposter that writes where a log does.
    public init(logHandle: OSLog) { logger = logHandle.logger }

    /// A signposter of no subsystem.
    public init() { logger = Logger() }

    private init(disabled: Void) { logger = nil }

    /// Drops everything.
    public static let disabled = OSSignposter(disabled: ())

    /// Whether signposts are written.
    public var isEnabled: Bool { logger?.writesSignposts ?? false }

    /// An ID that no other has.
    public func makeSignpostID() -> OSSignpostID { OSSignpostID(log: .default) }

    /// The ID of an object, for as long as that lives.
    public func makeSignpostID(from object: AnyObject) -> OSSignpostID { OSSignpostID(log: .default, object: object) }

    /// Begins an interval.
    public func beginInterval(_ name: StaticString, id: OSSignpostID = .exclusive) -> OSSignpostIntervalState {
        beginInterval(name, id: id, "")
    }

    /// Begins an interval, with something about it.
    public func beginInterval(
        _ name: StaticString, id: OSSignpostID = .exclusive, _ message: @autoclosure () -> SignpostMetadata
    ) -> OSSignpostIntervalState {
        write("begin", name, id, message)
        return OSSignpostIntervalState(id)
    }

    /// Ends an interval.
    public func endInterval(_ name: StaticString, _ state: OSSignpostIntervalState) { endInterval(name, state, "") }

    /// Ends an interval, with something about it.
    public func endInterval(
        _ name: StaticString, _ state: OSSignpostIntervalState, _ message: @autoclosure () -> SignpostMetadata
    ) {
        write("end after \(state.start.duration(to: .now))", name, state.id, message)
    }

    /// Says that something happened.
    public func emitEvent(_ name: StaticString, id: OSSignpostID = .exclusive) { emitEvent(name, id: id, "") }

    /// Says that something happened, with something about it.
    public func emitEvent(
        _ name: StaticString, id: OSSignpostID = .exclusive, _ message: @autoclosure () -> SignpostMetadata
    ) {
        write("event", name, id, message)
    }

    /// Does something as an interval.
    public func withIntervalSignpost<Value>(
        _ name: StaticString, id: OSSignpostID = .exclusive, around task: () throws -> Value
    ) rethrows -> Value {
        try withIntervalSignpost(name, id: id, "", around: task)
    }

    /// Does something as an interval, with something about it.
    public func withIntervalSignpost<Value>(
        _ name: StaticString, id: OSSignpostID = .exclusive, _ message: @autoclosure () -> SignpostMetadata,
        around task: () throws -> Value
    ) rethrows -> Value {
        let state = beginInterval(name, id: id, message())
        defer { endInterval(name, state) }
        return try task()
    }

    private func write(
        _ what: @autoclosure () -> String, _ name: StaticString, _ id: OSSignpostID, _ message: () -> SignpostMetadata
    ) {
        guard isEnabled, let logger else { return }
        let text = message().text(showsPrivateValues: OSLogPrivacy.showsPrivateValues)
        let number = id == .exclusive ? "" : " \(String(id.rawValue, radix: 16))"
        let words = ["\(name)\(number): \(what())", text].filter { !$0.isEmpty }.joined(separator: "; ")
        logger.trace("\(words, privacy: .public)")
    }
}
