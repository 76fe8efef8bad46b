import Foundation
import RecordModel
import ServiceClient

/// Fetches the files of records' assets, a few at a time, unless the call leaves them out.
struct AssetFetcher: Sendable {
    let service: DatabaseService
    /// The fields of records that are fetched again.
    var desiredKeys: [String]?
    var progress: TransferProgress?

    /// Fetches the files of records that were read.
    ///
    /// A URL that has expired is no failure: the record is fetched again, and takes the place of the first.
    /// - Returns: the results in their order; a record of which a file could not be fetched has that error.
    func withFiles(_ results: [RecordResult]) async -> [RecordResult] {
        guard service.fetchesFiles else { return results }
        var results = results
        var jobs = results.indices.flatMap { Self.files(of: results[$0].1, at: $0) }
        var attempt = 0
        while !jobs.isEmpty {
            defer { attempt += 1 }
            for job in jobs { progress?.expect(job.content.size, of: job.place.record) }
            let outcomes = await service.inParallel(jobs) { job in (job, await fetch(job)) }
            let expired = Set(
                outcomes.compactMap { job, outcome in outcome.isExpired && attempt < 2 ? job.place.record : nil })
            var files: [AssetPlace: StagedFile] = [:]
            for (job, outcome) in outcomes where !expired.contains(job.place.record) {
                switch outcome {
                case .success(let file): files[job.place] = file
                case .failure(let error): results[job.place.record].1 = .failure(service.mapping.asset(error))
                }
            }
            for record in Set(files.keys.map(\.record)) {
                (try? results[record].1.get())?.update { state in
                    state.replaceAssets { asset, key, index in
                        files[AssetPlace(record: record, key: key, index: index)]
                            .map { CKAsset(fileURL: nil, content: asset.content, staged: $0) }
                    }
                }
            }
            jobs = []
            for place in expired.sorted() {
                results[place].1 = await again(results[place].0)
                jobs += Self.files(of: results[place].1, at: place)
            }
        }
        return results
    }

    private struct FileJob: Sendable {
        var place: AssetPlace
        var content: AssetContent
        var number: Int
    }

    private static func files(of result: Result<CKRecord, any Error>, at place: Int) -> [FileJob] {
        guard case .success(let record) = result else { return [] }
        var jobs: [FileJob] = []
        for (key, value) in record.current.values.filter({ $0.value.hasAsset }).sorted(by: { $0.key < $1.key }) {
            for (index, asset) in value.assets.enumerated() {
                guard asset.fileURL == nil, let content = asset.content else { continue }
                let place = AssetPlace(record: place, key: key, index: index)
                jobs.append(FileJob(place: place, content: content, number: jobs.count))
            }
        }
        return jobs
    }

    private func fetch(_ job: FileJob) async -> Result<StagedFile, any Error> {
        do {
            guard let url = job.content.downloadURL else {
                throw CKError(.assetNotAvailable, reason: "the server names no URL for the asset \"\(job.place.key)\"")
            }
            let sink = try AssetStaging.shared.newFile()
            try await service.transfer().download(url, size: job.content.size, to: sink) { bytes in
                progress?.moved(bytes, file: job.number, of: job.place.record)
            }
            return .success(StagedFile(url: URL(fileURLWithPath: sink.path), staging: .shared))
        } catch {
            return .failure(error)
        }
    }

    private func again(_ id: CKRecord.ID) async -> Result<CKRecord, any Error> {
        await outcome { () async throws(CKError) in try await service.lookedUp(id, desiredKeys: desiredKeys) }
    }

    /// A page of a zone's changes with the files of its records.
    /// - Throws: what may pass, so that the page is fetched again: an app that has gone on to the next token would miss
    ///   the record.
    func withFiles(_ page: ZoneChangesPage) async throws(CKError) -> ZoneChangesPage {
        guard service.fetchesFiles else { return page }
        var places: [Int] = []
        var results: [RecordResult] = []
        for (place, change) in page.changes.enumerated() {
            guard case .changed(let id, .success(let record)) = change else { continue }
            places.append(place)
            results.append((id, .success(record)))
        }
        var page = page
        for (place, result) in zip(places, await withFiles(results)) {
            if case .failure(let error as CKError) = result.1, error.code != .assetNotAvailable,
                error.code != .unknownItem
            {
                throw error
            }
            page.changes[place] = .changed(result.0, result.1)
        }
        return page
    }
}

extension DatabaseService {
    /// How many files are sent or received at a time.
    static let transfersMax = 4

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

extension Result<StagedFile, any Error> {
    fileprivate var isExpired: Bool {
        if case .failure(let error as ServiceFailure) = self { error.status == 410 } else { false }
    }
}

extension ErrorMapping {
    /// The error of a file that could not be fetched.
    func asset(_ error: any Error) -> CKError {
        guard let failure = error as? ServiceFailure, [403, 404, 410].contains(failure.status) else {
            return self.error(error)
        }
        let mapped = self.error(failure)
        if failure.status == 403 { return mapped }
        return CKError(
            .assetNotAvailable, reason: "the server does not have the asset's file: \(failure.reason)",
            details: details(of: failure))
    }

    static func local(_ error: AssetFileError) -> CKError {
        switch error {
        case .notFound: return CKError(.assetFileNotFound, reason: error.description)
        case .modified: return CKError(.assetFileModified, reason: error.description)
        case .notWritten(_, let code):
            var details = CKErrorDetails()
            details.underlying = NSError(domain: NSPOSIXErrorDomain, code: Int(code))
            return CKError(.internalError, reason: error.description, details: details)
        }
    }
}
