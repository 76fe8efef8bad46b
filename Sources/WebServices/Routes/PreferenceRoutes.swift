import HTTPTypes
import HummingbirdCore
import KeyValueStore
import RecordModel
import Service

/// `/kv/1/{container}/{environment}/get|set|list|changes|usage|watch`: a user's preferences.
struct PreferenceRoutes {
    var preferences: Preferences
    var call: WebCall
    var asked: AdmittedRequest
    /// The request's body.
    var body: [UInt8]
    var deadline: Deadline

    func respond(
        to action: KeyValueAction, watch: (_ preferences: Preferences, _ limit: Int) -> PreferenceStream
    ) async throws(RequestFailure) -> Reply {
        let json = JSONValue.object(try body.jsonMembers())
        var preferences = preferences
        preferences.numbersAsStrings = try numbersAsStrings(json)
        switch action {
        case .get: return Reply(body: try await preferences.get(try keys(json), by: deadline))
        case .list: return Reply(body: try await preferences.list(after: try text(json, "after"), by: deadline))
        case .usage: return Reply(body: try await preferences.usage(by: deadline))
        case .changes:
            return Reply(
                body: try await preferences.page(
                    since: try syncToken(json), limit: try limit(json["resultsLimit"]), by: deadline))
        case .set: return try await set(json)
        case .watch where call.isSafe:
            let given = call.url["resultsLimit"].map { text in Int64(text).map(JSONValue.integer) ?? .string(text) }
            let token = call.lastEventID ?? call.url["syncToken"].flatMap { $0.isEmpty ? nil : $0 }
            return try await watch(preferences, try limit(given)).events(since: token)
        case .watch:
            return try await watch(preferences, try limit(json["resultsLimit"])).longPoll(
                since: try syncToken(json), seconds: try seconds(json["timeout"]))
        }
    }

    /// How long a long poll waits at most, in seconds.
    static let watchSecondsMax: UInt64 = 30

    private func seconds(_ json: JSONValue?) throws(RequestFailure) -> UInt64 {
        switch json {
        case nil, .null?: return Self.watchSecondsMax
        case .integer(let number)? where number >= 0: return min(UInt64(number), Self.watchSecondsMax)
        default:
            throw .badRequest("timeout: a whole number of seconds is expected, at most \(Self.watchSecondsMax)")
        }
    }

    private func limit(_ json: JSONValue?) throws(RequestFailure) -> Int {
        switch json {
        case nil, .null?: return KeyValueTables.pageMax
        case .integer(let number)? where number > 0: return Int(min(number, Int64(KeyValueTables.pageMax)))
        default: throw .badRequest("resultsLimit: a whole number above 0 is expected")
        }
    }

    /// As the body says, or the URL of a stream.
    private func numbersAsStrings(_ json: JSONValue) throws(RequestFailure) -> Bool {
        switch json["numbersAsStrings"] {
        case nil, .null?: return call.url["numbersAsStrings"] == "true"
        case .bool(let flag)?: return flag
        default: throw .badRequest("numbersAsStrings: true or false is expected")
        }
    }

    /// The token that a body has; one that is no text would be taken for none, and everything would be read again.
    private func syncToken(_ json: JSONValue) throws(RequestFailure) -> String? {
        try text(json, "syncToken").flatMap { $0.isEmpty ? nil : $0 }
    }

    /// A text that a body may have.
    private func text(_ json: JSONValue, _ key: String) throws(RequestFailure) -> String? {
        switch json[key] {
        case nil, .null?: return nil
        case .string(let text)?: return text
        default: throw .badRequest("\(key): a text is expected")
        }
    }

    private func keys(_ json: JSONValue) throws(RequestFailure) -> [String] {
        guard let members = json["keys"]?.array else {
            throw .badRequest("keys: an array of strings is expected")
        }
        let keys = members.compactMap(\.string)
        guard keys.count == members.count, keys.count <= Limits.keysMax else {
            throw .badRequest("keys: at most \(Limits.keysMax) strings are expected")
        }
        return keys
    }
}

// Writing.
extension PreferenceRoutes {
    private func set(_ json: JSONValue) async throws(RequestFailure) -> Reply {
        let writes = try writes(json)
        preferences.pay(forWrites: writes.count, of: asked)
        let written = try await preferences.set(
            writes, idempotencyKey: call.request.headers[WebCall.idempotencyKey], device: try text(json, "device"),
            by: deadline)
        switch written {
        case .applied(let versions, let usage):
            return Reply { writer in
                writer.list("values", zip(writes, versions)) { written, writer in
                    let (write, version) = written
                    writer.member("key", write.key)
                    writer.optional("version", version?.description)
                    if write.value == nil { writer.member("deleted", true) }
                }
                writer.object("usage") { usage.write(to: &$0) }
            }
        case .conflict(let conflicts):
            let numbersAsStrings = try numbersAsStrings(json)
            let error = ServiceError(.conflict, "a value was written meanwhile; see conflicts. Nothing was changed")
            return Reply(error, uuid: call.uuid) { writer in
                writer.list("conflicts", conflicts) { conflict, writer in
                    writer.member("key", conflict.key)
                    writer.optional("version", conflict.version?.description)
                    guard let value = conflict.value else { return }
                    writer.key("value")
                    value.write(to: &writer, numbersAsStrings: numbersAsStrings)
                }
            }
        }
    }

    private func writes(_ json: JSONValue) throws(RequestFailure) -> [KeyValueCommand.Write] {
        guard let members = json["writes"]?.array else {
            throw .badRequest(
                #"writes: an array such as [{"key": "theme", "value": "dark"}] is expected; null deletes"#)
        }
        var writes: [KeyValueCommand.Write] = []
        for (index, member) in members.enumerated() {
            guard let key = member["key"]?.string else {
                throw .badRequest("writes[\(index)].key: a string is expected")
            }
            guard let value = member["value"] else {
                throw .badRequest("writes[\(index)].value: is missing; null deletes the key")
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
                    throw .badRequest("writes[\(index)].version: it is not one that this server gave")
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
        if error.detail == .tooDeep {
            failure.details = .limit(
                KeyValueRefusal.Rule.valueDepth.name, actual: Int64(max + 1), max: Int64(max), key: key)
        }
        return failure
    }
}

/// What is under `/kv/1/{container}/{environment}/`.
enum KeyValueAction: String, CaseIterable, Sendable {
    case get, set, list, changes, usage, watch

    /// `watch` is a long poll with POST and a stream with GET.
    var methods: [String] {
        switch self {
        case .get, .set, .list, .changes: ["POST"]
        case .usage, .watch: ["GET", "POST"]
        }
    }

    /// - Throws: `NOT_FOUND` for an action that there is not, 405 for a method that it is not called with.
    init(_ name: String, method: String) throws(RequestFailure) {
        guard let action = KeyValueAction(rawValue: name) else {
            let names = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw .notFound("no action '\(name)': there are \(names)")
        }
        try RequestFailure.require(method, of: action.methods, for: name)
        self = action
    }
}
