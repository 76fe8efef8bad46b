import Admission
import RecordModel

/// A query's position, as clients hold it: sealed, because a page that stopped at its bounds may stop at a record that
/// its reader may not read, and the position has that record's sort keys.
enum ContinuationMarker {
    private static let purpose = "marker"

    /// Base64, as all positions are. In the clear on a node that has no encryption key.
    static func text(of position: [UInt8], _ signer: SessionSigner?) -> String {
        guard let signer else { return Base64.encode(position) }
        return Base64.encode(Array(signer.ticket(position, purpose: purpose, expires: .max).utf8))
    }

    /// - Throws: `BAD_REQUEST` for what this cluster did not give.
    static func position(_ text: String?, _ signer: SessionSigner?) throws(RequestFailure) -> [UInt8]? {
        guard let text else { return nil }
        let bytes = Base64.decode(text)
        let position =
            if let signer {
                bytes.flatMap {
                    signer.openTicket(String(decoding: $0, as: UTF8.self), purpose: purpose, now: 0)
                }
            } else { bytes }
        guard let position else {
            throw RequestFailure(.badRequest, "continuationMarker: it is not one that this server gave")
        }
        return position
    }
}
