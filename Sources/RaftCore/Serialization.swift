package import Wire

/// Bytes that are not what they should be: cut short, or malformed. A retry does not help.
public struct SerializationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was wrong, for a log.
    public var description: String

    init(_ error: WireError) { description = "\(error)" }
}

// The binary form of what a shell sends and stores: tagged fields, of which unknown ones are skipped, so that a later
// version can add some. It is the same on every machine and stays readable.

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

extension Message: WireEncodable, WireDecodable {
    /// Writes the message's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, from.rawValue)
        writer.field(2, to.rawValue)
        writer.field(3, term.rawValue)
        switch body {
        case .preVoteRequest(let lastLog): writer.field(4) { lastLog.encode(to: &$0) }
        case .preVoteResponse(let granted): writer.field(5, granted)
        case .voteRequest(let lastLog, let isTransfer):
            writer.field(6) { request in
                request.field(1) { lastLog.encode(to: &$0) }
                if isTransfer { request.field(2, true) }
            }
        case .voteResponse(let granted): writer.field(7, granted)
        case .appendRequest(let request): writer.field(8) { request.encode(to: &$0) }
        case .appendResponse(let response): writer.field(9) { response.encode(to: &$0) }
        case .heartbeatRequest(let commit, let round): writer.parts(10, commit.rawValue, round)
        case .heartbeatResponse(let round): writer.field(11, round)
        case .timeoutNow: writer.field(12, true)
        }
    }

    /// Reads a message. Unknown fields are skipped.
    package init(from reader: inout WireReader) throws(WireError) {
        var from = ReplicaID(0)
        var to = ReplicaID(0)
        var term = Term.zero
        var body: Body?
        while let field = try reader.nextField() {
            switch field {
            case 1: from = ReplicaID(try reader.unsigned())
            case 2: to = ReplicaID(try reader.unsigned())
            case 3: term = Term(try reader.position())
            case 4: body = .preVoteRequest(lastLog: try reader.message())
            case 5: body = .preVoteResponse(granted: try reader.bool())
            case 6: body = try Self.voteRequest(&reader)
            case 7: body = .voteResponse(granted: try reader.bool())
            case 8: body = .appendRequest(try reader.message())
            case 9: body = .appendResponse(try reader.message())
            case 10: body = try reader.parts { .heartbeatRequest(commit: LogIndex($0), round: $1) }
            case 11: body = .heartbeatResponse(round: try reader.unsigned())
            case 12: body = try reader.bool() ? .timeoutNow : nil
            default: try reader.skip()
            }
        }
        guard let body else { throw .missingField(4) }
        self.init(from: from, to: to, term: term, body: body)
    }

    private static func voteRequest(_ reader: inout WireReader) throws(WireError) -> Body {
        var request = try reader.nested()
        var lastLog = LogPosition.zero
        var isTransfer = false
        while let field = try request.nextField() {
            switch field {
            case 1: lastLog = try request.message()
            case 2: isTransfer = try request.bool()
            default: try request.skip()
            }
        }
        return .voteRequest(lastLog: lastLog, isTransfer: isTransfer)
    }
}

extension AppendRequest: WireEncodable, WireDecodable {
    /// Writes the request's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { previous.encode(to: &$0) }
        writer.field(2, commit.rawValue)
        for entry in entries { writer.field(3) { entry.encode(to: &$0) } }
    }

    /// Reads a request, whose entries must follow `previous` without a gap.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(previous: .zero, entries: [], commit: .zero)
        while let field = try reader.nextField() {
            switch field {
            case 1: previous = try reader.message()
            case 2: commit = LogIndex(try reader.position())
            case 3: entries.append(try reader.message())
            default: try reader.skip()
            }
        }
        for (offset, entry) in entries.enumerated()
        where entry.index.rawValue != previous.index.rawValue &+ 1 &+ UInt64(offset) {
            throw .invalidValue(field: 3)
        }
    }
}

extension AppendResponse: WireEncodable, WireDecodable {
    /// Writes the response's fields.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .accepted(let match): writer.field(1, match.rawValue)
        case .rejected(let previous, let hint):
            writer.field(2, previous.rawValue)
            writer.field(3) { hint.encode(to: &$0) }
        }
    }

    /// Reads a response, which must be one of the two kinds.
    package init(from reader: inout WireReader) throws(WireError) {
        var match: LogIndex?
        var previous: LogIndex?
        var hint = LogPosition.zero
        while let field = try reader.nextField() {
            switch field {
            case 1: match = LogIndex(try reader.position())
            case 2: previous = LogIndex(try reader.position())
            case 3: hint = try reader.message()
            default: try reader.skip()
            }
        }
        if let match {
            self = .accepted(match: match)
        } else if let previous {
            self = .rejected(previous: previous, hint: hint)
        } else {
            throw .missingField(1)
        }
    }
}

extension LogPosition: WireEncodable, WireDecodable {
    /// Writes the position's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, index.rawValue)
        writer.field(2, term.rawValue)
    }

    /// Reads a position; a missing field is 0.
    package init(from reader: inout WireReader) throws(WireError) {
        self = .zero
        while let field = try reader.nextField() {
            switch field {
            case 1: index = LogIndex(try reader.position())
            case 2: term = Term(try reader.position())
            default: try reader.skip()
            }
        }
    }
}

extension Configuration: WireEncodable, WireDecodable {
    /// Writes the configuration's fields.
    package func encode(to writer: inout WireWriter) {
        for voter in voters { writer.field(1, voter.rawValue) }
        for voter in outgoing { writer.field(2, voter.rawValue) }
        for learner in learners { writer.field(3, learner.rawValue) }
    }

    /// Reads a configuration; missing lists are empty.
    package init(from reader: inout WireReader) throws(WireError) {
        var voters: [ReplicaID] = []
        var outgoing: [ReplicaID] = []
        var learners: [ReplicaID] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: voters.append(ReplicaID(try reader.unsigned()))
            case 2: outgoing.append(ReplicaID(try reader.unsigned()))
            case 3: learners.append(ReplicaID(try reader.unsigned()))
            default: try reader.skip()
            }
        }
        self.init(voters: voters, outgoing: outgoing, learners: learners)
    }
}

extension HardState: WireEncodable, WireDecodable {
    /// Writes the state's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, term.rawValue)
        if let vote { writer.field(2, vote.rawValue) }
    }

    /// Reads a state; a missing vote is nil.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.nextField() {
            switch field {
            case 1: term = Term(try reader.position())
            case 2: vote = ReplicaID(try reader.unsigned())
            default: try reader.skip()
            }
        }
    }
}

extension SnapshotMark: WireEncodable, WireDecodable {
    /// Writes the mark's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { position.encode(to: &$0) }
        writer.field(2) { configuration.encode(to: &$0) }
    }

    /// Reads a mark.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(position: .zero, configuration: Configuration(voters: []))
        while let field = try reader.nextField() {
            switch field {
            case 1: position = try reader.message()
            case 2: configuration = try reader.message()
            default: try reader.skip()
            }
        }
    }
}

extension Entry: WireEncodable, WireDecodable {
    /// Writes the entry's fields.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, index.rawValue)
        writer.field(2, term.rawValue)
        switch payload {
        case .empty: break
        case .command(let bytes): writer.field(3, bytes)
        case .configuration(let configuration): writer.field(4) { configuration.encode(to: &$0) }
        }
    }

    /// Reads an entry; one without a payload is empty.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(index: .zero, term: .zero, payload: .empty)
        while let field = try reader.nextField() {
            switch field {
            case 1: index = LogIndex(try reader.position())
            case 2: term = Term(try reader.position())
            case 3: payload = .command(try reader.array())
            case 4: payload = .configuration(try reader.message())
            default: try reader.skip()
            }
        }
    }
}

extension WireReader {
    /// A term, or an index of a log, below 2^62, which no cluster comes near: what comes after is to be a number, too.
    fileprivate mutating func position() throws(WireError) -> UInt64 {
        let number = try unsigned()
        guard number < 1 << 62 else { throw .malformed }
        return number
    }
}
