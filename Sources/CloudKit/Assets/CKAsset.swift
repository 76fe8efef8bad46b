public import Foundation
import RecordModel

/// A file that belongs to a record: its bytes are kept apart from the record's other values.
///
/// Immutable, and equal to an asset of the same file and the same bytes on the server. The file's name is not kept. A
/// field set to nil gives its asset up.
///
/// A save sends the file, and fails with `assetFileNotFound` where it is not there, with `assetFileModified` where it
/// is written to meanwhile. It may go once the save has ended. An asset that came with a record needs no file to be
/// saved again: the same field of the same record keeps it, and other records of the database get it from there, for as
/// long as the record has it.
///
/// Fetched records come with their files, in a folder of temporary files. Such a file stays for as long as its asset
/// lives, and ten minutes more; all go when the process ends. Move or copy what is to stay. To fetch a record without
/// its files, leave their fields out of `desiredKeys`, or set `CKOperation.Configuration.fetchesAssetFiles` to false.
public final class CKAsset: NSObject, NSSecureCoding, Sendable {
    /// Where the file is on this machine; nil where it was not fetched.
    public let fileURL: URL?
    /// What the server has; nil for an asset that was not saved yet.
    let content: AssetContent?
    /// The upload's dictionary, which a save sends; nil unless the file was just uploaded.
    let receipt: JSONValue?
    /// Keeps a fetched file.
    private let staged: StagedFile?

    /// An asset of a local file. The file is read when the record is saved.
    public convenience init(fileURL: URL) { self.init(fileURL: fileURL, content: nil) }

    init(fileURL: URL?, content: AssetContent?, receipt: JSONValue? = nil, staged: StagedFile? = nil) {
        self.fileURL = staged?.url ?? fileURL
        self.content = content
        self.receipt = receipt
        self.staged = staged
    }

    /// The bytes of the asset as the server has it, also where they were not fetched; nil for one that was not saved
    /// yet. Not in CloudKit.
    public var size: Int64? { content?.size }

    /// Where the bytes can be read with a plain GET, for up to an hour after the record was fetched or saved; nil where
    /// the server did not say. Anyone who has the URL can read them. Not in CloudKit.
    public var downloadURL: URL? { content?.downloadURL.flatMap { URL(string: $0) } }

    /// The same with a file of `other`.
    func with(fileOf other: CKAsset) -> CKAsset {
        CKAsset(fileURL: other.fileURL, content: content, staged: other.staged)
    }

    /// The same as it is saved by what the server answered.
    func with(receipt: JSONValue) -> CKAsset {
        CKAsset(fileURL: fileURL, content: AssetContent(receipt), receipt: receipt, staged: staged)
    }

    /// The text for logs.
    public override var description: String {
        let size = content.map { ", \($0.size) bytes" } ?? ""
        return "<CKAsset: \(fileURL?.path ?? "not fetched")\(size)>"
    }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CKAsset else { return false }
        return fileURL == other.fileURL && content?.checksum == other.content?.checksum
    }

    /// Equal for equal objects.
    public override var hash: Int { combinedHash(fileURL, content?.checksum) }

    // MARK: Coding

    /// Always true.
    public static var supportsSecureCoding: Bool { true }
    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }

    /// Archives where the file is and what the server has, but no bytes, and no URL, which would soon be of no use.
    public func encode(with coder: NSCoder) {
        coder.write(fileURL?.absoluteString, "FileURL")
        guard let content else { return }
        coder.write(content.checksum, "Checksum")
        coder.encode(content.size, forKey: "Size")
        guard let origin = content.origin else { return }
        coder.write(origin.recordID, "Record")
        coder.write(origin.key, "Key")
        coder.encode(origin.scope, forKey: "Scope")
    }

    /// Nil where the archive holds no asset. A fetched file may be gone by now.
    public convenience init?(coder: NSCoder) {
        let file = coder.text("FileURL").flatMap { URL(string: $0) }
        var content = coder.text("Checksum").map { AssetContent(checksum: $0, size: Int64(coder.integer("Size"))) }
        if let id = coder.object(CKRecordID.self, "Record"), let key = coder.text("Key") {
            content?.origin = AssetOrigin(id, key: key, scope: coder.integer("Scope"))
        }
        guard file != nil || content != nil else { return nil }
        self.init(fileURL: file, content: content)
    }
}

/// What the server has of an asset.
struct AssetContent: Sendable, Hashable, Codable {
    /// Names the bytes in the container (`fileChecksum`).
    var checksum: String
    /// In bytes.
    var size: Int64
    /// As the server wrote it; not part of an archive.
    var downloadURL: String?
    /// The field that has it there; nil where that is not known.
    var origin: AssetOrigin?

    private enum CodingKeys: CodingKey { case checksum, size, origin }
}

/// A field of a record that has an asset on the server, or a list with it.
struct AssetOrigin: Sendable, Hashable, Codable {
    private var record: String
    private var zone: String
    private var owner: String
    var key: String
    /// The database, as `CKDatabase.Scope` has it.
    var scope: Int

    init(_ id: CKRecord.ID, key: String, scope: Int) {
        (record, zone, owner) = (id.recordName, id.zoneID.zoneName, id.zoneID.ownerName)
        (self.key, self.scope) = (key, scope)
    }

    var recordID: CKRecord.ID {
        CKRecord.ID(recordName: record, zoneID: CKRecordZone.ID(zoneName: zone, ownerName: owner))
    }
}

extension AssetContent {
    /// Reads an asset's dictionary; nil if the JSON is something else.
    init?(_ json: JSONValue) {
        guard let checksum = json["fileChecksum"]?.string, case .integer(let size)? = json["size"], size >= 0 else {
            return nil
        }
        self.init(checksum: checksum, size: size, downloadURL: json["downloadURL"]?.string)
    }
}

extension RecordValue {
    var assets: [CKAsset] {
        switch self {
        case .asset(let asset): [asset]
        case .list(let members): members.flatMap(\.assets)
        default: []
        }
    }

    /// Whether it is an asset, or has one in it.
    var hasAsset: Bool {
        switch self {
        case .asset: true
        case .list(let members): members.contains(where: \.hasAsset)
        default: false
        }
    }

    /// The same with assets that know the record that they came with.
    func from(_ id: CKRecord.ID, key: String, in scope: CKDatabase.Scope) -> RecordValue {
        guard hasAsset else { return self }
        let origin = AssetOrigin(id, key: key, scope: scope.rawValue)
        return mapAssets { asset, _ in
            var content = asset.content
            content?.origin = origin
            return CKAsset(fileURL: asset.fileURL, content: content)
        }
    }

    /// The same with other assets in place of its own.
    /// - Parameter change: gets each asset with its place among them.
    func mapAssets(_ change: (CKAsset, Int) -> CKAsset) -> RecordValue {
        switch self {
        case .asset(let asset): return .asset(change(asset, 0))
        case .list(let members):
            return .list(
                members.enumerated().map { place, member in
                    if case .asset(let asset) = member { .asset(change(asset, place)) } else { member }
                })
        default: return self
        }
    }
}
