public import Foundation

/// A place in the changes of a zone or a database: what was fetched up to it need not be fetched again.
///
/// Opaque and immutable; equal when both name the same place. Keep it in an archive between runs.
public final class CKServerChangeToken: NSObject, NSSecureCoding, NSCopying, Sendable {
    /// The server's text for the place (`syncToken`).
    let value: String

    /// A token that the server gave.
    init(_ value: String) { self.value = value }

    public override func isEqual(_ object: Any?) -> Bool { (object as? CKServerChangeToken)?.value == value }
    public override var hash: Int { value.hashValue }
    public override var description: String { "<CKServerChangeToken: \(value)>" }

    /// Itself: it cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public static var supportsSecureCoding: Bool { true }
    public func encode(with coder: NSCoder) { coder.write(value, "Token") }

    /// Nil where the archive holds no token.
    public convenience init?(coder: NSCoder) {
        guard let value = coder.text("Token") else { return nil }
        self.init(value)
    }
}
