import HTTPTypes
import HummingbirdCore
import RecordModel
import Service

/// What is under `/device/1/{container}/{environment}/`.
enum DeviceTokenAction: String, CaseIterable, Sendable {
    case create = "tokens/create"
    case register = "tokens/register"

    var methods: [String] { ["POST"] }

    /// - Throws: `NOT_FOUND` for a path that there is not, 405 for a method that it is not called with.
    init(_ url: RequestURL, method: String) throws(RequestFailure) {
        guard url.segments.count == 6, url.segments[1] == "1",
            let action = DeviceTokenAction(rawValue: url.segments.dropFirst(4).joined(separator: "/"))
        else {
            throw RequestFailure(
                .notFound, "tokens are at /device/1/{container}/{environment}/tokens/{create|register}")
        }
        try RequestFailure.require(method, of: action.methods, for: action.rawValue)
        self = action
    }
}

/// `/device/1/{container}/{environment}/tokens/create|register`, and the courier's URL.
struct DeviceTokenRoutes {
    private let service: RecordService
    private let call: WebCall

    init(_ context: WebContext, _ call: WebCall) {
        service = context.service
        self.call = call
    }

    func respond(
        to action: DeviceTokenAction, _ admitted: AdmittedCall, _ route: DataRoute
    ) async throws(RequestFailure) -> Reply {
        let form: DeviceTokenRequest = try admitted.body.form()
        let ofURL = try call.clientID()
        let device = DeviceTokens.Device(
            store: admitted.store(in: route.target), accountID: admitted.accountID, client: form.clientID ?? ofURL)
        guard let environment = DeviceTokens.PushEnvironment(rawValue: form.environment) else {
            throw RequestFailure(
                .badRequest, "apnsEnvironment: 'development' or 'production' is expected, not '\(form.environment)'")
        }
        let tokens = DeviceTokens(service)
        let token: String
        switch action {
        case .create: token = try await tokens.create(device, environment)
        case .register:
            guard let given = form.token else {
                throw RequestFailure(.badRequest, "apnsToken: a token of tokens/create is expected")
            }
            try await tokens.register(given, device, environment)
            token = given
        }
        return Reply { writer in
            writer.member("apnsEnvironment", environment.rawValue)
            writer.member("apnsToken", token)
            writer.member(
                "webcourierURL",
                "\(call.baseURL)/aps?tok=\(token)&ttl=\(DeviceTokens.lifeMilliseconds / 1_000)")
        }
    }

    /// One notification; `null`, which CloudKit JS passes over, where there is none for a while.
    func courier() async throws(RequestFailure) -> Reply {
        try RequestFailure.require(call.request.method.rawValue, of: ["GET"], for: "aps")
        guard let token = call.url["tok"], !token.isEmpty else {
            throw RequestFailure(.badRequest, "tok: a token of tokens/create is expected")
        }
        let payload = try await call.clientDisconnect.whileClientStays { [service, call] () throws(RequestFailure) in
            try await DeviceTokens(service).next(token, address: call.address)
        }
        return Reply(body: payload ?? Array("null".utf8))
    }
}
