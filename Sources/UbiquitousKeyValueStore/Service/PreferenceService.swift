import RecordModel
import ServiceClient

/// A session at the server, as preferences need it.
protocol PreferenceService: Sendable {
    /// Identifies the session on this device; stable over restarts if possible.
    var name: String { get }

    /// The user's record name, which does not change while the session lives.
    func account() async throws(PreferenceServiceProblem) -> String

    /// A page of the change feed.
    /// - Parameter account: the user; a session that now belongs to another user throws `notSignedIn`.
    func changes(since token: String?, of account: String) async throws(PreferenceServiceProblem) -> PreferencePage

    /// Sends a batch under its id. After an error, the outcome is unknown.
    func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer

    /// Follows the change feed until the connection ends, and hands over each page and the token that it follows.
    /// - Parameter page: says whether to go on.
    func watch(
        since token: String, of account: String, page: @Sendable (_ since: String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem)
}

enum PreferenceServiceProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The feed is to be read from its start.
    case tokenExpired
    /// A retry may help later; the server may say when.
    case unavailable(String, retryAfterMilliseconds: Int64?)
    /// The session was refused: the user has to sign in again.
    case notSignedIn(String)
    /// The server, or a proxy before it, does not accept the request as it is.
    case rejected(String)

    var description: String {
        switch self {
        case .tokenExpired: "the change token has expired"
        case .unavailable(let reason, _), .rejected(let reason): reason
        case .notSignedIn(let reason): "the session is not accepted: \(reason)"
        }
    }

    var retryAfterMilliseconds: Int64? {
        switch self {
        case .unavailable(_, let milliseconds): milliseconds
        // A retry at once would be refused, too. The configuration announces a new session.
        case .notSignedIn: 60_000
        case .tokenExpired, .rejected: nil
        }
    }
}

/// A session of the SDK's, as preferences need it.
struct SessionPreferenceService: PreferenceService {
    private let session: ServiceSession
    let name: String

    init(_ session: ServiceSession) {
        self.session = session
        let configuration = session.configuration
        let credential =
            configuration.webAuthTokenFile.map { "file " + $0 } ?? "token " + (configuration.webAuthToken ?? "")
        name = configuration.urls.joined(separator: ",") + " " + credential
    }

    func account() async throws(PreferenceServiceProblem) -> String {
        do { return try await session.userRecordName() } catch { throw PreferenceServiceProblem(error) }
    }

    func changes(
        since token: String?, of account: String
    ) async throws(PreferenceServiceProblem) -> PreferencePage {
        let json: JSONValue
        do {
            json = try await session.keyValues(
                "changes", body: PreferenceWire.changesRequest(since: token), of: account)
        } catch {
            throw PreferenceServiceProblem(error)
        }
        guard let page = PreferenceWire.page(json) else { throw .strange("changes") }
        return page
    }

    func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer {
        do {
            let request = PreferenceWire.setRequest(batch, device: device)
            let json = try await session.keyValues("set", body: request, idempotencyKey: batch.id, of: account)
            guard let versions = PreferenceWire.versions(json, of: batch) else {
                throw PreferenceServiceProblem.strange("set")
            }
            return .applied(versions)
        } catch let failure as ServiceFailure where failure.retryAfterSeconds == nil && !failure.isSignedOut {
            if let answer = PreferenceWire.rejection(failure.json) { return answer }
            // A proxy before the server does not accept a request of this size.
            if failure.status == 413 {
                return .refused(.other, key: nil, reason: "the request is too large: \(failure.description)")
            }
            let problem = PreferenceServiceProblem(failure)
            guard case .unavailable = problem, (400..<500).contains(failure.status) else { throw problem }
            throw [408, 425, 429].contains(failure.status) ? problem : .rejected(failure.description)
        } catch {
            throw PreferenceServiceProblem(error)
        }
    }

    func watch(
        since token: String, of account: String, page: @Sendable (String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem) {
        do {
            var position = token
            for try await event in session.watchKeyValues(syncToken: token, of: account) {
                switch event.name {
                case "changes":
                    guard let json = try? JSONParser.parse(Array(event.data.utf8)),
                        let found = PreferenceWire.page(json)
                    else { throw PreferenceServiceProblem.strange("watch") }
                    guard await page(position, found) else { return }
                    position = found.token
                case "expired": throw PreferenceServiceProblem.tokenExpired
                case "end":
                    let json = (try? JSONParser.parse(Array(event.data.utf8))) ?? .null
                    throw PreferenceServiceProblem(end: json)
                default: continue
                }
            }
        } catch {
            throw PreferenceServiceProblem(error)
        }
    }
}

extension PreferenceServiceProblem {
    init(_ error: any Error) {
        switch error {
        case let problem as PreferenceServiceProblem: self = problem
        case let failure as ServiceFailure:
            if failure.isSignedOut || failure.code == "AUTHENTICATION_FAILED" {
                self = .notSignedIn(failure.description)
            } else if PreferenceWire.isTokenExpired(failure.json) {
                self = .tokenExpired
            } else {
                self = .unavailable(
                    failure.description, retryAfterMilliseconds: failure.retryAfterSeconds.map(Self.milliseconds))
            }
        default: self = .unavailable("\(error)", retryAfterMilliseconds: nil)
        }
    }

    /// Why a node ended a stream.
    init(end json: JSONValue) {
        let reason = json["reason"]?.string ?? "the node ended the stream"
        if json["serverErrorCode"]?.string?.hasPrefix("AUTHENTICATION") == true {
            self = .notSignedIn(reason)
            return
        }
        self = .unavailable(reason, retryAfterMilliseconds: json.retryAfterSeconds.map(Self.milliseconds))
    }

    /// Between zero and a day.
    private static func milliseconds(_ seconds: Double) -> Int64 {
        seconds.isNaN ? 0 : Int64(min(max(seconds, 0), 86_400) * 1000)
    }

    static func strange(_ action: String) -> PreferenceServiceProblem {
        .unavailable("the answer to '\(action)' is not one of a Zonekeeper node", retryAfterMilliseconds: 60_000)
    }
}

/// The server's JSON for preferences, as `docs/preferences.md` has it.
enum PreferenceWire {
    static func changesRequest(since token: String?) -> [UInt8] {
        JSONValue.object(token.map { [JSONValue.Member("syncToken", .string($0))] } ?? []).serialized()
    }

    /// The body of `set`: every write with the version that it expects.
    static func setRequest(_ batch: PreferenceBatch, device: String) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("writes")
            writer.array { writer in
                for write in batch.writes {
                    writer.object { writer in
                        writer.member("key", write.key.text)
                        writer.key("value")
                        if let value = write.value { value.write(to: &writer) } else { writer.null() }
                        writer.member("version", write.expected.description)
                    }
                }
            }
            writer.member("device", device)
        }
        return writer.bytes
    }

    /// Reads a page of the feed; nil if the JSON is malformed.
    static func page(_ json: JSONValue) -> PreferencePage? {
        guard let members = json["changes"]?.array, let token = json["syncToken"]?.string,
            case .bool(let isMoreComing) = json["moreComing"]
        else { return nil }
        var changes: [PreferencePage.Change] = []
        for member in members {
            guard let key = member["key"]?.string, let version = member["version"]?.string.flatMap(ChangeTag.init)
            else { return nil }
            var value: PropertyValue?
            if let json = member["value"], !json.isNull {
                value = try? PropertyValue(json: json, path: "value")
                if value == nil { return nil }
            } else if member["deleted"] != .bool(true) {
                return nil
            }
            changes.append(
                .init(key: PreferenceKey(key), value: value, version: version, device: member["device"]?.string))
        }
        return PreferencePage(changes: changes, token: token, isMoreComing: isMoreComing)
    }

    /// Reads the versions in the answer to a successful `set`; nil if the JSON is malformed.
    static func versions(_ json: JSONValue, of batch: PreferenceBatch) -> [ChangeTag?]? {
        guard let members = json["values"]?.array, members.count == batch.writes.count else { return nil }
        var versions: [ChangeTag?] = []
        for (member, write) in zip(members, batch.writes) {
            guard let key = member["key"]?.string, PreferenceKey(key) == write.key else { return nil }
            guard let text = member["version"]?.string else {
                versions.append(nil)
                continue
            }
            guard let version = ChangeTag(text) else { return nil }
            versions.append(version)
        }
        return versions
    }

    /// Reads the body of a failed `set`: a conflict or a refusal; nil if it is neither.
    static func rejection(_ json: JSONValue) -> PreferenceUploadAnswer? {
        if json["conflicts"]?.array != nil { return .conflict }
        let reason = json["reason"]?.string ?? "the server gave no reason"
        guard let limit = json["limit"]?.string else {
            // The batch's id was used for another batch, or is too old. The app is told why, as of an answer that
            // nobody understands: this device's clock may be wrong, and then no batch is ever taken.
            if ErrorDetail(ofError: json) == .idempotencyKey { return nil }
            let code = json["serverErrorCode"]?.string
            return code == "BAD_REQUEST" || code == "QUOTA_EXCEEDED" ? .refused(.other, key: nil, reason: reason) : nil
        }
        return .refused(
            PreferenceRefusal.Rule(rawValue: limit) ?? .other, key: json["key"]?.string.map { PreferenceKey($0) },
            reason: reason)
    }

    /// Whether an error says that the feed is to be read from its start.
    static func isTokenExpired(_ json: JSONValue) -> Bool {
        // A token of another store cannot be followed either.
        json["syncTokenExpired"] != nil || ErrorDetail(ofError: json) == .expiredSyncToken
    }
}
