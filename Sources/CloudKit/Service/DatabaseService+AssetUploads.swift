import Foundation
import RecordModel
import ServiceClient

/// The files that a call has to send before its records can be saved. It does no networking.
struct AssetUploadPlan: Sendable {
    /// One file.
    struct Upload: Sendable {
        /// The place of its record among those to save.
        var record: Int
        var key: String
        /// Its place in a list; 0 for a single asset.
        var index: Int
        var path: String
        /// When the call began, in bytes.
        var size: Int64
    }

    private(set) var uploads: [Upload] = []
    /// Why records cannot be saved, by their place.
    private(set) var failures: [Int: CKError] = [:]

    /// Adds what a record needs.
    /// - Parameters:
    ///   - keys: the keys that are sent.
    ///   - isNew: whether the record is created, so that there is no asset to keep.
    mutating func add(_ record: RecordSnapshot, at place: Int, keys: [String], isNew: Bool) {
        var wanted: [Upload] = []
        do throws(CKError) {
            for key in keys {
                guard let value = record.values[key], value.hasAsset else { continue }
                let kept =
                    isNew ? [] : Set((record.base?.values[key]?.assets ?? []).compactMap { $0.content?.checksum })
                for (index, asset) in value.assets.enumerated() {
                    if let content = asset.content, kept.contains(content.checksum) { continue }
                    guard let file = asset.fileURL, file.isFileURL else { throw .noFile(key, record.id) }
                    let size = try Self.size(of: file.path)
                    wanted.append(Upload(record: place, key: key, index: index, path: file.path, size: size))
                }
            }
            uploads += wanted
        } catch {
            failures[place] = error
        }
    }

    private static func size(of path: String) throws(CKError) -> Int64 {
        return try Result { () throws(AssetFileError) in try AssetSource(path: path).size }
            .mapError { ErrorMapping.local($0) }.get()
    }
}

extension CKError {
    fileprivate static func noFile(_ key: String, _ id: CKRecord.ID) -> CKError {
        CKError(
            .assetFileNotFound,
            reason:
                "the asset \"\(key)\" of the record \"\(id.recordName)\" has no file on this machine, and is not the one "
                + "that the record has on the server: fetch it first")
    }
}

extension DatabaseService {
    /// How many files are sent or received at a time.
    static let transfersMax = 4

    /// Sends files, a few at a time.
    /// - Parameter records: those to save. Their assets become those that were uploaded.
    /// - Returns: why records cannot be saved, by their place.
    /// - Throws: what concerns the whole call, such as a cluster that cannot be reached.
    func upload(
        _ plan: AssetUploadPlan, for records: inout [RecordSnapshot], progress: TransferProgress?
    ) async throws(CKError) -> [Int: CKError] {
        var failures = plan.failures
        let uploads = plan.uploads.filter { failures[$0.record] == nil }
        for upload in uploads { progress?.expect(upload.size, of: upload.record) }
        var receipts: [Int: [String: [Int: JSONValue]]] = [:]
        for (number, result) in try await results(of: uploads, records, progress) {
            let upload = uploads[number]
            switch result {
            case .success(let receipt):
                receipts[upload.record, default: [:]][upload.key, default: [:]][upload.index] = receipt
            case .failure(let error):
                if error.isOfWholeRequest { throw error }
                failures[upload.record] = failures[upload.record] ?? error
            }
        }
        for (place, keys) in receipts where failures[place] == nil {
            var changed: [String: RecordValue] = [:]
            for (key, receipts) in keys {
                changed[key] = records[place].values[key]?.mapAssets { asset, index in
                    receipts[index].map { CKAsset(fileURL: asset.fileURL, content: AssetContent($0), receipt: $0) }
                        ?? asset
                }
            }
            records[place].replaceAssets(changed)
        }
        return failures
    }

    /// The dictionary of each upload, or its error, by its number.
    private func results(
        of uploads: [AssetUploadPlan.Upload], _ records: [RecordSnapshot], _ progress: TransferProgress?
    ) async throws(CKError) -> [(Int, Result<JSONValue, CKError>)] {
        var tickets: [UploadTicket] = []
        var failed: [(Int, Result<JSONValue, CKError>)] = []
        for (zone, numbers) in uploads.indices.grouped(by: { records[uploads[$0].record].id.zoneID }) {
            for first in stride(from: 0, to: numbers.count, by: Limits.operationsMax) {
                let part = numbers[first..<min(first + Limits.operationsMax, numbers.count)]
                let urls = try await eachURL(part.map { (uploads[$0], records[uploads[$0].record]) }, in: zone)
                for (number, url) in zip(part, urls) {
                    switch url {
                    case .success(let url): tickets.append(UploadTicket(number: number, url: url))
                    case .failure(let error): failed.append((number, .failure(error)))
                    }
                }
            }
        }
        let sent = await inParallel(tickets) { ticket in
            let upload = uploads[ticket.number]
            return (ticket.number, await result(of: upload, records[upload.record], ticket, progress))
        }
        return failed + sent
    }

    private struct UploadTicket: Sendable {
        var number: Int
        var url: String
    }

    /// A URL for each upload, or its error. The server refuses a request for one upload that is wrong in it: halves
    /// tell which.
    private func eachURL(
        _ uploads: [(AssetUploadPlan.Upload, RecordSnapshot)], in zone: CKRecordZone.ID
    ) async throws(CKError) -> [Result<String, CKError>] {
        do throws(CKError) {
            return try await uploadURLs(uploads, in: zone)
        } catch {
            if error.isOfWholeRequest { throw error }
            guard uploads.count > 1, error.code != .zoneNotFound else { return uploads.map { _ in .failure(error) } }
            let middle = uploads.count / 2
            return try await eachURL(Array(uploads[..<middle]), in: zone)
                + eachURL(Array(uploads[middle...]), in: zone)
        }
    }

    private func uploadURLs(
        _ uploads: [(AssetUploadPlan.Upload, RecordSnapshot)], in zone: CKRecordZone.ID
    ) async throws(CKError) -> [Result<String, CKError>] {
        try checkCancellation()
        let answer = try await read("assets/upload") { writer in
            writer.key("zoneID")
            writer.zoneID(of: zone)
            writer.key("tokens")
            writer.array { writer in
                for (upload, record) in uploads {
                    writer.beginObject()
                    writer.member("recordName", record.id.recordName)
                    writer.member("recordType", record.type)
                    writer.member("fieldName", upload.key)
                    // Asks for more than what a browser may send.
                    writer.member("size", integer: upload.size)
                    writer.endObject()
                }
            }
        }
        let tokens = try members("tokens", of: answer)
        guard tokens.count == uploads.count else { throw .unreadable("token for each asset") }
        let mapping = mapping
        return tokens.map { token in
            if let error = mapping.item(token) { return .failure(error) }
            return token["url"]?.string.map { .success($0) } ?? .failure(.unreadable("URL to upload to"))
        }
    }

    private func result(
        of upload: AssetUploadPlan.Upload, _ record: RecordSnapshot, _ ticket: UploadTicket,
        _ progress: TransferProgress?
    ) async -> Result<JSONValue, CKError> {
        var url = ticket.url
        var renewals = 0
        while true {
            do {
                let (transfer, source) = (try transfer(), try AssetSource(path: upload.path))
                return .success(
                    try await transfer.upload(source, to: url) { bytes in
                        progress?.moved(bytes, file: ticket.number, of: upload.record)
                    })
            } catch let failure as ServiceFailure where failure.status == 410 && renewals < 2 {
                // The files before it took longer than a URL is good for.
                renewals += 1
                do throws(CKError) {
                    url = try await uploadURLs([(upload, record)], in: record.id.zoneID)[0].get()
                } catch {
                    return .failure(error)
                }
            } catch {
                return .failure(mapping.error(error))
            }
        }
    }

    /// What moves files, with the time that is left.
    func transfer() throws(CKError) -> AssetTransfer {
        try checkCancellation()
        let (session, configuration) = try account.session()
        return session.assetTransfer(
            patience: times.request ?? configuration.patience, limit: try timeLeft(configuration))
    }

    /// Does some work for each item, a few at a time, and gives the results in any order.
    func inParallel<Item: Sendable, Value: Sendable>(
        _ items: [Item], _ work: @escaping @Sendable (Item) async -> Value
    ) async -> [Value] {
        await withTaskGroup(of: Value.self) { group in
            var rest = items[...]
            for _ in 0..<Self.transfersMax {
                if let item = rest.popFirst() { group.addTask { await work(item) } }
            }
            var values: [Value] = []
            while let value = await group.next() {
                values.append(value)
                if let item = rest.popFirst() { group.addTask { await work(item) } }
            }
            return values
        }
    }
}
