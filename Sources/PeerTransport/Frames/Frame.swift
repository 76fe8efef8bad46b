/// What a frame is. Numbers are for good.
enum FrameKind: UInt8, CaseIterable {
    /// The first frame each way.
    case hello = 1
    /// Why the sender closes the connection.
    case goodbye = 2
    /// Raft messages.
    case raft = 3
    case request = 4
    case response = 5
    /// Are you there? Answered by a pong at once.
    case ping = 6
    case pong = 7
}

/// One unit of the peer protocol: 4 bytes length (little-endian, of what follows), 1 byte kind, payload.
struct Frame: Equatable {
    /// The bytes before a frame's payload.
    static let headerBytes = 5
    /// The longest first frame: nothing longer is held for a peer that is not known yet.
    static let helloBytesMax = 16_384

    var kind: FrameKind
    var payload: [UInt8]
}

/// Why a peer's bytes cannot be accepted. The connection is closed with it.
enum PeerProtocolError: Error, Hashable, CustomStringConvertible {
    case frameTooLong(bytes: Int, bytesMax: Int)
    case emptyFrame
    case unknownKind(UInt8)
    case unexpected(String)
    case malformed(String)

    var description: String {
        switch self {
        case .frameTooLong(let bytes, let bytesMax):
            "it sent a frame of \(bytes) bytes, and the limit is \(bytesMax)"
        case .emptyFrame: "it sent a frame without a kind"
        case .unknownKind(let kind): "it sent a frame of the unknown kind \(kind)"
        case .unexpected(let what): "it sent \(what)"
        case .malformed(let what): "it sent a malformed \(what)"
        }
    }
}
