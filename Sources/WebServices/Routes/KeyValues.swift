import Admission
import Cluster
import Directory
import KeyValueStore
import RaftCore
import RecordModel

/// `/kv/1/{container}/{environment}/get|set|list|changes|usage|watch`: a user's preferences.
struct KeyValues {
    var context: WebContext
    var store: StoreKey
    var deadline: Deadline
    var body: [UInt8]
    var idempotencyKey: String?
    /// The request's own, for its errors.
    var uuid: String
    /// What `watch` needs to know of the request beside its body.
    var watching: Watching

    /// The request of a `watch`.
    struct Watching: Sendable {
        var credentials: Credentials
        var target: Target
        /// Whether it came with GET, and so asks for a stream.
        var isStream: Bool
        /// Where a stream goes on: the header of a browser that comes again, else the parameter.
        var token: String?
        /// The parameter `resultsLimit`.
        var limit: String?
        /// Tells where the client goes away.
        var departure: Departure?
        /// Who asks, for the audit log; nil where the request does not say.
        var origin: AuditOrigin?
    }

    private var group: GroupID {
        let database = DatabaseKey(
            container: store.container, environment: store.environment, scope: .private, owner: store.user)
        return context.node.map.group(of: ZoneKey(database: database, name: "_keyValueStore"))
    }

    func respond(to action: KeyValueAction) async throws(RequestFailure) -> Reply {
        let json = try parsed()
        switch action {
        case .get: return try await read(.get(keys: try keys(json)))
        case .list: return try await read(.list(after: json["after"]?.string))
        case .usage: return try await read(.usage)
        case .changes:
            let answer = try await Self.page(
                of: store, since: try syncToken(json), limit: try limit(json), from: group, in: context, by: deadline)
            return Reply(body: answer.bytes)
        case .set: return try await set(json)
        case .watch: return try await watch(json)
        }
    }

    /// A page of a store's feed.
    /// - Throws: `BAD_REQUEST` for a token that cannot be followed, with why.
    static func page(
        of store: StoreKey, since token: String?, limit: Int, from group: GroupID, in context: WebContext,
        by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        let answer = try await found(
            context.read(.keyValue(store, .changes(since: token, limit: limit)), from: group, by: deadline))
        if let expiry = answer.expiry { throw RequestFailure(expiry) }
        return answer
    }

    private func watch(_ json: JSONValue) async throws(RequestFailure) -> Reply {
        var watch = KeyValueWatch(
            context: context, store: store, group: group, credentials: watching.credentials, target: watching.target,
            uuid: uuid, departure: watching.departure, origin: watching.origin)
        guard watching.isStream else {
            watch.limit = try limit(json)
            let seconds: UInt64
            switch json["timeout"] {
            case nil, .null?: seconds = Self.watchSecondsMax
            case .integer(let number)? where number >= 0: seconds = min(UInt64(number), Self.watchSecondsMax)
            default:
                throw RequestFailure(
                    .badRequest, "timeout: a whole number of seconds is expected, at most \(Self.watchSecondsMax)")
            }
            return try await watch.longPoll(since: try syncToken(json), seconds: seconds)
        }
        let given = watching.limit.map { text in Int64(text).map { JSONValue.integer($0) } ?? .string(text) }
        watch.limit = try limit(.object(given.map { [JSONValue.Member("resultsLimit", $0)] } ?? []))
        return try await KeyValueStream.reply(watch, since: watching.token)
    }

    /// How long a long poll waits at most, in seconds.
    static let watchSecondsMax: UInt64 = 30

    private func limit(_ json: JSONValue) throws(RequestFailure) -> Int {
        switch json["resultsLimit"] {
        case nil, .null?: return KeyValueTables.pageMax
        case .integer(let number)? where number > 0: return Int(min(number, Int64(KeyValueTables.pageMax)))
        default: throw RequestFailure(.badRequest, "resultsLimit: a whole number above 0 is expected")
        }
    }

    /// The token that a body has; one that is no text would be taken for none, and all would be read anew.
    private func syncToken(_ json: JSONValue) throws(RequestFailure) -> String? {
        switch json["syncToken"] {
        case nil, .null?: return nil
        case .string(let token)?: return token.isEmpty ? nil : token
        default: throw RequestFailure(.badRequest, "syncToken: a text is expected")
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
        Reply(body: try await Self.found(context.read(.keyValue(store, read), from: group, by: deadline)).bytes)
    }

    private static func found(_ answer: ReadAnswer) throws(RequestFailure) -> ShardAnswer {
        switch answer {
        case .found(let answer): return answer
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
        // What can only be refused is not logged.
        if let refusal = KeyValueLimits.standard.problem(with: command) { throw RequestFailure(refusal) }
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
                    throw Self.failure(error, key: key)
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

    /// A value that cannot be read; one that is nested too deeply names the rule, as it does where the store finds it.
    private static func failure(_ error: ServiceError, key: String) -> RequestFailure {
        var failure = RequestFailure(error)
        let max = PropertyValue.depthMax
        if error.reason.contains("is nested deeper than \(max)") {
            failure.details = .limit(
                KeyValueRefusal.Rule.valueDepth.name, actual: Int64(max + 1), max: Int64(max), key: key)
        }
        return failure
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
                writer.object { usage.write(to: &$0) }
            }
        case .refused(let refusal):
            throw RequestFailure(refusal)
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
