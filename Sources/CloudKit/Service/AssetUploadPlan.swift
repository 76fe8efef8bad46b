import Foundation
import RecordModel
import ServiceClient

/// What a call has to do before its records can be saved with their assets: the files to send, and the assets that
/// other records have. It does no networking.
struct AssetUploadPlan: Sendable {
    /// Where an asset is to be.
    struct Place: Sendable {
        /// The place of its record among those to save.
        var record: Int
        var key: String
        /// Its place in a list; 0 for a single asset.
        var index: Int
    }

    /// One file to send.
    struct Upload: Sendable {
        var place: Place
        var path: String
        /// When the call began, in bytes.
        var size: Int64
    }

    /// One asset that another field has on the server.
    struct Copy: Sendable {
        var place: Place
        var origin: AssetOrigin
        var checksum: String
        /// The same on this machine; nil where it is not here.
        var file: URL?
    }

    /// The database of the records.
    let scope: CKDatabase.Scope
    private(set) var uploads: [Upload] = []
    private(set) var copies: [Copy] = []
    /// Why records cannot be saved, by their place.
    private(set) var failures: [Int: CKError] = [:]

    init(scope: CKDatabase.Scope) { self.scope = scope }

    /// Whether there is nothing to do.
    var isEmpty: Bool { uploads.isEmpty && copies.isEmpty }

    /// Adds what a record needs. Assets with a receipt need nothing.
    /// - Parameters:
    ///   - keys: the keys that are sent.
    ///   - isUpdate: whether it is saved only over the version that it was fetched as, so that what that has is kept.
    mutating func add(_ record: RecordSnapshot, at number: Int, keys: [String], isUpdate: Bool) {
        var files: [Upload] = []
        var copies: [Copy] = []
        do throws(CKError) {
            for key in keys {
                guard let value = record.values[key], value.hasAsset else { continue }
                let known = isUpdate ? record.base?.values[key]?.assets : nil
                let kept = Set((known ?? []).compactMap { $0.content?.checksum })
                for (index, asset) in value.assets.enumerated() where asset.receipt == nil {
                    if let content = asset.content, kept.contains(content.checksum) { continue }
                    let place = Place(record: number, key: key, index: index)
                    if let content = asset.content, let origin = content.origin, origin.scope == scope.rawValue {
                        copies.append(
                            Copy(place: place, origin: origin, checksum: content.checksum, file: asset.fileURL))
                    } else {
                        files.append(try Self.upload(asset.fileURL, at: place, of: record.id))
                    }
                }
            }
            uploads += files
            self.copies += copies
        } catch {
            failures[number] = error
        }
    }

    /// Sends the file of an asset that cannot be had from its origin.
    /// - Parameters:
    ///   - error: why not. What may pass is the record's error where there is no file.
    ///   - id: the record to save.
    mutating func replace(_ copy: Copy, after error: CKError, in id: CKRecord.ID) {
        do throws(CKError) {
            uploads.append(try Self.upload(copy.file, at: copy.place, of: id))
        } catch let missing {
            let isPassing = [.networkFailure, .serviceUnavailable, .requestRateLimited].contains(error.code)
            failures[copy.place.record] = failures[copy.place.record] ?? (isPassing ? error : missing)
        }
    }

    private static func upload(_ file: URL?, at place: Place, of id: CKRecord.ID) throws(CKError) -> Upload {
        guard let file, file.isFileURL else { throw .noFile(place.key, id) }
        let size = try Result { () throws(AssetFileError) in try AssetSource(path: file.path).size }
            .mapError { ErrorMapping.local($0) }.get()
        return Upload(place: place, path: file.path, size: size)
    }
}

extension AssetUploadPlan.Copy {
    /// The dictionary of the asset among those of its field.
    func receipt(in found: JSONValue) -> Result<JSONValue, CKError> {
        let dictionary = (found.array ?? [found]).first { $0["fileChecksum"]?.string == checksum }
        guard let dictionary, dictionary["receipt"] != nil else {
            return .failure(CKError(.unknownItem, reason: "the record has another asset by now"))
        }
        return .success(dictionary)
    }
}

extension CKError {
    fileprivate static func noFile(_ key: String, _ id: CKRecord.ID) -> CKError {
        CKError(
            .assetFileNotFound,
            reason:
                "the asset \"\(key)\" of the record \"\(id.recordName)\" has no file on this machine, and no record that it "
                + "was fetched from has it on the server: fetch it again")
    }
}
