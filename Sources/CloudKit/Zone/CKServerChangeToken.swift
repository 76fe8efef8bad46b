public import Foundation

/// A place in the changes of a zone or a database: what was fetched up to it need not be fetched again.
///
/// Opaque and immutable; equal when both name the same place. Keep it in an archive between runs.
public final class CKServerChangeToken: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// The server's text for the place (`syncToken`).
    let value: String

    /// A token that the server gave.
    init(_ value: String) { self.value = value }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool { (object as? CKServerChangeToken)?.value == value }
    /// Equal for equal objects.
    public override var hash: Int { value.hashValue }
    /// What was wrong and what to do about it.
    public override var description: String { "<CKServerChangeToken: \(value)>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }
    /// Archives the object.
    public func encode(with coder: NSCoder) { coder.write(value, "Token") }

    /// Nil where the archive holds no token.
    public convenience init?(coder: NSCoder) {
        guard let value = coder.text("Token") else { return nil }
        self.init(value)
    }
}
