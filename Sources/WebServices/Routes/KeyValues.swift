import Cluster
import KeyValueStore
import RaftCore
import RecordModel

/// `/kv/1/{container}/{environment}/get|set|list|changes`: a user's preferences.
struct KeyValues {
    var context: WebContext
    var store: StoreKey
    var deadline: Deadline
    var body: [UInt8]
    var idempotencyKey: String?
    /// The request's own, for its errors.
    var uuid: String

    private var group: GroupID {
        let database = DatabaseKey(
            container: store.container, environment: store.environment, scope: .private, owner: store.user)
        return context.node.map.group(of: ZoneKey(database: database, name: "_keyValueStore"))
    }

    func respond(to action: String) async throws(RequestFailure) -> Reply {
        let json = try parsed()
        switch action {
        case "get": return try await read(.get(keys: try keys(json)))
        case "list": return try await read(.list(after: json["after"]?.string))
        case "changes":
            let limit: Int
            switch json["resultsLimit"] {
            case nil, .null?: limit = KeyValueTables.pageMax
            case .integer(let number)? where number > 0: limit = Int(min(number, Int64(KeyValueTables.pageMax)))
            default: throw RequestFailure(.badRequest, "resultsLimit: a whole number above 0 is expected")
            }
            return try await read(
                .changes(since: json["syncToken"]?.string.flatMap { $0.isEmpty ? nil : $0 }, limit: limit))
        case "set": return try await set(json)
        case "watch": throw .notBuilt("watching preferences")
        default: throw RequestFailure(.notFound, "no action '\(action)': there are get, set, list and changes")
        }
    }

    private func parsed() throws(RequestFailure) -> JSONValue {
        if body.isEmpty { return .object([]) }
        do throws(JSONError) {
            let json = try JSONParser.parse(body)
            guard case .object = json else { throw JSONError(position: 0, expected: "an object", found: json.kind) }
            return json
        } catch {
            throw RequestFailure(.badRequest, "the body is not a JSON object: \(error)")
        }
    }

    private func keys(_ json: JSONValue) throws(RequestFailure) -> [String] {
        guard let members = json["keys"]?.array else {
            throw RequestFailure(.badRequest, "keys: an array of strings is expected")
        }
        let keys = members.compactMap(\.string)
        guard keys.count == members.count, keys.count <= Limits.keysMax else {
            throw RequestFailure(.badRequest, "keys: at most \(Limits.keysMax) strings are expected")
        }
        return keys
    }

    private func read(_ read: ShardRead.KeyValueRead) async throws(RequestFailure) -> Reply {
        switch try await context.read(.keyValue(store, read), from: group, by: deadline) {
        case .found(let answer): return Reply(body: answer.bytes)
        case .refused(let error): throw RequestFailure(error)
        case .needsSchema: throw RequestFailure(.internalError, "preferences need no schema")
        }
    }

    private func set(_ json: JSONValue) async throws(RequestFailure) -> Reply {
        let command = KeyValueCommand(
            store: store, time: context.now, writes: try writes(json),
            idempotencyKey: try idempotencyKey.map { text throws(RequestFailure) in
                try UUIDv7.parse(text, now: context.now)
            },
            device: json["device"]?.string)
        let bytes = try await context.submit(.keyValue(command), to: group, by: deadline)
        return try reply(to: command, unpacked(bytes))
    }

    private func writes(_ json: JSONValue) throws(RequestFailure) -> [KeyValueCommand.Write] {
        guard let members = json["writes"]?.array else {
            throw RequestFailure(
                .badRequest, #"writes: an array such as [{"key": "theme", "value": "dark"}] is expected; null deletes"#)
        }
        var writes: [KeyValueCommand.Write] = []
        for (index, member) in members.enumerated() {
            guard let key = member["key"]?.string else {
                throw RequestFailure(.badRequest, "writes[\(index)].key: a string is expected")
            }
            guard let value = member["value"] else {
                throw RequestFailure(.badRequest, "writes[\(index)].value: is missing; null deletes the key")
            }
            var write = KeyValueCommand.Write(key: key, value: nil)
            if !value.isNull {
                do throws(ServiceError) {
                    write.value = try PropertyValue(json: value, path: "writes[\(index)].value")
                } catch {
                    throw RequestFailure(error)
                }
            }
            if let version = member["version"], !version.isNull {
                guard let tag = version.string.flatMap(ChangeTag.init) else {
                    throw RequestFailure(.badRequest, "writes[\(index)].version: it is not one that this server gave")
                }
                write.expectedVersion = tag
            }
            writes.append(write)
        }
        return writes
    }

    private func reply(to command: KeyValueCommand, _ outcome: KeyValueOutcome) throws(RequestFailure) -> Reply {
        switch outcome {
        case .applied(let versions, let usage):
            return Reply { writer in
                writer.key("values")
                writer.array { writer in
                    for (write, version) in zip(command.writes, versions) {
                        writer.object { writer in
                            writer.member("key", write.key)
                            if let version { writer.member("version", version.description) }
                            if write.value == nil { writer.member("deleted", true) }
                        }
                    }
                }
                writer.key("usage")
                writer.object { writer in
                    writer.member("keys", integer: Int64(usage.keys))
                    writer.member("bytes", integer: Int64(usage.bytes))
                }
            }
        case .refused(let refusal):
            throw RequestFailure(refusal.isQuotaViolation ? .quotaExceeded : .badRequest, refusal.description)
        case .conflict(let conflicts):
            let error = ServiceError(.conflict, "a value was written meanwhile; see conflicts. Nothing was changed")
            return Reply(error, uuid: uuid) { writer in
                writer.key("conflicts")
                writer.array { writer in
                    for conflict in conflicts {
                        writer.object { writer in
                            writer.member("key", conflict.key)
                            if let version = conflict.version { writer.member("version", version.description) }
                            if let value = conflict.value {
                                writer.key("value")
                                value.write(to: &writer)
                            }
                        }
                    }
                }
            }
        }
    }
}
