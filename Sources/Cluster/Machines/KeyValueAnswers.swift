import GRDB
import KeyValueStore
import RecordModel

/// Reads of the key-value sidecar, as the JSON that the edge passes on.
enum KeyValueAnswers {
    static func answer(_ read: ShardRead.KeyValueRead, of store: StoreKey, in db: Database) throws -> ReadAnswer {
        var writer = JSONWriter()
        switch read {
        case .get(let keys):
            let entries = try KeyValueTables.get(keys, of: store, in: db)
            writer.object { Self.write(entries, to: &$0) }
        case .list(let after):
            let page = try KeyValueTables.list(store, after: after, in: db)
            let usage = try KeyValueTables.usage(of: store, in: db)
            writer.object { writer in
                Self.write(page.entries, to: &writer)
                if let next = page.next { writer.member("after", next) }
                writer.key("usage")
                writer.object { usage.write(to: &$0) }
            }
        case .usage:
            let usage = try KeyValueTables.usage(of: store, in: db)
            writer.object { writer in
                usage.write(to: &writer)
                writer.key("limits")
                writer.object { Self.write(.standard, to: &$0) }
            }
        case .changes(let since, let limit):
            switch try KeyValueTables.changes(of: store, since: since, limit: limit, in: db) {
            case .invalidToken:
                return .refused(ServiceError(.badRequest, "Unknown sync continuation type"))
            case .expired(let reason):
                var answer = ShardAnswer([])
                answer.expiry = reason
                return .found(answer)
            case .page(let page):
                writer.object { Self.write(page, to: &$0) }
                var answer = ShardAnswer(writer.bytes, cursor: Array(page.token.utf8), hasMore: page.isMoreComing)
                answer.changes = page.changes.count
                return .found(answer)
            }
        }
        return .found(ShardAnswer(writer.bytes))
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

    private static func write(_ entries: [KeyValueEntry], to writer: inout JSONWriter) {
        writer.key("values")
        writer.array { writer in
            for entry in entries {
                writer.object { writer in
                    writer.member("key", entry.key)
                    writer.key("value")
                    entry.value.write(to: &writer)
                    writer.member("version", entry.version.description)
                    writer.member("modified", integer: entry.modified)
                    if let device = entry.device { writer.member("device", device) }
                }
            }
        }
    }

    private static func write(_ page: KeyValuePage, to writer: inout JSONWriter) {
        writer.key("changes")
        writer.array { writer in
            for change in page.changes {
                writer.object { writer in
                    writer.member("key", change.key)
                    if let value = change.value {
                        writer.key("value")
                        value.write(to: &writer)
                    } else {
                        writer.member("deleted", true)
                    }
                    writer.member("version", change.version.description)
                    writer.member("modified", integer: change.modified)
                    if let device = change.device { writer.member("device", device) }
                }
            }
        }
        writer.member("syncToken", page.token)
        writer.member("moreComing", page.isMoreComing)
    }
}
