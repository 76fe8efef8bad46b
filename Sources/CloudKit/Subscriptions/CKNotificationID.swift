public import Foundation

/// Tells notifications apart: `CKNotification.ID`. Opaque, immutable, equal by value.
///
/// The class stands at the top level under the name it has in Objective-C, because Foundation on Linux archives no
/// nested classes.
public final class CKNotificationID: NSObject, NSSecureCoding, NSCopying, Sendable {
    let value: String

    init(_ value: String) { self.value = value }

    public override func isEqual(_ object: Any?) -> Bool { (object as? CKNotificationID)?.value == value }
    public override var hash: Int { value.hashValue }
    public override var description: String { "<CKNotificationID: \(value)>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }
    public func encode(with coder: NSCoder) { coder.write(value, "NotificationID") }

    /// Nil where the archive holds no ID.
    public convenience init?(coder: NSCoder) {
        guard let value = coder.text("NotificationID") else { return nil }
        self.init(value)
    }
}
