import ArgumentParser
import NIOHTTP1
import RecordModel
import ServiceClient

/// A cluster as one caller reaches it.
struct Connection: Sendable {
    var settings: ConnectionSettings
    var client: ServiceClient

    func container() throws -> String {
        guard let container = settings.container else {
            throw ValidationError("--container is missing; name it, or set ZONEKEEPER_CONTAINER")
        }
        return container
    }

    /// The same with more URLs to try where nobody answers; without those that would send the token unencrypted.
    func reaching(_ urls: [String]) -> Connection {
        let more = urls.filter { $0.hasPrefix("https://") && !client.urls.contains($0) }
        if more.isEmpty { return self }
        var connection = self
        connection.client = ServiceClient(
            http: client.http, urls: client.urls + more, administratorSecret: client.administratorSecret)
        return connection
    }

    /// Sends an administrator's request.
    /// - Parameters:
    ///   - route: what follows `/admin/1/`.
    ///   - parameters: those that are nil are left out.
    ///   - isSlow: the server takes up to a minute, and a second attempt would be the same work once more.
    ///   - isRepeatable: whether a repeat after an unknown outcome does no harm; nil for whether it is a GET.
    /// - Throws: `CommandFailure` with the server's code and reason, or what kept it from answering.
    func administer(
        _ method: String, _ route: String, parameters: KeyValuePairs<String, String?> = [:], body: JSONValue? = nil,
        isSlow: Bool = false, isRepeatable: Bool? = nil
    ) async throws -> ServiceResponse {
        try await administer(
            method, route, Self.present(parameters), body: body?.serialized() ?? [], isSlow: isSlow,
            isRepeatable: isRepeatable)
    }

    /// The same, about the container and the environment that the options name.
    func administerPlace(
        _ method: String, _ route: String, parameters: KeyValuePairs<String, String?> = [:], body: JSONValue? = nil
    ) async throws -> ServiceResponse {
        let place = [(name: "container", value: try container()), (name: "environment", value: settings.environment)]
        return try await administer(method, route, place + Self.present(parameters), body: body?.serialized() ?? [])
    }

    private static func present(_ parameters: KeyValuePairs<String, String?>) -> [(name: String, value: String)] {
        parameters.compactMap { name, value in value.map { (name, $0) } }
    }

    /// The same, with parameters that are put together.
    func administer(
        _ method: String, _ route: String, _ parameters: [(name: String, value: String)], body: [UInt8] = [],
        isSlow: Bool = false, isRepeatable: Bool? = nil
    ) async throws -> ServiceResponse {
        try needAdministrator()
        var request = ServiceRequest(
            .init(rawValue: method), "/admin/1/" + route, parameters: parameters, body: body, isAdministrative: true,
            isRepeatable: isRepeatable)
        if isSlow {
            (request.timeoutSeconds, request.patienceSeconds, request.isRepeatable) = (75, 0, false)
        }
        return try await send(patient(request)).checked()
    }

    /// Reads a list of the administration to its end, and hands over each page's JSON.
    /// - Throws: what `administer` throws; `CommandFailure` where the pages do not go on.
    func administerPages(
        _ route: String, parameters: KeyValuePairs<String, String?> = [:], isSlow: Bool = false,
        _ body: (JSONValue) throws -> Void
    ) async throws {
        var after: String?
        while true {
            let place = after.map { [(name: "after", value: $0)] } ?? []
            let page = try await administer("GET", route, Self.present(parameters) + place, isSlow: isSlow).json()
            try body(page)
            guard let next = page["next"]?.string else { return }
            guard next != after else {
                throw CommandFailure("the list '\(route)' does not go on after '\(next)', though it says that it does")
            }
            after = next
        }
    }

    /// All entries of a list of the administration, which its answers hold under the route's name.
    func administerList(_ route: String, parameters: KeyValuePairs<String, String?> = [:]) async throws -> [JSONValue] {
        var entries: [JSONValue] = []
        try await administerPages(route, parameters: parameters) { page in
            entries += try needed(page[route]?.array, route)
        }
        return entries
    }

    /// - Throws: `ValidationError` if there is no administrator's token.
    func needAdministrator() throws {
        guard client.administratorSecret != nil else {
            if let path = settings.administratorTokenFile {
                throw ValidationError(
                    "this needs the administrator's token, and ZONEKEEPER_ADMIN_TOKEN_FILE names \(path), which is not there"
                )
            }
            throw ValidationError(
                "this needs the administrator's token; name its file with --admin-token-file, or set "
                    + "ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
    }

    /// A request to one database of the container.
    /// - Parameter action: such as `records/query`.
    func request(_ database: String, _ action: String, _ json: JSONValue) throws -> ServiceRequest {
        let path = "/database/1/\(PercentCoding.encode(try container()))/\(settings.environment)/\(database)/\(action)"
        let isRead = [
            "records/query", "records/lookup", "zones/list", "zones/lookup", "changes/zone", "changes/database",
            "assets/upload", "subscriptions/list", "subscriptions/lookup",
        ].contains(action)
        var request = ServiceRequest(.post, path, body: json.serialized(), isRepeatable: isRead)
        request.credentials = try database == "public" ? publicCredentials() : userCredentials()
        return patient(request)
    }

    /// A request to the user's preferences.
    /// - Parameter action: `get`, `set`, `list` or `changes`.
    func preferencesRequest(_ action: String, _ json: JSONValue) throws -> ServiceRequest {
        var request = ServiceRequest(
            .post, "/kv/1/\(PercentCoding.encode(try container()))/\(settings.environment)/\(action)",
            body: json.serialized(), isRepeatable: action != "set")
        request.credentials = try userCredentials()
        if action == "set" { request.idempotencyKey = IdempotencyKeys.make() }
        return patient(request)
    }

    /// A request to the user's notifications.
    /// - Parameter action: `changes` or `watch`.
    func notificationsRequest(_ action: String, _ json: JSONValue) throws -> ServiceRequest {
        var request = ServiceRequest(
            .post, "/push/1/\(PercentCoding.encode(try container()))/\(settings.environment)/\(action)",
            body: json.serialized(), isRepeatable: true)
        request.credentials = try userCredentials()
        return patient(request)
    }

    func preferences(_ action: String, _ json: JSONValue) async throws -> ServiceResponse {
        try await send(try preferencesRequest(action, json)).checked()
    }

    func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        do {
            return try await client.send(request)
        } catch let error as ServiceUnreachable {
            throw CommandFailure(error.description, isOutcomeUnknown: error.isOutcomeUnknown)
        } catch let error as ServiceClientError {
            throw CommandFailure(error)
        }
    }

    func apiToken() throws -> String { try settings.requiredAPIToken() }

    /// What requests for public data show: the server key where there is one, else the tokens.
    private func publicCredentials() throws -> CallerCredentials {
        if let id = settings.actingID { return .acting(id: id) }
        if let key = settings.serverKey { return .key(try ServerKeyFile(path: key.path, id: key.id)) }
        return .tokens(api: try apiToken(), user: try settings.session?.token())
    }

    /// What requests for a user's own data show; a server key has no such data.
    func userCredentials() throws -> CallerCredentials {
        if let id = settings.actingID { return .acting(id: id) }
        guard let session = try settings.session?.token() else {
            let instead =
                settings.serverKey == nil ? "" : " A server key reaches public data only, and this is a user's."
            throw ValidationError(
                "a user's session is missing, and private data is a user's; make one with `zonekeeper user sign-in "
                    + "NAME --token-file FILE` and name it with --web-auth-token-file FILE, or with `zonekeeper token "
                    + "create --session --user NAME` and set ZONEKEEPER_WEB_AUTH_TOKEN.\(instead)")
        }
        return .tokens(api: try apiToken(), user: session)
    }

    private func patient(_ request: ServiceRequest) -> ServiceRequest {
        var request = request
        if let seconds = settings.patienceSeconds { request.patienceSeconds = seconds }
        return request
    }
}

extension ServiceResponse {
    func json() throws(CommandFailure) -> JSONValue {
        do throws(JSONError) {
            return try parsed()
        } catch {
            throw CommandFailure("the answer (HTTP status \(status)) is not JSON: \(error). Is this a Zonekeeper node?")
        }
    }

    /// The response itself, unless it says that the request failed.
    func checked() throws(CommandFailure) -> ServiceResponse {
        if isSuccess { return self }
        guard let json = try? parsed(), let code = json["serverErrorCode"]?.string else {
            throw CommandFailure(
                "HTTP status \(status), without a reason. Is this a Zonekeeper node?",
                isOutcomeUnknown: isOutcomeUnknown)
        }
        let later = retryAfterSeconds.map { " (try again in \(Units.seconds($0)))" } ?? ""
        let signIn = json["redirectURL"]?.string.map { "; sign in with `zonekeeper user sign-in`, or at \($0)" } ?? ""
        let doubt =
            followsUncertainty && isOutcomeUnknown
            ? ". So ended the last attempt; an earlier one may have been done: look before you repeat it" : ""
        throw CommandFailure(
            "\(code): \(json["reason"]?.string ?? "no reason given")\(later)\(signIn)\(doubt)",
            isOutcomeUnknown: isOutcomeUnknown, answer: body)
    }

    /// The objects that a member of the answer holds.
    func entries(_ key: String) throws(CommandFailure) -> [JSONValue] { try json()[key]?.array ?? [] }

    /// The failures of single records or zones inside an answer, as `CODE: name: reason`.
    static func failures(in members: [JSONValue]) -> [String] {
        members.compactMap { member in
            guard let code = member["serverErrorCode"]?.string else { return nil }
            let name = member["recordName"]?.string ?? member["zoneID"]?["zoneName"]?.string.map { "zone \($0)" }
            return "\(code): \(name.map { "\($0): " } ?? "")\(member["reason"]?.string ?? "")"
        }
    }
}

/// A part of an answer that must be there.
func needed<Part>(_ part: Part?, _ name: String) throws(CommandFailure) -> Part {
    guard let part else { throw CommandFailure("the answer has no \(name) in it. Is this a Zonekeeper node?") }
    return part
}

extension Bool {
    /// A parameter that is left out where it is false.
    var parameter: String? { self ? "true" : nil }
}

extension CommandFailure {
    init(_ error: ServiceClientError) { self.init(error.message) }
}
