import RecordModel
import Service

/// `POST records/modify`, `records/lookup`, `records/query` and `records/versions`.
struct RecordRoutes {
    let call: DatabaseCall

    /// Up to 200 operations on records of one zone.
    func modify() async throws(RequestFailure) -> Reply {
        let form = try call.form(ModifyRecordsRequest.self)
        call.note.about(
            zone: form.zoneID.name, recordType: form.operations.first { $0.recordType != nil }?.recordType,
            records: form.operations.count)
        let modification = RecordModification(call.request)
        let result = try await modification.run(form)
        lazy var links = modification.assetPresenter(in: form.zoneID, isReadable: true)
        lazy var checksums = modification.assetPresenter(in: form.zoneID, isReadable: false)
        var records = JSONWriter(capacity: 512 * form.operations.count)
        records.array { writer in
            for (item, operation) in zip(result.items, form.operations) {
                let assets: AssetPresenter? =
                    switch item.outcome {
                    case .saved(let record, let isReadable) where !record.fields.assets.isEmpty:
                        isReadable ? links : checksums
                    case .failed(_, let record?) where !record.fields.assets.isEmpty: links
                    case .saved, .deleted, .failed: nil
                    }
                write(item, operation, form, assets, to: &writer)
            }
        }
        func members(_ reply: inout JSONWriter) {
            reply.raw("records", records.bytes)
            if let token = result.syncToken { reply.member("syncToken", token) }
        }
        var reply =
            result.isAtomicFailure
            ? Reply(Self.atomicFailure, uuid: call.request.requester.requestID) { members(&$0) }
            : Reply { members(&$0) }
        reply.isAllRefused = result.items.allSatisfy { if case .failed = $0.outcome { true } else { false } }
        return reply
    }

    private static let atomicFailure = ServiceError(
        .atomicError, "an operation of the atomic batch failed, so nothing was saved; see records")

    private func write(
        _ item: (recordName: String, outcome: RecordModification.Outcome), _ operation: RecordOperation,
        _ form: ModifyRecordsRequest, _ assets: AssetPresenter?, to writer: inout JSONWriter
    ) {
        let numbersAsStrings = operation.numbersAsStrings ?? form.numbersAsStrings
        switch item.outcome {
        case .saved(let record, _):
            writer.record(
                record, desiredKeys: operation.desiredKeys ?? form.desiredKeys, numbersAsStrings: numbersAsStrings,
                assets: assets)
        case .deleted: writer.tombstone(recordName: item.recordName)
        case .failed(let error, let serverRecord):
            call.note.itemFailed(error)
            writer.recordError(
                recordName: item.recordName, error, serverRecord: serverRecord, numbersAsStrings: numbersAsStrings,
                assets: assets)
        }
    }

    /// Up to 200 records of one zone by name.
    func lookUp() async throws(RequestFailure) -> Reply {
        let form = try call.form(LookupRecordsRequest.self)
        call.note.about(zone: form.zoneID.name, records: form.records.count)
        return reply(try await RecordQueries(call.request).lookUp(form))
    }

    /// One page of the records of a type for which all filters hold.
    func query() async throws(RequestFailure) -> Reply {
        let form = try call.form(QueryRecordsRequest.self)
        call.note.about(zone: form.zoneID.name, recordType: form.query.recordType)
        let page = try await RecordQueries(call.request).query(form)
        call.note.note { $0.records = page.count }
        return reply(page)
    }

    /// Earlier versions of one record, the newest first.
    func versions() async throws(RequestFailure) -> Reply {
        let form = try call.form(RecordVersionsRequest.self)
        call.note.about(zone: form.zoneID.name, records: 1)
        let page = try await RecordQueries(call.request).versions(form)
        return Reply { writer in
            writer.raw("versions", page.versions)
            writer.member("moreComing", page.moreComing)
        }
    }

    private func reply(_ page: RecordQueries.Page) -> Reply {
        Reply { writer in
            writer.raw("records", page.records)
            if let marker = page.continuationMarker { writer.member("continuationMarker", marker) }
            if let token = page.syncToken { writer.member("syncToken", token) }
            if let explanation = page.explanation { writer.raw("explanation", explanation) }
        }
    }
}

/// `POST assets/upload` and `assets/rereference`: what gives the right to send files, and to save them again.
struct AssetRoutes {
    let call: DatabaseCall

    private var assets: Assets { Assets(call.request) }

    /// Up to 200 URLs to upload files to.
    func upload() async throws(RequestFailure) -> Reply {
        let uploads = try await assets.uploads(try call.form(AssetsUploadRequest.self))
        return Reply { writer in
            writer.list("tokens", uploads) { upload, writer in
                writer.member("recordName", upload.recordName)
                writer.member("fieldName", upload.fieldName)
                writer.member("url", upload.url)
            }
        }
    }

    /// The dictionaries by which the assets of up to 200 records' fields can be saved in other records.
    func rereference() async throws(RequestFailure) -> Reply {
        let items = try await assets.rereference(try call.form(AssetsRereferenceRequest.self))
        return Reply { writer in
            writer.array("assets") { writer in
                for item in items {
                    switch item {
                    case .found(let dictionary): writer.value(dictionary)
                    case .failed(let recordName, let error): writer.recordError(recordName: recordName, error)
                    }
                }
            }
        }
    }
}
