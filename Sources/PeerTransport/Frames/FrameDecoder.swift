import NIOCore

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
