import Admission
import Cluster
import Directory
import RecordModel

/// What a position that clients carry is one of. Each is sealed for itself and opens as nothing else.
///
/// Positions have names of zones, and sort keys of records, which their reader may not be allowed to read; and nobody
/// shall make one that this cluster did not give.
enum SealedPosition: String {
    case marker = "query marker"
    case zone = "zone token"
    case database = "database token"
    /// Sealed by the shard's leader, which renders the page that has it.
    case preferences = "preferences token"
    /// The same.
    case notifications = "notifications token"

    /// - Parameter text: as a client sent it, in base64.
    /// - Throws: `BAD_REQUEST` for what this cluster did not give, and, after `ClusterSecret.clearUntil`, for what it
    ///   gave before it had its secret: beginning without it helps. `TRY_AGAIN_LATER` where this node cannot open it
    ///   yet.
    func open(_ text: String?, in service: RecordService) async throws(RequestFailure) -> [UInt8]? {
        guard let text, !text.isEmpty else { return nil }
        guard let bytes = Base64.decode(text) else { throw foreign }
        if !ClusterSecret.isSealed(bytes) {
            if let secret = service.directory.secret {
                try service.judgedByClock { now throws(RequestFailure) in
                    if !secret.takesClear(at: now) { throw foreign }
                }
            }
            return try openEarlier(bytes, service.signer)
        }
        guard let position = try await service.requireSecret().open(bytes, purpose: rawValue) else { throw foreign }
        return position
    }

    /// Base64, as all positions are.
    func text(of position: [UInt8], in service: RecordService) -> String {
        Base64.encode(bytes(of: position, in: service))
    }

    /// The sealed position, or, while the cluster has no secret, what builds without it give.
    func bytes(of position: [UInt8], in service: RecordService) -> [UInt8] {
        if let secret = service.directory.secret { return secret.seal(position, purpose: rawValue) }
        guard self == .marker, let signer = service.signer else { return position }
        return Array(signer.ticket(position, purpose: Self.earlierMarker, expires: .max).utf8)
    }

    private static let earlierMarker = "marker"

    /// Before clusters had a secret, markers were sealed where nodes had an encryption key, and tokens never.
    private func openEarlier(_ bytes: [UInt8], _ signer: SessionSigner?) throws(RequestFailure) -> [UInt8] {
        guard self == .marker, let signer else { return bytes }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let position = signer.openTicket(text, purpose: Self.earlierMarker, now: 0) else { throw foreign }
        return position
    }

    private var foreign: RequestFailure {
        switch self {
        case .marker: RequestFailure(.badRequest, "continuationMarker: it is not one that this server gave")
        case .zone, .database, .preferences, .notifications:
            RequestFailure(
                ServiceError(
                    .badRequest,
                    "Unknown sync continuation type: syncToken is not one that this server gave for this, or is of an earlier "
                        + "version; start again without a token", detail: .expiredSyncToken))
        }
    }
}
