private import Foundation

/// Who may read a value in a message.
///
/// Where the environment variable `OS_ACTIVITY_DT_MODE` is set to anything but `NO` or `0`, as Xcode sets it, private values are shown.
public struct OSLogPrivacy: Sendable {
    /// What stands in the place of a hidden value.
    public enum Mask: Sendable {
        /// A hash that is the same for equal values during one run of the program, and different in the next.
        case hash
        /// Nothing but that there is a value.
        case none
    }

    enum Kind { case open, hidden, secret, byType }

    let kind: Kind
    let mask: Mask

    /// Shown.
    public static var `public`: Self { .init(kind: .open, mask: .none) }
    /// Hidden, and shown while debugging.
    public static var `private`: Self { .init(kind: .hidden, mask: .none) }
    /// Hidden always.
    public static var sensitive: Self { .init(kind: .secret, mask: .none) }
    /// Numbers, truth values and types are shown; text and objects are private.
    public static var auto: Self { .init(kind: .byType, mask: .none) }

    /// Hidden behind a mask, and shown while debugging.
    public static func `private`(mask: Mask) -> Self { .init(kind: .hidden, mask: mask) }
    /// Hidden behind a mask always.
    public static func sensitive(mask: Mask) -> Self { .init(kind: .secret, mask: mask) }
    /// As ``auto``; what is hidden is so behind a mask.
    public static func auto(mask: Mask) -> Self { .init(kind: .byType, mask: mask) }

    /// Whether this process was started for debugging.
    static let showsPrivateValues: Bool = {
        guard let mode = ProcessInfo.processInfo.environment["OS_ACTIVITY_DT_MODE"] else { return false }
        return !["", "0", "NO", "no"].contains(mode)
    }()

    /// A value as it is to be read.
    func shown(_ value: String, isOpenByType: Bool, showsPrivateValues: Bool) -> String {
        let isOpen =
            switch kind {
            case .open: true
            case .hidden: showsPrivateValues
            case .secret: false
            case .byType: isOpenByType || showsPrivateValues
            }
        if isOpen { return value }
        switch mask {
        case .none: return "<private>"
        case .hash: return "<mask.hash: '\(String(UInt(bitPattern: value.hashValue), radix: 16))'>"
        }
    }
}
