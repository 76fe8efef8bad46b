import Admission
import Cluster
import Directory
import NIOCore
import RecordModel
import Service

// What WebServices does with the bytes of assets, without the HTTP.
extension Visit {
    /// The URL to which a file of a zone's records is to be sent.
    func uploadURL(zone: String, field: String, isPublic: Bool = false) async throws(RequestFailure) -> String {
        let body = Array(
            #"{"zoneID":{"zoneName":"\#(zone)"},"tokens":[{"recordType":"\#(Place.type)","fieldName":"\#(field)"}]}"#
                .utf8)
        return try await database { sent throws(RequestFailure) in
            var request = sent
            if isPublic { request.key = Watchbook.publicDatabase }
            let uploads = try await Assets(request).uploads(try AssetsUploadRequest(sent: body))
            return uploads.first?.url ?? ""
        }
    }

    /// Sends a file, in pieces.
    /// - Parameter end: after how many bytes the client sends no more, and when it is gone; nil for never.
    /// - Returns: nil where it is gone.
    func upload(
        _ content: [UInt8], to url: String, cutAfter end: (bytes: Int, milliseconds: UInt64)?
    ) async throws(RequestFailure) -> AssetDictionary? {
        do throws(RequestFailure) {
            return try await send(content, to: url, cutAfter: end)
        } catch {
            if error.error.reason.contains("\(AssetError.diskFull)") { met(.fullDiskInUpload) }
            throw error
        }
    }

    private func send(
        _ content: [UInt8], to url: String, cutAfter end: (bytes: Int, milliseconds: UInt64)?
    ) async throws(RequestFailure) -> AssetDictionary? {
        let transfers = AssetTransfers(service)
        var notes = RequestNotes()
        let ticket = try await transfers.open(
            Base64URL.decode(url.split(separator: "/").last.map(String.init) ?? ""), as: AssetUploadTicket.self,
            address: nil)
        let incoming = try await transfers.receive(ticket, &notes)
        do throws(RequestFailure) {
            var offset = 0
            while offset < min(content.count, end?.bytes ?? content.count) {
                let next = min(content.count, offset + 65_000)
                try await incoming.write(content[offset..<next])
                offset = next
            }
            if let end {
                try? await node.platform.clock.sleep(milliseconds: end.milliseconds)
                await incoming.abandon()
                return nil
            }
            return try await incoming.finish()
        } catch {
            await incoming.abandon()
            throw error
        }
    }

    /// All bytes of a file.
    func download(_ url: String) async throws(RequestFailure) -> [UInt8] {
        let transfers = AssetTransfers(service)
        let parts = url.split(separator: "/")
        let ticket = try await transfers.open(
            Base64URL.decode(parts.count > 1 ? String(parts[parts.count - 2]) : ""), as: AssetDownloadTicket.self,
            address: nil)
        let bytes = try await transfers.read(ticket, range: 0..<ticket.asset.size)
        var content: [UInt8] = []
        do {
            for try await piece in bytes { content += piece.readableBytesView }
        } catch {
            throw RequestFailure(ServiceError(.tryAgainLater, "the rest cannot be had: \(error)"))
        }
        return content
    }
}
