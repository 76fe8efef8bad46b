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
                writer.object { writer in
                    writer.member("keys", integer: Int64(usage.keys))
                    writer.member("bytes", integer: Int64(usage.bytes))
                }
            }
        case .changes(let since, let limit):
            switch try KeyValueTables.changes(of: store, since: since, limit: limit, in: db) {
            case .invalidToken:
                return .refused(ServiceError(.badRequest, "Unknown sync continuation type"))
            case .expired(let reason):
                return .refused(
                    ServiceError(.badRequest, "the syncToken has expired: \(reason). Start again without one"))
            case .page(let page): writer.object { Self.write(page, to: &$0) }
            }
        }
        return .found(ShardAnswer(writer.bytes))
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
