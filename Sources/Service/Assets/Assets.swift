import Admission
import Authorization
import Cluster
import Directory
import RaftCore
package import RecordModel
import RecordStore

/// What gives the right to upload files for records of a database, or to save those of records again.
package struct Assets: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// A URL for each token, in their order, by which the file of a record's field is uploaded within 15 minutes.
    /// - Throws: `BAD_REQUEST` for a field that is not of type ASSET, or a file that is too large; `ACCESS_DENIED`
    ///   where the caller could save no record with it; `ZONE_NOT_FOUND`.
    package func uploads(
        _ form: AssetsUploadRequest
    ) async throws(RequestFailure) -> [(recordName: String, fieldName: String, url: String)] {
        let zone = try request.zone(form.zoneID)
        let secret = try await service.requireSecret()
        if !zone.isDefault, try await service.attempts.zoneState(zone, by: request.deadline) == nil {
            throw RequestFailure(.zoneNotFound, "Zone not found: \(zone.name)")
        }
        try await service.usage.requireTransfer(
            for: request.key, of: request.caller.stampName, in: request.directory, by: request.deadline)
        try await request.judge { attempt throws(ServiceError) in
            if let fault = fault(form.tokens, attempt) { throw fault }
        }
        let limits = request.directory.limits(of: request.key.container)
        let expires = try service.trustedNow() + AssetUploadTicket.lifeMilliseconds
        var uploads: [(recordName: String, fieldName: String, url: String)] = []
        for (position, token) in form.tokens.enumerated() {
            let bytesMax = UInt64(limits[token.size == nil ? .assetUploadBytes : .assetUploadBytesMax])
            if let size = token.size, size > bytesMax {
                throw .badRequest(
                    "tokens[\(position)].size: the file has \(size) bytes, at most \(bytesMax) may be uploaded "
                        + "(\(ContainerLimit.assetUploadBytesMax.rawValue))")
            }
            let ticket = AssetUploadTicket(
                zone: zone, recordType: token.recordType, field: token.fieldName,
                uploader: request.caller.stampName, bytesMax: token.size ?? bytesMax, expires: expires)
            uploads.append(
                (
                    token.recordName ?? service.newID().text, token.fieldName,
                    AssetURL.upload(ticket, secret, origin: request.origin)
                ))
        }
        return uploads
    }

    private func fault(_ tokens: [AssetsUploadRequest.Token], _ attempt: Attempt) -> ServiceError? {
        let schema = attempt.schema.schema
        let grows =
            request.key.environment == .development && request.caller.user != nil
            && service.schemaGrowth.rate(of: request.key.container, in: attempt.directory) != nil
        for (position, token) in tokens.enumerated() {
            guard let type = schema.type(named: token.recordType) else {
                if grows { continue }
                return ServiceError(
                    .badRequest, "tokens[\(position)].recordType: record type not found: \(token.recordType)")
            }
            if let field = type.fields.first(where: { $0.name == token.fieldName }) {
                guard field.type.scalar == .asset else {
                    return ServiceError(
                        .badRequest,
                        "tokens[\(position)].fieldName: '\(token.fieldName)' of \(type.name) is of type \(field.type.webName), and has "
                            + "no files")
                }
            } else if !grows {
                return ServiceError(
                    .badRequest, "tokens[\(position)].fieldName: \(type.name) has no field '\(token.fieldName)'")
            }
            if let denial = denial(type) { return denial }
        }
        return nil
    }

    /// Why the caller can save no record of the type, not even one of its own making.
    private func denial(_ type: RecordType) -> ServiceError? {
        // Users' own records are theirs to write, whatever is granted.
        if type.name == RecordType.usersName, request.caller.user != nil { return nil }
        let most = Permissions(of: request.caller, in: type, of: request.key, isCreator: true)
        guard most.isDisjoint(with: [.create, .write]) else { return nil }
        return ServiceError(.accessDenied, "no permission to save records of type \(type.name)")
    }

    /// What became of an item of `rereference`.
    package enum Rereference: Sendable {
        /// The dictionary to save in a field, or an array of them.
        case found(JSONValue)
        case failed(recordName: String, ServiceError)
    }

    /// The dictionaries by which assets of records can be saved in others. The caller may read those records; whether
    /// it may write others is judged when it does.
    package func rereference(_ form: AssetsRereferenceRequest) async throws(RequestFailure) -> [Rereference] {
        _ = try await service.requireSecret()
        let receipts = ShardRead.AssetRendering.receipts(
            zone: try request.zone(form.targetZoneID), user: request.caller.stampName,
            expires: try service.trustedNow() + AssetReceipt.lifeMilliseconds)
        let found = try await read(
            form.assets.map { ($0.recordName, [$0.fieldName]) }, in: try request.zone(form.zoneID), receipts)
        request.auditDenials(
            "assets/rereference",
            count: found.count { $0["serverErrorCode"]?.string == ErrorCode.accessDenied.rawValue })
        return zip(form.assets, found).map { item, record in
            if let text = record["serverErrorCode"]?.string, let code = ErrorCode(rawValue: text) {
                return .failed(
                    recordName: item.recordName, ServiceError(code, record["reason"]?.string ?? "not found"))
            }
            let field = record["fields"]?[item.fieldName]
            guard let value = field?["value"], field?["type"]?.string?.hasPrefix("ASSETID") == true else {
                return .failed(
                    recordName: item.recordName,
                    ServiceError(
                        .notFound, "record '\(item.recordName)' has no asset in the field '\(item.fieldName)'"))
            }
            return .found(value)
        }
    }

    /// Records with some of their fields, as the JSON objects of a lookup.
    private func read(
        _ records: [(name: String, fields: [String])], in zone: ZoneKey, _ assets: ShardRead.AssetRendering
    ) async throws(RequestFailure) -> [JSONValue] {
        let answer = try await request.read(zone) { schema in
            .lookup(
                ShardRead.RecordLookup(
                    zone: zone, schemaVersion: schema.version, caller: request.caller,
                    items: records.map { name, fields in
                        (name, ShardRead.Rendering(desiredKeys: fields, numbersAsStrings: false, assets: assets))
                    }))
        }
        guard let found = try? JSONParser.parse(answer.bytes).array, found.count == records.count else {
            throw RequestFailure(
                .internalError, "a shard's answer cannot be read: no array of \(records.count) records")
        }
        return found
    }

    /// What records have now of the files that a request would keep. Those for which one answer has no room are asked
    /// for in further ones.
    func present(
        _ kept: [KeptAssets], in zone: ZoneKey, _ secret: ClusterSecret
    ) async throws(RequestFailure) -> PresentAssets {
        let receipts = ShardRead.AssetRendering.receipts(zone: zone, user: "", expires: 0)
        var present = PresentAssets()
        var rest = kept
        var room = kept.count
        while !rest.isEmpty {
            let part = rest.prefix(room)
            let found = try await read(part.map { ($0.recordName, $0.fields.keys.sorted()) }, in: zone, receipts)
            var left: [KeptAssets] = []
            for (record, json) in zip(part, found) {
                if json["serverErrorCode"]?.string == ErrorCode.badRequest.rawValue {
                    left.append(record)
                } else {
                    present.take(json, of: record, secret)
                }
            }
            // The first one is too large by itself where none has room; those after it may be small.
            room = left.isEmpty ? room * 2 : max(part.count - left.count, 1)
            if left.count == part.count { left.removeFirst() }
            rest = left + rest.dropFirst(part.count)
        }
        return present
    }
}

/// What an operation sends back as it read it: files that its record is to keep.
struct KeptAssets {
    var recordName: String
    /// The files' checksums, by field.
    var fields: [String: Set<String>]
}

/// What those records have of which a request sends back what it read.
struct PresentAssets {
    /// What a record is like now.
    enum Version: Hashable {
        case stored(tag: String)
        case gone
    }

    /// By the checksum.
    var files: [PresentAsset: AssetReference] = [:]
    /// By the record's name; none for those that the caller may not read.
    var versions: [String: Version] = [:]

    /// Takes over what the JSON of a record tells of what would be kept.
    fileprivate mutating func take(_ json: JSONValue, of record: KeptAssets, _ secret: ClusterSecret) {
        if let tag = json["recordChangeTag"]?.string { versions[record.recordName] = .stored(tag: tag) }
        if json["serverErrorCode"]?.string == ErrorCode.notFound.rawValue { versions[record.recordName] = .gone }
        for (name, checksums) in record.fields {
            guard let value = json["fields"]?[name]?["value"] else { continue }
            for dictionary in value.array ?? [value] {
                guard let checksum = dictionary["fileChecksum"]?.string, checksums.contains(checksum),
                    let receipt = dictionary["receipt"]?.string.flatMap(Base64.decode),
                    let ticket = secret.ticket(receipt, as: AssetReceipt.self)
                else { continue }
                let place = PresentAsset(recordName: record.recordName, field: name, checksum: checksum)
                files[place] = ticket.asset
            }
        }
    }
}

/// A file that a field of a record has, as clients see it.
struct PresentAsset: Hashable {
    var recordName: String
    var field: String
    var checksum: String
}

extension RecordModification {
    /// Makes the dictionaries of assets for the answer; without URLs for who may not read the record.
    package func assetPresenter(in zone: ZoneID, isReadable: Bool) -> AssetPresenter? {
        guard let secret = service.node.directory.snapshot.secret else { return nil }
        let zone = ZoneKey(database: request.key, name: zone.name)
        let expires = service.now + AssetDownloadTicket.lifeMilliseconds
        return secret.presenter(
            of: zone, as: isReadable ? .links(origin: request.origin, expires: expires) : .checksums)
    }
}

extension DatabaseRequest {
    /// How the records of an answer are rendered, and what becomes of their assets: who may read a record gets URLs.
    func rendering(desiredKeys: [String]?, numbersAsStrings: Bool) -> ShardRead.Rendering {
        var rendering = ShardRead.Rendering(
            desiredKeys: desiredKeys, numbersAsStrings: numbersAsStrings,
            assets: .links(origin: origin, expires: service.now + AssetDownloadTicket.lifeMilliseconds))
        rendering.leavesSealed = requester.admitted.isActing
        return rendering
    }

    /// Tells the audit log of what was refused for lack of permission.
    func auditDenials(_ action: String, count: Int = 1) {
        guard count > 0 else { return }
        service.audit.refused(
            requester.origin(at: service.now), in: key.container, action: action, subject: subject, count: count)
    }
}
