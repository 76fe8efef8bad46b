import Foundation
import RecordModel
import ServiceClient
import Synchronization

/// Gets the receipts by which a call's records are saved with their assets: sends files, and asks for those of assets
/// that other records have.
struct AssetSender: Sendable {
    let service: DatabaseService
    let progress: TransferProgress?

    /// Does what a plan says, a few files at a time.
    /// - Parameter records: those to save. Their assets get receipts.
    /// - Returns: why records cannot be saved, by their place.
    /// - Throws: what concerns the whole call, such as a cluster that cannot be reached.
    func send(_ plan: AssetUploadPlan, for records: inout [RecordSnapshot]) async throws(CKError) -> [Int: CKError] {
        var plan = plan
        var receipts = try await copied(&plan, records)
        var failures = plan.failures
        let uploads = plan.uploads.filter { failures[$0.place.record] == nil }
        for upload in uploads { progress?.expect(upload.size, of: upload.place.record) }
        for (number, result) in try await results(of: uploads, records) {
            let place = uploads[number].place
            switch result {
            case .success(let receipt): receipts[place] = receipt
            case .failure(let error):
                if error.isOfWholeRequest { throw error }
                failures[place.record] = failures[place.record] ?? error
            }
        }
        for record in records.indices where failures[record] == nil {
            records[record].replaceAssets { asset, key, index in
                receipts[AssetPlace(record: record, key: key, index: index)].map { asset.with(receipt: $0) }
            }
        }
        return failures
    }

    // MARK: Assets of other records

    /// The receipts for assets that other records have. What cannot be had so is sent where its file is here.
    private func copied(
        _ plan: inout AssetUploadPlan, _ records: [RecordSnapshot]
    ) async throws(CKError) -> [AssetPlace: JSONValue] {
        var receipts: [AssetPlace: JSONValue] = [:]
        let copies = plan.copies.filter { plan.failures[$0.place.record] == nil }
        for (target, copies) in copies.grouped(by: { records[$0.place.record].id.zoneID }) {
            for (source, copies) in copies.grouped(by: { $0.origin.recordID.zoneID }) {
                let origins = copies.grouped(by: \.origin)
                let found = try await found(origins.map(\.key), in: source, for: target)
                for (origin, result) in zip(origins, found) {
                    for copy in origin.members {
                        switch result.flatMap({ copy.receipt(in: $0) }) {
                        case .success(let receipt): receipts[copy.place] = receipt
                        case .failure(let error): plan.replace(copy, after: error, in: records[copy.place.record].id)
                        }
                    }
                }
            }
        }
        return receipts
    }

    /// The dictionaries of fields' assets with receipts for another zone: one, or an array for a list.
    private func found(
        _ origins: [AssetOrigin], in source: CKRecordZone.ID, for target: CKRecordZone.ID
    ) async throws(CKError) -> [Result<JSONValue, CKError>] {
        var found: [Result<JSONValue, CKError>] = []
        let mapping = service.mapping
        for first in stride(from: 0, to: origins.count, by: Limits.operationsMax) {
            let part = origins[first..<min(first + Limits.operationsMax, origins.count)]
            do throws(CKError) {
                try checkCancellation()
                let answer = try await service.read("assets/rereference") { writer in
                    writer.member("zoneID", source)
                    writer.member("targetZoneID", target)
                    writer.member("assets", each: part) { writer, origin in
                        writer.object { writer in
                            writer.member("recordName", origin.recordID.recordName)
                            writer.member("fieldName", origin.key)
                        }
                    }
                }
                let items = try service.members("assets", of: answer, count: part.count, "asset for each field")
                found += items.map { item in mapping.item(item).map { .failure($0) } ?? .success(item) }
            } catch {
                if error.isOfWholeRequest { throw error }
                found += part.map { _ in .failure(error) }
            }
        }
        return found
    }

    // MARK: Files

    /// The dictionary of each upload, or its error, by its number.
    private func results(
        of uploads: [AssetUploadPlan.Upload], _ records: [RecordSnapshot]
    ) async throws(CKError) -> [(Int, Result<JSONValue, CKError>)] {
        var tickets: [(number: Int, url: String)] = []
        var failed: [(Int, Result<JSONValue, CKError>)] = []
        for (zone, numbers) in uploads.indices.grouped(by: { records[uploads[$0].place.record].id.zoneID }) {
            for first in stride(from: 0, to: numbers.count, by: Limits.operationsMax) {
                let part = numbers[first..<min(first + Limits.operationsMax, numbers.count)]
                let urls = try await eachURL(part.map { (uploads[$0], records[uploads[$0].place.record]) }, in: zone)
                for (number, url) in zip(part, urls) {
                    switch url {
                    case .success(let url): tickets.append((number, url))
                    case .failure(let error): failed.append((number, .failure(error)))
                    }
                }
            }
        }
        let sent = await service.inParallel(tickets) { ticket in
            let upload = uploads[ticket.number]
            return (
                ticket.number, await result(of: upload, records[upload.place.record], ticket.number, ticket.url)
            )
        }
        return failed + sent
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
        let answer = try await service.read("assets/upload") { writer in
            writer.member("zoneID", zone)
            writer.member("tokens", each: uploads) { writer, item in
                let (upload, record) = item
                writer.object { writer in
                    writer.member("recordName", record.id.recordName)
                    writer.member("recordType", record.type)
                    writer.member("fieldName", upload.place.key)
                    // Asks for more than what a browser may send.
                    writer.member("size", integer: upload.size)
                }
            }
        }
        let tokens = try service.members("tokens", of: answer, count: uploads.count, "token for each asset")
        let mapping = service.mapping
        return tokens.map { token in
            if let error = mapping.item(token) { return .failure(error) }
            return token["url"]?.string.map { .success($0) } ?? .failure(.unreadable("URL to upload to"))
        }
    }

    private func result(
        of upload: AssetUploadPlan.Upload, _ record: RecordSnapshot, _ number: Int, _ url: String
    ) async -> Result<JSONValue, CKError> {
        var url = url
        var renewals = 0
        while true {
            do {
                let (transfer, source) = (try service.transfer(), try AssetSource(path: upload.path))
                return .success(
                    try await transfer.upload(source, to: url) { bytes in
                        progress?.moved(bytes, file: number, of: upload.place.record)
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
                return .failure(service.mapping.error(error))
            }
        }
    }
}

/// How far the files of some records have come, by the bytes of each record's files together. It tells each percent
/// once, and less than 1: a record is done when it is saved or fetched.
final class TransferProgress: Sendable {
    private struct Item {
        var total: Int64 = 0
        /// The most bytes of each file that have moved: an attempt that begins again is no step back.
        var moved: [Int: Int64] = [:]
        var toldPercent = 0
    }

    private let items = Mutex<[Int: Item]>([:])
    private let tell: @Sendable (Int, Double) -> Void

    /// - Parameter tell: gets an item's number and the part that is done, not one after the other.
    init(_ tell: @escaping @Sendable (Int, Double) -> Void) { self.tell = tell }

    func expect(_ bytes: Int64, of item: Int) { items.withLock { $0[item, default: Item()].total += bytes } }

    /// So many bytes of a file have moved.
    func moved(_ bytes: Int64, file: Int, of number: Int) {
        let percent = items.withLock { items -> Int? in
            guard var item = items[number], item.total > 0 else { return nil }
            item.moved[file] = max(item.moved[file] ?? 0, bytes)
            let percent = min(99, Int(item.moved.values.reduce(0, +) * 100 / item.total))
            defer { items[number] = item }
            guard percent > item.toldPercent else { return nil }
            item.toldPercent = percent
            return percent
        }
        if let percent { tell(number, Double(percent) / 100) }
    }
}

/// Where an asset is in a call.
struct AssetPlace: Hashable, Sendable {
    /// The place of its record among those of the call.
    var record: Int
    var key: String
    /// Its place in a list; 0 for a single asset.
    var index: Int
}

/// What a call has to do before its records can be saved with their assets: the files to send, and the assets that
/// other records have. It does no networking.
struct AssetUploadPlan: Sendable {
    struct Upload: Sendable {
        var place: AssetPlace
        var path: String
        /// When the call began, in bytes.
        var size: Int64
    }

    /// One asset that another field has on the server.
    struct Copy: Sendable {
        var place: AssetPlace
        var origin: AssetOrigin
        var checksum: String
        /// The same on this machine; nil where it is not here.
        var file: URL?
    }

    let scope: CKDatabase.Scope
    private(set) var uploads: [Upload] = []
    private(set) var copies: [Copy] = []
    /// Why records cannot be saved, by their place.
    private(set) var failures: [Int: CKError] = [:]

    init(scope: CKDatabase.Scope) { self.scope = scope }

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
                    let place = AssetPlace(record: number, key: key, index: index)
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

    private static func upload(_ file: URL?, at place: AssetPlace, of id: CKRecord.ID) throws(CKError) -> Upload {
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
                "the asset \"\(key)\" of the record \"\(id.recordName)\" has no file on this machine, and no record "
                + "that it was fetched from has it on the server: fetch it again")
    }
}
