package import Wire

extension LogPosition: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, index.rawValue)
        writer.field(2, term.rawValue)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self = .zero
        while let field = try reader.nextField() {
            switch field {
            case 1: index = LogIndex(try reader.unsigned())
            case 2: term = Term(try reader.unsigned())
            default: try reader.skip()
            }
        }
    }
}

extension Configuration: WireCodable {
    package func encode(to writer: inout WireWriter) {
        for voter in voters { writer.field(1, voter.rawValue) }
        for voter in outgoing { writer.field(2, voter.rawValue) }
        for learner in learners { writer.field(3, learner.rawValue) }
    }

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

extension HardState: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, term.rawValue)
        if let vote { writer.field(2, vote.rawValue) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.nextField() {
            switch field {
            case 1: term = Term(try reader.unsigned())
            case 2: vote = ReplicaID(try reader.unsigned())
            default: try reader.skip()
            }
        }
    }
}

extension SnapshotMark: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { position.encode(to: &$0) }
        writer.field(2) { configuration.encode(to: &$0) }
    }

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

extension Entry: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, index.rawValue)
        writer.field(2, term.rawValue)
        switch payload {
        case .empty: break
        case .command(let bytes): writer.field(3, bytes)
        case .configuration(let configuration): writer.field(4) { configuration.encode(to: &$0) }
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(index: .zero, term: .zero, payload: .empty)
        while let field = try reader.nextField() {
            switch field {
            case 1: index = LogIndex(try reader.unsigned())
            case 2: term = Term(try reader.unsigned())
            case 3: payload = .command(try reader.array())
            case 4: payload = .configuration(try reader.message())
            default: try reader.skip()
            }
        }
    }
}
