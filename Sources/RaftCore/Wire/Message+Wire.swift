package import Wire

extension Message: WireCodable {
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
        case .heartbeatRequest(let commit, let round):
            writer.field(10) { request in
                request.field(1, commit.rawValue)
                request.field(2, round)
            }
        case .heartbeatResponse(let round): writer.field(11, round)
        case .timeoutNow: writer.field(12, true)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var from = ReplicaID(0)
        var to = ReplicaID(0)
        var term = Term.zero
        var body: Body?
        while let field = try reader.nextField() {
            switch field {
            case 1: from = ReplicaID(try reader.unsigned())
            case 2: to = ReplicaID(try reader.unsigned())
            case 3: term = Term(try reader.unsigned())
            case 4: body = .preVoteRequest(lastLog: try reader.message())
            case 5: body = .preVoteResponse(granted: try reader.bool())
            case 6: body = try Self.voteRequest(&reader)
            case 7: body = .voteResponse(granted: try reader.bool())
            case 8: body = .appendRequest(try reader.message())
            case 9: body = .appendResponse(try reader.message())
            case 10: body = try Self.heartbeatRequest(&reader)
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

    private static func heartbeatRequest(_ reader: inout WireReader) throws(WireError) -> Body {
        var request = try reader.nested()
        var commit = LogIndex.zero
        var round: UInt64 = 0
        while let field = try request.nextField() {
            switch field {
            case 1: commit = LogIndex(try request.unsigned())
            case 2: round = try request.unsigned()
            default: try request.skip()
            }
        }
        return .heartbeatRequest(commit: commit, round: round)
    }
}

extension AppendRequest: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { previous.encode(to: &$0) }
        writer.field(2, commit.rawValue)
        for entry in entries { writer.field(3) { entry.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(previous: .zero, entries: [], commit: .zero)
        while let field = try reader.nextField() {
            switch field {
            case 1: previous = try reader.message()
            case 2: commit = LogIndex(try reader.unsigned())
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

extension AppendResponse: WireCodable {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .accepted(let match): writer.field(1, match.rawValue)
        case .rejected(let previous, let hint):
            writer.field(2, previous.rawValue)
            writer.field(3) { hint.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var match: LogIndex?
        var previous: LogIndex?
        var hint = LogPosition.zero
        while let field = try reader.nextField() {
            switch field {
            case 1: match = LogIndex(try reader.unsigned())
            case 2: previous = LogIndex(try reader.unsigned())
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
