import RaftCore
import Wire

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
