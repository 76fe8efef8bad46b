import Directory
import GRDB
import KeyValueStore
import RecordModel
import RecordStore

/// Reads of the key-value sidecar, as the JSON that the edge passes on.
struct KeyValueReader {
    /// Whether INT64, DOUBLE and TIMESTAMP values are written as strings.
    let numbersAsStrings: Bool

    /// Bytes of JSON after which a page of `list`, `changes` or `watch` ends. A page has one value at least.
    ///
    /// A value is at most 7 MB of JSON: 1 MB of text whose every byte is escaped by six, and 10,000 members. So every
    /// page fits a frame between nodes.
    let pageBytesMax = min(2 << 20, QueryTuning.current.answerBytesMax)
    /// Bytes of JSON of the values that `get` was asked for, if they are several.
    static let getBytesMax = 6 << 20

    private static let tooMuch = ServiceError(
        .badRequest,
        "the values asked for are too large for one answer; ask for fewer keys, or list the store by pages",
        detail: .tooLongAnswer
    )

    /// - Parameter secret: seals the feed's tokens; nil before the cluster has one.
    func answer(
        _ read: ShardRead.KeyValueRead, of store: StoreKey, _ secret: @autoclosure () -> ClusterSecret?,
        in db: Database
    ) throws -> ReadAnswer {
        switch read {
        case .get(let keys): try get(keys, of: store, in: db)
        case .list(let after): try list(store, after: after, in: db)
        case .usage: try Self.usage(of: store, in: db)
        case .changes(let since, let limit): try changes(of: store, since: since, limit: limit, secret(), in: db)
        }
    }

    private func get(_ keys: [String], of store: StoreKey, in db: Database) throws -> ReadAnswer {
        var page = JSONPage(bytesMax: Self.getBytesMax)
        _ = try KeyValueTables.get(keys, of: store, in: db) { entry in page.take { write(entry, to: &$0) } }
        if page.isFull { return .refused(Self.tooMuch) }
        var writer = JSONWriter()
        writer.object { page.write("values", to: &$0) }
        return .found(ShardAnswer(writer.bytes))
    }

    private func list(_ store: StoreKey, after: String?, in db: Database) throws -> ReadAnswer {
        var page = JSONPage(bytesMax: pageBytesMax)
        let list = try KeyValueTables.list(store, after: after, in: db) { entry in
            page.take { write(entry, to: &$0) }
        }
        let usage = try KeyValueTables.usage(of: store, in: db)
        var writer = JSONWriter()
        writer.object { writer in
            page.write("values", to: &writer)
            if let next = list.next { writer.member("after", next) }
            writer.key("usage")
            writer.object { usage.write(to: &$0) }
        }
        return .found(ShardAnswer(writer.bytes))
    }

    private static func usage(of store: StoreKey, in db: Database) throws -> ReadAnswer {
        let usage = try KeyValueTables.usage(of: store, in: db)
        var writer = JSONWriter()
        writer.object { writer in
            usage.write(to: &writer)
            writer.key("limits")
            writer.object { write(.standard, to: &$0) }
        }
        return .found(ShardAnswer(writer.bytes))
    }

    private func changes(
        of store: StoreKey, since: String?, limit: Int, _ secret: ClusterSecret?, in db: Database
    ) throws -> ReadAnswer {
        var rendered = JSONPage(bytesMax: pageBytesMax)
        let feed = try KeyValueTables.changes(of: store, since: since, limit: limit, in: db) { change in
            rendered.take { write(change, to: &$0) }
        }
        switch feed {
        case .invalidToken:
            return .refused(ServiceError(.badRequest, "Unknown sync continuation type", detail: .expiredSyncToken))
        case .expired(let reason):
            var answer = ShardAnswer([])
            answer.expiry = reason
            return .found(answer)
        case .page(let page):
            let token = Self.sealed(page.token, secret)
            var writer = JSONWriter()
            writer.object { writer in
                rendered.write("changes", to: &writer)
                writer.member("syncToken", token)
                writer.member("moreComing", page.isMoreComing)
            }
            var answer = ShardAnswer(writer.bytes, cursor: Array(token.utf8), hasMore: page.isMoreComing)
            answer.changes = page.changes.count
            return .found(answer)
        }
    }

    /// What the token is sealed for; the edge opens it.
    private static let tokenPurpose = "preferences token"

    private static func sealed(_ token: String, _ secret: ClusterSecret?) -> String {
        guard let secret, let bytes = Base64.decode(token) else { return token }
        return Base64.encode(secret.seal(bytes, purpose: tokenPurpose))
    }

    /// By the names that refusals have.
    private static func write(_ limits: KeyValueLimits, to writer: inout JSONWriter) {
        let amounts: [(KeyValueRefusal.Rule, Int)] = [
            (.keys, limits.keysMax), (.storeBytes, limits.storeBytesMax), (.valueBytes, limits.valueBytesMax),
            (.keyBytes, limits.keyBytesMax), (.valueMembers, limits.valueMembersMax),
            (.valueDepth, PropertyValue.depthMax), (.writes, limits.writesMax),
        ]
        for (rule, amount) in amounts { writer.member(rule.name, integer: Int64(amount)) }
    }

    private func write(_ entry: KeyValueEntry, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("key", entry.key)
            writer.key("value")
            entry.value.write(to: &writer, numbersAsStrings: numbersAsStrings)
            writer.member("version", entry.version.description)
            writer.member("modified", integer: entry.modified)
            if let device = entry.device { writer.member("device", device) }
        }
    }

    private func write(_ change: KeyValueChange, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("key", change.key)
            if let value = change.value {
                writer.key("value")
                value.write(to: &writer, numbersAsStrings: numbersAsStrings)
            } else {
                writer.member("deleted", true)
            }
            writer.member("version", change.version.description)
            writer.member("modified", integer: change.modified)
            if let device = change.device { writer.member("device", device) }
        }
    }
}

/// The elements of an array in JSON, as many as fit.
private struct JSONPage {
    let bytesMax: Int
    private var writer = JSONWriter()
    /// Whether an element was refused.
    private(set) var isFull = false

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Takes an element where it fits; the first one always.
    /// - Returns: whether it was taken.
    mutating func take(_ render: (inout JSONWriter) -> Void) -> Bool {
        var element = JSONWriter()
        render(&element)
        let isFirst = writer.bytes.isEmpty
        guard isFirst || writer.bytes.count + element.bytes.count < bytesMax else {
            isFull = true
            return false
        }
        writer.raw(element.bytes)
        return true
    }

    /// Writes the array as a member of an object.
    func write(_ name: String, to writer: inout JSONWriter) {
        writer.key(name)
        writer.raw(Array("[".utf8) + self.writer.bytes + Array("]".utf8))
    }
}
