public import Foundation

/// A file that belongs to a record: its bytes are kept apart from the record's other values.
///
/// Immutable. The file's name is not kept. A field set to nil gives its asset up.
/// The server does not have assets yet: saving a record that holds one fails with `CKError.serverRejectedRequest`.
public final class CKAsset: NSObject, Sendable {
    /// Where the file lies on this machine; nil where its bytes were not fetched.
    public let fileURL: URL?

    /// An asset of a local file. The file is read when the record is saved, and may go once the save has ended.
    public init(fileURL: URL) { self.fileURL = fileURL }

    /// An asset of which this machine has no copy.
    init(unfetched: Void) { fileURL = nil }

    public override var description: String { "<CKAsset: \(fileURL?.path ?? "not fetched")>" }
}
