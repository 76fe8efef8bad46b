// Names of Apple's begin with the framework's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

/// Where messages of one subsystem and category go, as the older calls have it: `os_log(_:log:type:_:)` and signposts.
public final class OSLog: Sendable {
    /// What signposts and messages are about, beside an app's own categories.
    public struct Category: Hashable, Sendable {
        /// The category's name.
        public let rawValue: String
        /// What is worth a look.
        public static let pointsOfInterest = Category(rawValue: "PointsOfInterest")
        /// Signposts that are written only while they are looked at; here they are as others.
        public static let dynamicTracing = Category(rawValue: "DynamicTracing")
        /// Signposts with a record of calls; here they are as others.
        public static let dynamicStackTracing = Category(rawValue: "DynamicStackTracing")
    }

    /// What writes; nil for the log that drops everything.
    let logger: Logger?

    /// A log of a subsystem, commonly the reverse domain name of the program, and a part of it.
    public convenience init(subsystem: String, category: String) {
        self.init(Logger(subsystem: subsystem, category: category))
    }

    /// A log of a subsystem and one of the system's categories.
    public convenience init(subsystem: String, category: Category) {
        self.init(subsystem: subsystem, category: category.rawValue)
    }

    init(_ logger: Logger?) { self.logger = logger }

    /// The log of no subsystem.
    public static let `default` = OSLog(Logger())
    /// Drops everything.
    public static let disabled = OSLog(nil)

    /// Whether messages of a type are written.
    public func isEnabled(type: OSLogType) -> Bool { logger?.isEnabled(type: type) ?? false }

    /// Whether signposts are written.
    public var signpostsEnabled: Bool { logger?.writesSignposts ?? false }
}

/// Writes a message with a format: `os_log("saved %{public}@ of %d", log: log, type: .info, name, count)`.
///
/// `%@` and `%s` are private unless they say `%{public}@`; numbers are public unless they say `%{private}d`.
public func os_log(
    _ message: StaticString, dso: UnsafeRawPointer? = nil, log: OSLog = .default, type: OSLogType = .default,
    _ args: any CVarArg...
) {
    log.logger?.log(level: type, OSLogFormat.message(message, args))
}

/// Writes a message with a format; the same with the type in front.
public func os_log(
    _ type: OSLogType, dso: UnsafeRawPointer? = nil, log: OSLog = .default, _ message: StaticString,
    _ args: any CVarArg...
) {
    log.logger?.log(level: type, OSLogFormat.message(message, args))
}

/// Writes a message with interpolated values.
@_disfavoredOverload
public func os_log(_ message: @autoclosure () -> OSLogMessage) { os_log(.default, message()) }

/// Writes a message with interpolated values, of a type.
@_disfavoredOverload
public func os_log(_ type: OSLogType, log: OSLog = .default, _ message: @autoclosure () -> OSLogMessage) {
    log.logger?.log(level: type, message())
}
