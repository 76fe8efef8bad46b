import Crypto
import Foundation
import RecordModel
import TestSupport
import Testing

extension Matrix {
    /// Somebody who sends requests.
    struct Caller: Sendable {
        var name: String
        var who: Who
        var credentials: Credentials

        enum Credentials: Sendable {
            /// API token and perhaps web auth token, as query parameters.
            case tokens(api: String?, session: String?)
            case administrator(String)
            case key(id: String, P256.Signing.PrivateKey)
            /// Signs something else than what it sends.
            case badKey(id: String, P256.Signing.PrivateKey)
        }

        /// Sends a request in the caller's name.
        func send(
            _ home: Home, _ path: String, _ body: JSONValue?, method: String = "POST", headers: [(String, String)] = []
        ) async throws -> Answer {
            var call = Call(method, path)
            call.headers = [("Content-Type", "application/json")] + headers
            call.body = body.map { $0.serialized() } ?? []
            switch credentials {
            case .tokens(let api, let session):
                if let api { call.query.append(("ckAPIToken", api)) }
                if let session { call.query.append(("ckWebAuthToken", session)) }
            case .administrator(let secret): call.headers.append(("Authorization", "Bearer \(secret)"))
            case .key(let id, let key): call.signing = { try Self.signature($0, id, key, of: $0.body) }
            case .badKey(let id, let key): call.signing = { try Self.signature($0, id, key, of: Array("other".utf8)) }
            }
            let answer = try await Servers.shared.send(call, to: home.service)
            guard call.signing != nil, Self.mustSignAgain(answer) else { return answer }
            // An error is a result here: a request whose outcome is unknown is not sent again.
            return try await awaitState("a leader that counts signatures since before this one's date") {
                await Self.result { try await Servers.shared.send(call, to: home.service) }
            } until: {
                (try? $0.get()).map(Self.mustSignAgain) != true
            }.get()
        }

        private static func result(of send: () async throws -> Answer) async -> Result<Answer, any Error> {
            do { return .success(try await send()) } catch { return .failure(error) }
        }

        /// Whether another node began to lead after a request was signed, as it may at any time on a busy machine. It
        /// cannot know whether the signature was used before, so nothing was done.
        private static func mustSignAgain(_ answer: Answer) -> Bool {
            answer.json.code == "TRY_AGAIN_LATER" && answer.json["detail"]?.string == "nothingDone"
                && answer.json["reason"]?.string?.contains("keeps count since a moment ago") == true
        }

        /// The headers of `web-services.md` section 3.2.
        private static func signature(
            _ call: Call, _ id: String, _ key: P256.Signing.PrivateKey, of body: [UInt8]
        ) throws -> [(String, String)] {
            // A whole second may have begun before the service did, which refuses signatures from before its time.
            let date = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
            let hash = Data(SHA256.hash(data: body)).base64EncodedString()
            let signature = try key.signature(for: Data("\(date):\(hash):\(call.target)".utf8))
            return [
                ("X-Apple-CloudKit-Request-KeyID", id), ("X-Apple-CloudKit-Request-ISO8601Date", date),
                ("X-Apple-CloudKit-Request-SignatureV1", signature.derRepresentation.base64EncodedString()),
            ]
        }
    }

    /// Makes callers of one environment of a container.
    struct Registrar {
        var home: Home
        var environment: String

        var apiToken: String { home.apiTokens[environment] ?? "" }

        /// A user with a session; `isOver` ends that again.
        func user(
            _ name: String, roles: [String] = [], dismissedFrom: String? = nil, isOver: Bool = false,
            profile: JSONValue = [:]
        ) async throws -> (caller: Caller, recordName: String) {
            let account = "\(name)\(Home.unique())"
            let body: JSONValue = ["name": .string(account)]
            _ = try await home.admin("POST", "users", body.with(profile))
            let token = try await home.admin(
                "POST", "tokens", ["kind": "session", "container": .string(home.container), "user": .string(account)])
            for role in roles { try await addMember(account, role) }
            if let dismissedFrom {
                try await addMember(account, dismissedFrom)
                let place = "container=\(home.container)&environment=\(environment)"
                _ = try await home.admin("DELETE", "roles/members?\(place)&role=\(dismissedFrom)&user=\(account)")
            }
            if isOver { _ = try await home.admin("DELETE", "tokens?id=\(try #require(token["id"]?.string))") }
            var who = Who(user: name, roles: roles)
            if isOver { who.refusal = "AUTHENTICATION_REQUIRED" }
            let session = try #require(token["secret"]?.string)
            return (
                Caller(name: name, who: who, credentials: .tokens(api: apiToken, session: session)),
                try #require(token["userRecordName"]?.string)
            )
        }

        func addMember(_ account: String, _ role: String, in other: String? = nil) async throws {
            _ = try await home.admin(
                "POST", "roles/members",
                [
                    "container": .string(home.container), "environment": .string(other ?? environment),
                    "role": .string(role), "user": .string(account),
                ])
        }

        /// A server-to-server key of a new user.
        func key(
            _ name: String, roles: [String] = [], in other: String? = nil, isOver: Bool = false
        ) async throws -> Caller {
            let account = "\(name)\(Home.unique())"
            _ = try await home.admin("POST", "users", ["name": .string(account)])
            for role in roles { try await addMember(account, role) }
            let key = P256.Signing.PrivateKey()
            let made = try await home.admin(
                "POST", "keys",
                [
                    "container": .string(home.container), "environment": .string(other ?? environment),
                    "publicKey": .string(key.publicKey.pemRepresentation), "user": .string(account), "label": "matrix",
                ])
            let id = try #require(made["id"]?.string)
            if isOver { _ = try await home.admin("DELETE", "keys?id=\(id)") }
            var who = Who(user: name, roles: roles, isKey: true)
            if isOver || other != nil { who.refusal = "AUTHENTICATION_FAILED" }
            return Caller(name: name, who: who, credentials: .key(id: id, key))
        }

        /// A user who has a role in the other environment, and in this one a role that nothing is granted to.
        func memberElsewhere() async throws -> Caller {
            let account = "elsewhere\(Home.unique())"
            _ = try await home.admin("POST", "users", ["name": .string(account)])
            let token = try await home.admin(
                "POST", "tokens", ["kind": "session", "container": .string(home.container), "user": .string(account)])
            try await addMember(account, "Editor", in: environment == "development" ? "production" : "development")
            try await addMember(account, "Idle")
            let session = try #require(token["secret"]?.string)
            return Caller(
                name: "elsewhere", who: Who(user: "elsewhere", roles: ["Idle"]),
                credentials: .tokens(api: apiToken, session: session))
        }

        /// An API token that is not valid here.
        func strayAPIToken(container: String? = nil, environment other: String? = nil, isOver: Bool = false)
            async throws -> String
        {
            let token = try await home.admin(
                "POST", "tokens",
                [
                    "kind": "api", "container": .string(container ?? home.container),
                    "environment": .string(other ?? environment),
                ])
            if isOver { _ = try await home.admin("DELETE", "tokens?id=\(try #require(token["id"]?.string))") }
            return try #require(token["secret"]?.string)
        }
    }
}
