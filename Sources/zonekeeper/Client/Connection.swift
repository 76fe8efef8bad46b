import ArgumentParser
import NIOHTTP1
import RecordModel

/// A cluster as one caller reaches it.
struct Connection: Sendable {
    var settings: ConnectionSettings
    var client: ServiceClient

    /// The container that the options or the environment name.
    func container() throws -> String {
        guard let container = settings.container else {
            throw ValidationError("--container is missing; name it, or set ZONEKEEPER_CONTAINER")
        }
        return container
    }

    /// Sends an administrator's request.
    /// - Parameter route: what follows `/admin/1/`.
    /// - Throws: `CommandFailure` with the server's code and reason, or what kept it from answering.
    func administer(
        _ method: String, _ route: String, parameters: [(name: String, value: String)] = [], body: [UInt8] = []
    ) async throws -> ServiceResponse {
        guard client.administratorSecret != nil else {
            throw ValidationError(
                "this needs the administrator's token; name its file with --admin-token-file, or set ZONEKEEPER_ADMIN_TOKEN_FILE"
            )
        }
        return try await send(
            ServiceRequest(
                .init(rawValue: method), "/admin/1/" + route, parameters: parameters, body: body, isAdministrative: true
            )
        ).checked()
    }

    /// Sends a request to one database of the container.
    /// - Parameter action: such as `records/query`.
    func request(_ database: String, _ action: String, _ json: JSONValue) throws -> ServiceRequest {
        let path =
            "/database/1/\(PercentCoding.encode(try container()))/\(settings.environment)/\(database)/\(action)"
        if database != "public" { try needUser() }
        let isRead = [
            "records/query", "records/lookup", "zones/list", "zones/lookup", "changes/zone", "changes/database",
        ].contains(action)
        return ServiceRequest(
            .post, path, parameters: try tokens(), body: json.serialized(), isRepeatable: isRead)
    }

    /// A request to the user's preferences.
    /// - Parameter action: `get`, `set`, `list` or `changes`.
    func preferencesRequest(_ action: String, _ json: JSONValue) throws -> ServiceRequest {
        try needUser()
        var request = ServiceRequest(
            .post, "/kv/1/\(PercentCoding.encode(try container()))/\(settings.environment)/\(action)",
            parameters: try tokens(), body: json.serialized(), isRepeatable: action != "set")
        if action == "set" { request.idempotencyKey = IdempotencyKeys.make() }
        return request
    }

    /// Sends a request; whatever comes back is the answer.
    func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        do {
            return try await client.send(request)
        } catch let error as ServiceUnreachable {
            throw CommandFailure(error.description)
        }
    }

    private func tokens() throws -> [(name: String, value: String)] {
        guard let token = settings.apiToken else {
            throw ValidationError(
                "--api-token is missing; make one with `zonekeeper token create --api`, or set ZONEKEEPER_API_TOKEN")
        }
        var parameters = [(name: "ckAPIToken", value: token)]
        if let session = settings.webAuthToken { parameters.append((name: "ckWebAuthToken", value: session)) }
        return parameters
    }

    private func needUser() throws {
        guard settings.webAuthToken != nil else {
            throw ValidationError(
                "--web-auth-token is missing, and private data is a user's; make one with `zonekeeper token create --session "
                    + "--user NAME`, or set ZONEKEEPER_WEB_AUTH_TOKEN")
        }
    }
}

extension JSONValue {
    /// An object of the members that have a value.
    static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }
}
