import NIOCore
import RaftCore
import Wire

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

/// Cuts a stream of bytes into frames. Never holds more than one frame of the allowed length; the first frame may
/// only be `Frame.helloBytesMax` long.
struct FrameDecoder: NIOSingleStepByteToMessageDecoder {
    typealias InboundOut = Frame

    let frameBytesMax: Int
    private var isFirst = true

    init(frameBytesMax: Int) { self.frameBytesMax = frameBytesMax }

    mutating func decode(buffer: inout ByteBuffer) throws -> Frame? {
        guard let length = buffer.getInteger(at: buffer.readerIndex, endianness: .little, as: UInt32.self) else {
            return nil
        }
        let bytesMax = isFirst ? min(Frame.helloBytesMax, frameBytesMax) : frameBytesMax
        guard length >= 1 else { throw PeerProtocolError.emptyFrame }
        guard Int(length) + 4 <= bytesMax else {
            throw PeerProtocolError.frameTooLong(bytes: Int(length) + 4, bytesMax: bytesMax)
        }
        guard let raw = buffer.getInteger(at: buffer.readerIndex + 4, as: UInt8.self) else { return nil }
        // Judged before the payload is there: a peer that does not speak the protocol is found out at its first bytes.
        guard let kind = FrameKind(rawValue: raw) else { throw PeerProtocolError.unknownKind(raw) }
        guard buffer.readableBytes >= 4 + Int(length) else { return nil }
        buffer.moveReaderIndex(forwardBy: Frame.headerBytes)
        guard let payload = buffer.readBytes(length: Int(length) - 1) else { return nil }
        isFirst = false
        return Frame(kind: kind, payload: payload)
    }

    mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> Frame? {
        try decode(buffer: &buffer)
    }
}

/// The payload of a raft frame: records of 4 bytes length (little-endian), the group (varint) and the message's fields.
///
/// A message's own fields are tagged, so newer nodes may add some; the record's length lets an older reader pass over
/// them.
enum RaftFrame {
    static func write(_ message: PeerMessage, to writer: inout WireWriter) {
        let start = writer.bytes.count
        writer.bytes.append(contentsOf: [0, 0, 0, 0])
        writer.varint(message.group.rawValue)
        message.message.encode(to: &writer)
        writer.setLength(at: start, writer.bytes.count - start - 4)
    }

    /// Reads the records; each message is read from a slice of the payload.
    static func read(_ payload: [UInt8]) throws(WireError) -> [PeerMessage] {
        var messages: [PeerMessage] = []
        var position = 0
        while position < payload.count {
            guard payload.count - position >= 4 else { throw .truncated }
            var length = 0
            for offset in 0..<4 { length |= Int(payload[position + offset]) << (8 * offset) }
            position += 4
            guard length <= payload.count - position else { throw .truncated }
            var reader = WireReader(payload[position..<position + length])
            let group = GroupID(try reader.varint())
            messages.append(PeerMessage(group: group, message: try Message(from: &reader)))
            position += length
        }
        return messages
    }
}

/// A request: its number on this connection, and what is asked.
struct RequestFrame: Hashable, WireMessage {
    var id: UInt64
    var payload: [UInt8]

    static var blank: Self { RequestFrame(id: 0, payload: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &id)
        try wire.field(2, &payload)
    }
}

/// The answer to the request of the same number.
struct ResponseFrame: Hashable, WireCodable {
    var id: UInt64
    var result: Result<[UInt8], PeerTransportError>

    init(id: UInt64, result: Result<[UInt8], PeerTransportError>) {
        self.id = id
        self.result = result
    }

    func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        switch result {
        case .success(let payload): writer.field(2, payload)
        case .failure(.refused(let reason)): writer.field(3, reason)
        case .failure(.responseLost(let reason)): writer.field(4, reason)
        case .failure(.responseTooLarge(let bytes, let bytesMax)):
            // The reason as well, for nodes that know no other field of a lost response.
            writer.field(4, PeerTransportError.responseTooLarge(bytes: bytes, bytesMax: bytesMax).description)
            writer.field(5, UInt64(bytes))
            writer.field(6, UInt64(bytesMax))
        case .failure(let error): writer.field(error.isOutcomeUnknown ? 4 : 3, error.description)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var id: UInt64?
        var result: Result<[UInt8], PeerTransportError>?
        var (bytes, bytesMax): (Int?, Int) = (nil, 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.unsigned()
            case 2: result = .success(try reader.array())
            case 3: result = .failure(.refused(try reader.string()))
            case 4: result = .failure(.responseLost(try reader.string()))
            case 5: bytes = Int(clamping: try reader.unsigned())
            case 6: bytesMax = Int(clamping: try reader.unsigned())
            default: try reader.skip()
            }
        }
        if let bytes { result = .failure(.responseTooLarge(bytes: bytes, bytesMax: bytesMax)) }
        guard let id else { throw .missingField(1) }
        guard let result else { throw .missingField(2) }
        self.id = id
        self.result = result
    }
}

/// Frames on their way out, encoded one behind the other. Raft messages that are appended in a row share one frame.
struct OutboundBuffer {
    /// What became of an append. If it did not succeed, the buffer is as it was.
    enum Outcome: Equatable {
        case appended
        /// It does not fit the limit of all bytes that wait.
        case full
        /// It does not fit a frame.
        case tooLarge(bytes: Int)
    }

    private var writer = WireWriter(capacity: 0)
    /// Where the raft frame starts that can still take messages.
    private var openRaftFrame: Int?
    /// The frames begun since the last `take`.
    private(set) var frameCount = 0
    let frameBytesMax: Int

    init(frameBytesMax: Int) { self.frameBytesMax = frameBytesMax }

    /// The bytes of all frames.
    var count: Int { writer.bytes.count }

    /// Appends a frame whose payload `body` writes, unless the buffer would hold more than `roomBytes`.
    mutating func append(_ kind: FrameKind, roomBytes: Int = .max, _ body: (inout WireWriter) -> Void = { _ in })
        -> Outcome
    {
        let start = count
        beginFrame(kind)
        body(&writer)
        let bytes = count - start
        guard bytes <= frameBytesMax, count <= roomBytes else {
            writer.bytes.removeLast(bytes)
            return bytes > frameBytesMax ? .tooLarge(bytes: bytes) : .full
        }
        endFrame(start)
        frameCount += 1
        openRaftFrame = nil
        return .appended
    }

    /// Appends a message to the raft frame at the end, or to a new one.
    mutating func append(_ message: PeerMessage, roomBytes: Int) -> Outcome {
        let start = count
        if let frame = openRaftFrame {
            RaftFrame.write(message, to: &writer)
            if count - frame <= frameBytesMax, count <= roomBytes {
                endFrame(frame)
                return .appended
            }
            writer.bytes.removeLast(count - start)
        }
        let outcome = append(.raft, roomBytes: roomBytes) { RaftFrame.write(message, to: &$0) }
        if outcome == .appended { openRaftFrame = start }
        return outcome
    }

    /// Takes all bytes, which leaves the buffer empty.
    mutating func take() -> [UInt8] {
        let bytes = writer.bytes
        // Connections are many and mostly quiet, so a big burst's memory is not kept.
        writer = WireWriter(capacity: min(bytes.count, 16_384))
        openRaftFrame = nil
        frameCount = 0
        return bytes
    }

    private mutating func beginFrame(_ kind: FrameKind) {
        writer.bytes.append(contentsOf: [0, 0, 0, 0, kind.rawValue])
    }

    private mutating func endFrame(_ start: Int) {
        writer.setLength(at: start, count - start - 4)
    }
}

extension WireWriter {
    /// Overwrites four bytes with a little-endian length.
    mutating func setLength(at position: Int, _ length: Int) {
        let value = UInt32(length)
        for offset in 0..<4 { bytes[position + offset] = UInt8(truncatingIfNeeded: value >> UInt32(8 * offset)) }
    }
}
