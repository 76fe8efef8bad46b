import Admission
import Wire

/// What nodes tell each other at once, without a log: losing one costs accuracy, never correctness.
enum NodeMessage: Hashable, Sendable {
    /// Web auth tokens that clients have begun to use, so that the ones before them end here too.
    case sessions(SessionNews)
    /// Asks for the tokens that were first used, or learned of, at most so many milliseconds ago.
    case wantsSessions(within: Int64)
    /// A request that this node had a part in ended in an error.
    case trace(id: String, text: String)
}

/// The newest tokens of some sessions, as one node tells another.
struct SessionNews: Hashable, Sendable {
    var uses: [SessionRotation.Use]
    /// Names one start of the node that tells; random.
    var boot: UInt64
    /// 1 for the first message to this node since then, so that a missing one is noticed; 0 in an answer to
    /// `wantsSessions`.
    var number: UInt64
    /// Whether an answer ends with this one.
    var isLast = false
}

extension NodeMessage: WireCodable {
    /// 1 the uses of sessions (1 id, 2 issued, 3 age), 4 boot, 5 number, 6 whether it is the last; or 2 id of a request
    /// and 3 what became of it; or 7 from how long ago sessions are wanted.
    func encode(to writer: inout WireWriter) {
        switch self {
        case .sessions(let news):
            for use in news.uses {
                writer.field(1) { item in
                    item.field(1, use.sessionID)
                    item.field(2, signed: use.issued)
                    item.field(3, signed: use.age)
                }
            }
            writer.field(4, news.boot)
            writer.field(5, news.number)
            writer.field(6, news.isLast)
        case .wantsSessions(let milliseconds): writer.field(7, signed: milliseconds)
        case .trace(let id, let text):
            writer.field(2, id)
            writer.field(3, text)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var news = SessionNews(uses: [], boot: 0, number: 0)
        var id: String?
        var wanted: Int64?
        var text = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: news.uses.append(try Self.use(&reader))
            case 2: id = try reader.string()
            case 3: text = try reader.string()
            case 4: news.boot = try reader.unsigned()
            case 5: news.number = try reader.unsigned()
            case 6: news.isLast = try reader.bool()
            case 7: wanted = try reader.signed()
            default: try reader.skip()
            }
        }
        if let id {
            self = .trace(id: id, text: text)
        } else {
            self = wanted.map { .wantsSessions(within: $0) } ?? .sessions(news)
        }
    }

    private static func use(_ reader: inout WireReader) throws(WireError) -> SessionRotation.Use {
        var nested = try reader.nested()
        var use = SessionRotation.Use(sessionID: "", issued: 0, age: 0)
        while let field = try nested.nextField() {
            switch field {
            case 1: use.sessionID = try nested.string()
            case 2: use.issued = try nested.signed()
            case 3: use.age = try nested.signed()
            default: try nested.skip()
            }
        }
        return use
    }
}
