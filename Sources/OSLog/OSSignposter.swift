// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// Tells intervals and events of a name apart that happen at the same time.
public struct OSSignpostID: Hashable, Comparable, Sendable {
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

    /// The order of the numbers.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// An interval that began.
public final class OSSignpostIntervalState: Codable, Sendable {
    let id: OSSignpostID
    /// Nil where it began somewhere else.
    let start: ContinuousClock.Instant?

    init(_ id: OSSignpostID, start: ContinuousClock.Instant?) { (self.id, self.start) = (id, start) }

    /// An interval that began somewhere else: its length is not known.
    public static func beginState(id: OSSignpostID) -> OSSignpostIntervalState {
        OSSignpostIntervalState(id, start: nil)
    }

    /// Reads an interval that began elsewhere from what `encode(to:)` wrote.
    public convenience init(from decoder: any Decoder) throws {
        self.init(OSSignpostID(try decoder.singleValueContainer().decode(UInt64.self)), start: nil)
    }

    /// Writes the interval's ID.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(id.rawValue)
    }
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
        logger?.signpost("begin", name, id, message)
        return OSSignpostIntervalState(id, start: .now)
    }

    /// Begins the interval of an animation: one as others, here.
    public func beginAnimationInterval(
        _ name: StaticString, id: OSSignpostID = .exclusive
    ) -> OSSignpostIntervalState {
        beginInterval(name, id: id)
    }

    /// Begins the interval of an animation, with something about it: one as others, here.
    public func beginAnimationInterval(
        _ name: StaticString, id: OSSignpostID = .exclusive, _ message: @autoclosure () -> SignpostMetadata
    ) -> OSSignpostIntervalState {
        beginInterval(name, id: id, message())
    }

    /// Ends an interval.
    public func endInterval(_ name: StaticString, _ state: OSSignpostIntervalState) { endInterval(name, state, "") }

    /// Ends an interval, with something about it.
    public func endInterval(
        _ name: StaticString, _ state: OSSignpostIntervalState, _ message: @autoclosure () -> SignpostMetadata
    ) {
        let length = state.start.map { " after \($0.duration(to: .now))" }
        logger?.signpost("end" + (length ?? ""), name, state.id, message)
    }

    /// Says that something happened.
    public func emitEvent(_ name: StaticString, id: OSSignpostID = .exclusive) { emitEvent(name, id: id, "") }

    /// Says that something happened, with something about it.
    public func emitEvent(
        _ name: StaticString, id: OSSignpostID = .exclusive, _ message: @autoclosure () -> SignpostMetadata
    ) {
        logger?.signpost("event", name, id, message)
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
}

/// What a signpost says; the raw values are Apple's.
public struct OSSignpostType: RawRepresentable, Hashable, Sendable {
    /// The number of the type.
    public let rawValue: UInt8

    /// The type of a number.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Something happened.
    public static let event = OSSignpostType(rawValue: 0)
    /// An interval begins.
    public static let begin = OSSignpostType(rawValue: 1)
    /// An interval ends.
    public static let end = OSSignpostType(rawValue: 2)

    fileprivate var word: String { [.begin: "begin", .end: "end"][self] ?? "event" }
}

/// Says that something happened, or that an interval begins or ends.
public func os_signpost(
    _ type: OSSignpostType, dso: UnsafeRawPointer? = nil, log: OSLog, name: StaticString,
    signpostID: OSSignpostID = .exclusive
) {
    log.logger?.signpost(type.word, name, signpostID) { "" }
}

/// Says that something happened, or that an interval begins or ends, with a format as `os_log(_:log:type:_:)` has it.
public func os_signpost(
    _ type: OSSignpostType, dso: UnsafeRawPointer? = nil, log: OSLog, name: StaticString,
    signpostID: OSSignpostID = .exclusive, _ format: StaticString, _ arguments: any CVarArg...
) {
    log.logger?.signpost(type.word, name, signpostID) { OSLogFormat.message(format, arguments) }
}

extension Logger {
    /// Writes a signpost, unless its ID says that there is none.
    func signpost(
        _ what: @autoclosure () -> String, _ name: StaticString, _ id: OSSignpostID, _ message: () -> SignpostMetadata
    ) {
        guard writesSignposts, id != .null, id != .invalid else { return }
        let number = id == .exclusive ? "" : " \(String(id.rawValue, radix: 16))"
        let text = message().text(showsPrivateValues: OSLogPrivacy.showsPrivateValues)
        let words = ["\(name)\(number): \(what())", text].filter { !$0.isEmpty }.joined(separator: "; ")
        trace("\(words, privacy: .public)")
    }
}
