package import Admission
import RecordModel
package import Wire

/// What nodes tell each other at once, without a log: losing one costs accuracy, never correctness.
enum NodeMessage: Hashable, Sendable {
    /// Web auth tokens that clients have begun to use, so that the ones before them end here too.
    case sessions(SessionNews)
    /// Asks for the tokens that were first used, or learned of, at most so many milliseconds ago.
    case wantsSessions(within: Int64)
    /// Records have files now that a user uploaded to the node that is told.
    case savedAssets(SavedAssets)
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

/// Files that records have now, or that were uploaded for one; and who uploaded them.
struct SavedAssets: Hashable, Sendable {
    var container: String
    var user: String
    var assets: [AssetReference]
    /// Where no record has them: until when they count as unsaved, in milliseconds since 1970.
    var unsavedUntil: Int64?
}

extension SavedAssets: WireMessage {
    static var blank: Self { SavedAssets(container: "", user: "", assets: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.field(2, &user)
        try wire.field(3, &assets)
        try wire.field(4, &unsavedUntil)
    }
}

extension NodeMessage: WireCodable {
    /// 1 the uses of sessions (1 id, 2 issued, 3 age), 4 boot, 5 number, 6 whether it is the last; or 2 id of a request
    /// and 3 what became of it; or 7 from how long ago sessions are wanted; or 8 files
    /// that records have.
    func encode(to writer: inout WireWriter) {
        switch self {
        case .sessions(let news):
            for use in news.uses { use.write(1, to: &writer) }
            writer.field(4, news.boot)
            writer.field(5, news.number)
            writer.field(6, news.isLast)
        case .wantsSessions(let milliseconds): writer.field(7, signed: milliseconds)
        case .savedAssets(let saved): writer.field(8) { saved.encode(to: &$0) }
        case .trace(let id, let text):
            writer.field(2, id)
            writer.field(3, text)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var news = SessionNews(uses: [], boot: 0, number: 0)
        var id: String?
        var wanted: Int64?
        var saved: SavedAssets?
        var text = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: news.uses.append(try reader.message())
            case 2: id = try reader.string()
            case 3: text = try reader.string()
            case 4: news.boot = try reader.unsigned()
            case 5: news.number = try reader.unsigned()
            case 6: news.isLast = try reader.bool()
            case 7: wanted = try reader.signed()
            case 8: saved = try reader.message()
            default: try reader.skip()
            }
        }
        if let id {
            self = .trace(id: id, text: text)
        } else if let saved {
            self = .savedAssets(saved)
        } else {
            self = wanted.map { .wantsSessions(within: $0) } ?? .sessions(news)
        }
    }
}

extension SessionRotation.Use: WireMessage {
    package static var blank: Self { SessionRotation.Use(sessionID: "", issued: 0, age: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &sessionID)
        try wire.field(2, &issued)
        try wire.field(3, &age)
    }
}
