import Admission
import Authorization
package import Cluster
package import Directory
import PeerTransport
import RaftCore
package import RecordModel
import Synchronization

/// The bytes of assets on their way in and out, by the URLs that this cluster signed. A caller with such a URL needs no
/// other credential.
package struct AssetTransfers: Sendable {
    private let service: RecordService

    package init(_ service: RecordService) { self.service = service }

    /// What a URL is for.
    /// - Parameter address: the client's, whose forged URLs are counted.
    /// - Throws: `ACCESS_DENIED` where this cluster did not make it, `THROTTLED` where the address sent too many such,
    ///   `BAD_REQUEST` with `expiredURL` once its time is over, `TRY_AGAIN_LATER` where the node's clock cannot tell
    ///   that.
    package func open<Ticket: AssetTicket>(
        _ bytes: [UInt8]?, as _: Ticket.Type, address: String?
    ) async throws(RequestFailure) -> Ticket {
        guard let ticket = try await service.requireSecret().ticket(bytes, as: Ticket.self) else {
            try service.failedAuthentications.count(of: address)
            throw .accessDenied("the URL is not one that this cluster gave, or was changed")
        }
        return try service.judgedByClock { now throws(RequestFailure) in
            if now < ticket.expires { return ticket }
            throw .badRequest(
                Ticket.self == AssetUploadTicket.self
                    ? "the upload URL has expired: ask assets/upload for another"
                    : "the download URL has expired: read the record again, which has another",
                details: .expiredURL)
        }
    }

    /// Begins an upload, whose container's rate it spends.
    /// - Throws: what keeps the upload from beginning; nothing of it is left then.
    package func receive(
        _ ticket: AssetUploadTicket, _ notes: inout RequestNotes
    ) async throws(RequestFailure) -> IncomingAsset {
        let database = ticket.zone.database
        try await service.cluster.requireDirectory()
        try await requireContainer(database.container)
        let directory = service.node.directory.snapshot
        let rate = RateKey(container: database.container, kind: .requests)
        try await service.peerExchange.rates.spend(rate, in: directory, &notes)
        try await service.usage.requireTransfer(
            for: database, of: ticket.uploader, in: directory, by: service.node.deadline())
        let limit = directory.limits(of: database.container)[.unsavedAssetBytes]
        let owner = UnsavedUploads.Owner(container: database.container, user: ticket.uploader)
        try service.unsavedUploads.begin(owner, limit: limit, now: service.now)
        do throws(AssetError) {
            let group = service.node.map.group(of: ticket.zone)
            let upload = try await service.node.receiveAsset(limit: ticket.bytesMax, for: group)
            return IncomingAsset(service, ticket, upload, owner: owner, unsavedBytesMax: limit)
        } catch {
            service.unsavedUploads.end(owner, size: 0)
            throw RequestFailure(error)
        }
    }

    /// The bytes of a range of a file. They are counted as they are taken (`carried`).
    /// - Throws: `NOT_FOUND` where the file, or its container, is not there any more.
    package func read(
        _ ticket: AssetDownloadTicket, range: Range<UInt64>
    ) async throws(RequestFailure) -> AssetBytes {
        try await requireContainer(ticket.zone.database.container)
        do throws(AssetError) {
            return try await service.node.readAsset(
                ticket.asset, in: service.node.map.group(of: ticket.zone), range: range)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// - Throws: `NOT_FOUND` where there is no such container, or it was deleted.
    private func requireContainer(_ container: String) async throws(RequestFailure) {
        if service.directory.containers[container] != nil { return }
        try await service.cluster.refreshDirectory()
        try relay(service.directory.requireContainer(container))
    }

    /// Counts bytes that went to a client: of a URL it is not known who has it.
    package func carried(_ bytes: Int, for zone: ZoneKey) {
        service.usage.carried(bytes, for: zone.database, of: Caller.anonymousName)
    }
}

/// A file that a client uploads. `finish` or `abandon` ends it.
package final class IncomingAsset: Sendable {
    private let file: AssetUpload
    private let service: RecordService
    private let ticket: AssetUploadTicket
    private let owner: UnsavedUploads.Owner
    private let unsavedBytesMax: Int64
    private let state = Mutex<(size: UInt64, isOver: Bool)>((0, false))

    init(
        _ service: RecordService, _ ticket: AssetUploadTicket, _ file: AssetUpload, owner: UnsavedUploads.Owner,
        unsavedBytesMax: Int64
    ) {
        self.service = service
        self.ticket = ticket
        self.file = file
        self.owner = owner
        self.unsavedBytesMax = unsavedBytesMax
    }

    /// Counts bytes and appends them; returns when they are with the system. One call at a time.
    /// - Throws: `BAD_REQUEST` with 413 where the file has too many, `QUOTA_EXCEEDED` where the user has too much that
    ///   no record has, `TRY_AGAIN_LATER` where they cannot be written.
    package func write(_ bytes: some Collection<UInt8> & Sendable) async throws(RequestFailure) {
        let (count, size) = (bytes.count, state.withLock(\.size) + UInt64(bytes.count))
        guard size <= ticket.bytesMax else { throw Self.tooLarge(ticket.bytesMax) }
        try service.unsavedUploads.grow(owner, by: count, to: size, limit: unsavedBytesMax)
        state.withLock { $0.size = size }
        service.usage.carried(count, for: ticket.zone.database, of: ticket.uploader)
        do throws(AssetError) { try await file.write(bytes) } catch { throw RequestFailure(error) }
    }

    /// What is answered to a file that is larger than its URL takes.
    package static func tooLarge(_ bytesMax: UInt64) -> RequestFailure {
        RequestFailure(
            .badRequest,
            "the file is larger than \(bytesMax) bytes, which its upload URL takes; assets/upload gives URLs for larger files where "
                + "a token says the size", details: .bodyTooLarge)
    }

    /// The file is whole: makes it durable on a majority of the zone's replicas.
    /// - Returns: what the client saves in a record.
    package func finish() async throws(RequestFailure) -> AssetDictionary {
        let secret = try await service.requireSecret()
        let expires: Int64
        let asset: AssetReference
        do throws(AssetError) {
            asset = try await file.finish()
            // It stays on this disk for a day, also where too few nodes can hold it.
            expires = service.now + AssetReceipt.lifeMilliseconds
            end()
            service.peerExchange.didUpload(asset, by: owner, until: expires)
            try await file.hold(asset, in: service.node.map.group(of: ticket.zone), of: service.node)
        } catch {
            throw RequestFailure(error)
        }
        return secret.dictionary(
            of: AssetReceipt(
                asset: asset, zone: ticket.zone, recordType: ticket.recordType, field: ticket.field,
                user: ticket.uploader, expires: expires))
    }

    /// Leaves nothing, unless it was finished.
    package func abandon() async {
        end()
        await file.abandon()
    }

    private func end() {
        let size = state.withLock { state -> UInt64? in
            defer { state.isOver = true }
            return state.isOver ? nil : state.size
        }
        if let size { service.unsavedUploads.end(owner, size: size) }
    }
}

extension RequestFailure {
    package init(_ error: AssetError) {
        switch error {
        case .tooLarge(let limit): self = IncomingAsset.tooLarge(limit)
        case .missing: self.init(.notFound, "the file's bytes are not there: \(error)")
        case .diskFull, .unavailable:
            self.init(ServiceError.nothingDone("\(error)"))
        }
    }
}
