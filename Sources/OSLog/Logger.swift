internal import Logging

/// Writes messages of one subsystem and category, as `os.Logger` does on Apple's systems.
///
/// The messages go to `swift-log`: to standard error, or wherever the program's `LoggingSystem.bootstrap` sends them.
/// The subsystem is the label, the category is metadata. A message below the level of the program's log handler is not
/// put together.
///
/// Differs from Apple's: values that are private are hidden in the message itself (``OSLogPrivacy``), as there is no
/// log store that could show them later; `warning` and `error` are two levels.
public struct Logger: Sendable {
    private let log: Logging.Logger
    private let category: String

    /// A logger of no subsystem.
    public init() {
        self.init(subsystem: "default", category: "")
    }

    /// A logger of a subsystem, commonly the reverse domain name of the program, and a part of it.
    public init(subsystem: String, category: String) {
        var log = Logging.Logger(label: subsystem)
        if !category.isEmpty { log[metadataKey: "category"] = .string(category) }
        self.init(log, category: category)
    }

    init(_ log: Logging.Logger, category: String) { (self.log, self.category) = (log, category) }

    /// A logger that writes where a log does.
    public init(_ logObj: OSLog) {
        guard let logger = logObj.logger else {
            log = Logging.Logger(label: "disabled") { _ in SwiftLogNoOpLogHandler() }
            category = ""
            return
        }
        self = logger
    }

    func isEnabled(type: OSLogType) -> Bool { log.logLevel <= type.level }

    /// Whether signposts are written, which have the level `trace`.
    var writesSignposts: Bool { log.logLevel <= .trace }

    /// Writes a message of the level `notice`.
    public func log(_ message: @autoclosure () -> OSLogMessage) { write(.notice, message) }

    /// Writes a message of a given level.
    public func log(level: OSLogType, _ message: @autoclosure () -> OSLogMessage) { write(level.level, message) }

    /// What helps to follow the program's steps.
    public func trace(_ message: @autoclosure () -> OSLogMessage) { write(.trace, message) }

    /// What helps during development only.
    public func debug(_ message: @autoclosure () -> OSLogMessage) { write(.debug, message) }

    /// What helps to understand an error, and is not needed else.
    public func info(_ message: @autoclosure () -> OSLogMessage) { write(.info, message) }

    /// What an administrator may want to know.
    public func notice(_ message: @autoclosure () -> OSLogMessage) { write(.notice, message) }

    /// What went wrong and was coped with.
    public func warning(_ message: @autoclosure () -> OSLogMessage) { write(.warning, message) }

    /// What went wrong.
    public func error(_ message: @autoclosure () -> OSLogMessage) { write(.error, message) }

    /// What went wrong so that the program cannot go on as it should; the same as ``fault(_:)``.
    public func critical(_ message: @autoclosure () -> OSLogMessage) { write(.critical, message) }

    /// A mistake in the program itself.
    public func fault(_ message: @autoclosure () -> OSLogMessage) { write(.critical, message) }

    private func write(_ level: Logging.Logger.Level, _ message: () -> OSLogMessage) {
        log.log(
            level: level, "\(message().text(showsPrivateValues: OSLogPrivacy.showsPrivateValues))",
            source: category.isEmpty ? log.label : category)
    }
}

/// How important a message is; the raw values are Apple's.
public struct OSLogType: RawRepresentable, Hashable, Sendable {
    /// The number of the type.
    public var rawValue: UInt8

    /// The type of a number.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The same as the level of ``Logger/notice(_:)``.
    public static let `default` = OSLogType(rawValue: 0x00)
    /// The level of ``Logger/info(_:)``.
    public static let info = OSLogType(rawValue: 0x01)
    /// The level of ``Logger/debug(_:)``.
    public static let debug = OSLogType(rawValue: 0x02)
    /// The level of ``Logger/error(_:)``.
    public static let error = OSLogType(rawValue: 0x10)
    /// The level of ``Logger/fault(_:)``.
    public static let fault = OSLogType(rawValue: 0x11)

    fileprivate var level: Logging.Logger.Level {
        switch self {
        case .info: .info
        case .debug: .debug
        case .error: .error
        case .fault: .critical
        default: .notice
        }
    }
}
