import Wire

/// Bytes that are not what they should be: cut short, or malformed. A retry does not help.
public struct SerializationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was wrong, for a log.
    public var description: String

    init(_ error: WireError) { description = "\(error)" }
}

// The binary form of what a shell sends and stores: tagged fields, of which unknown ones are skipped, so that a later version can
// add some. It is the same on every machine and stays readable.

extension Message {
    /// The message for the network.
    public func serialized() -> [UInt8] { encoded() }

    /// A message from the network.
    public init(serialized bytes: [UInt8]) throws(SerializationError) {
        do throws(WireError) { try self.init(decoding: bytes) } catch { throw SerializationError(error) }
    }
}

extension Entry {
    /// The entry for the log.
    public func serialized() -> [UInt8] { encoded() }

    /// An entry from the log. Its checksum is the log's business.
    public init(serialized bytes: [UInt8]) throws(SerializationError) {
        do throws(WireError) { try self.init(decoding: bytes) } catch { throw SerializationError(error) }
    }
}

extension HardState {
    /// Term and vote for the log.
    public func serialized() -> [UInt8] { encoded() }

    /// Term and vote from the log.
    public init(serialized bytes: [UInt8]) throws(SerializationError) {
        do throws(WireError) { try self.init(decoding: bytes) } catch { throw SerializationError(error) }
    }
}

extension SnapshotMark {
    /// The mark for a snapshot or the log.
    public func serialized() -> [UInt8] { encoded() }

    /// The mark of a snapshot or the log.
    public init(serialized bytes: [UInt8]) throws(SerializationError) {
        do throws(WireError) { try self.init(decoding: bytes) } catch { throw SerializationError(error) }
    }
}
