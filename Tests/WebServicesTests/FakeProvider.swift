import Admission
import Crypto
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import RecordModel
import Synchronization

@testable import WebServices

/// An OpenID Connect issuer on this machine: discovery, keys, and a token endpoint that checks what it is sent.
final class FakeProvider: Sendable {
    /// What the next identity token says, and what the provider was asked.
    struct State {
        var claims = ""
        var nonce = ""
        var challenge = ""
        var key = P256.Signing.PrivateKey()
        var keyID = "k1"
        /// How often discovery was asked for.
        var documents = 0
        var forms: [SignInForm] = []
        var authorization: String?
    }

    static let clientID = "zone keeper"
    static let clientSecret = "s e:cret"
    static let code = "the/code+1"

    let state = Mutex(State())
    private let port: Mutex<Int>

    var issuer: String { "http://127.0.0.1:\(port.withLock { $0 })" }

    private init() { port = Mutex(0) }

    /// Serves while the body runs.
    static func run(_ body: (FakeProvider) async throws -> Void) async throws {
        let provider = FakeProvider()
        let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
                try await provider.answer(request)
            },
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in continuation.yield(channel.localAddress?.port ?? 0) },
            logger: Logger(label: "provider") { _ in SwiftLogNoOpLogHandler() })
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await application.run() }
            for await port in ports {
                provider.port.withLock { $0 = port }
                break
            }
            try await body(provider)
            tasks.cancelAll()
        }
    }

    private func answer(_ request: Request) async throws -> Response {
        switch request.uri.path {
        case "/.well-known/openid-configuration":
            state.withLock { $0.documents += 1 }
            return Self.json(
                """
                {"issuer": "\(issuer)", "authorization_endpoint": "\(issuer)/authorize",
                 "token_endpoint": "\(issuer)/token", "jwks_uri": "\(issuer)/keys"}
                """)
        case "/keys":
            let (key, id) = state.withLock { ($0.key, $0.keyID) }
            let point = Array(key.publicKey.rawRepresentation)
            return Self.json(
                """
                {"keys": [{"kty": "EC", "crv": "P-256", "kid": "\(id)", "alg": "ES256", "use": "sig",
                 "x": "\(Base64URL.encode(Array(point[0..<32])))", "y": "\(Base64URL.encode(Array(point[32...])))"}]}
                """)
        case "/token":
            let body = try await request.body.collect(upTo: 1 << 16)
            let form = SignInForm(urlEncoded: Array(body.readableBytesView))
            return try state.withLock { state in
                state.forms.append(form)
                state.authorization = request.headers[.authorization]
                let isRight =
                    form["code"] == Self.code
                    && PKCE.challenge(of: form["code_verifier"] ?? "") == state.challenge
                guard isRight else { return Self.json(#"{"error": "invalid_grant"}"#, status: .badRequest) }
                return Self.json(#"{"access_token": "x", "id_token": "\#(try token(state))"}"#)
            }
        default: return Response(status: .notFound)
        }
    }

    private func token(_ state: State) throws -> String {
        let header = #"{"alg": "ES256", "kid": "\#(state.keyID)"}"#
        let payload = """
            {"iss": "\(issuer)", "aud": "\(Self.clientID)", "nonce": "\(state.nonce)", \(state.claims)}
            """
        let signed = "\(Base64URL.encode(Array(header.utf8))).\(Base64URL.encode(Array(payload.utf8)))"
        let signature = try state.key.signature(for: Array(signed.utf8))
        return "\(signed).\(Base64URL.encode(Array(signature.rawRepresentation)))"
    }

    private static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
