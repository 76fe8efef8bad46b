import Wire

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

    /// Hands out all bytes and begins anew.
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
