import Foundation
import RecordModel

/// The receipts that the assets of a call's records are saved with.
///
/// A long-lived operation keeps them: with other ones its requests would be other requests, and what was done before
/// would not be known as done.
struct AssetReceipts: Codable, Hashable, Sendable {
    /// An asset that is saved. Another one in the same place has another receipt.
    private struct Place: Codable, Hashable {
        var field: AssetOrigin
        /// Its place in a list.
        var index: Int
        var file: String?
        var checksum: String?

        init(_ asset: CKAsset, _ index: Int, in field: AssetOrigin) {
            (self.field, self.index) = (field, index)
            (file, checksum) = (asset.fileURL?.absoluteString, asset.content?.checksum)
        }
    }

    /// The dictionaries of the assets, as JSON.
    private var dictionaries: [Place: String] = [:]

    /// The receipts that records have got.
    /// - Parameters:
    ///   - before: the same records without them.
    ///   - scope: the database of the records.
    init(of records: [RecordSnapshot], before: [RecordSnapshot], in scope: CKDatabase.Scope) {
        for (record, before) in zip(records, before) {
            for (key, value) in before.values where value.hasAsset {
                let field = AssetOrigin(record.id, key: key, scope: scope.rawValue)
                for (index, pair) in zip(value.assets, record.values[key]?.assets ?? []).enumerated() {
                    guard let json = pair.1.receipt?.serialized() else { continue }
                    dictionaries[Place(pair.0, index, in: field)] = String(decoding: json, as: UTF8.self)
                }
            }
        }
    }

    /// Gives the assets of records their receipts, where there are any.
    func apply(to records: inout [RecordSnapshot], in scope: CKDatabase.Scope) {
        for number in records.indices {
            var changed: [String: RecordValue] = [:]
            for (key, value) in records[number].values where value.hasAsset {
                let field = AssetOrigin(records[number].id, key: key, scope: scope.rawValue)
                changed[key] = value.mapAssets { asset, index in
                    let text = dictionaries[Place(asset, index, in: field)]
                    let receipt = text.flatMap { try? JSONParser.parse(Array($0.utf8)) }
                    return receipt.map { asset.with(receipt: $0) } ?? asset
                }
            }
            records[number].replaceAssets(changed)
        }
    }
}
