import Admission
import RecordModel
import Service
import TestSupport
import Wire

@testable import WebServices

/// A node with a container, an API token and a user, as the tests of signing in need it.
struct SignInWorld {
    static let container = "iCloud.test.sign-in"
    static let origin = "https://localhost"
    static let password = "correct horse"
    static let cookie = String(repeating: "5c", count: 16)

    let node: SingleNode
    var apiToken = (id: "", secret: "")

    /// - Parameter token: more members of the API token.
    init(token: String = "") async throws {
        node = try await SingleNode.start(shards: 1)
        _ = try await admin("POST", "containers", #"{"name": "\#(Self.container)"}"#)
        _ = try await admin("POST", "users", #"{"name": "ada", "password": "\#(Self.password)"}"#)
        let made = try await admin(
            "POST", "tokens",
            #"{"kind": "api", "container": "\#(Self.container)"\#(token.isEmpty ? "" : ", ")\#(token)}"#)
        apiToken = (made["id"]?.string ?? "", made["secret"]?.string ?? "")
    }

    /// The answer to an administrator's request, which must succeed unless another status is named.
    func admin(_ method: String, _ path: String, _ body: String = "", status: Int = 200) async throws -> JSONValue {
        var request = InProcessService.Request(method: method, target: "/admin/1/\(path)")
        request.headers = [("Authorization", "Bearer \(SingleNode.administratorToken)")]
        request.body = Array(body.utf8)
        let answer = try await ask(request)
        guard answer.status == status else {
            throw TestFailure("\(method) \(path): \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
        }
        return try JSONParser.parse(answer.body)
    }

    /// The answer. A machine that hashes passwords and does much else at once may be late with a round of the log: as
    /// programs do, it is asked again where nothing was done.
    private func ask(_ request: InProcessService.Request) async throws -> InProcessService.Answer {
        var answer = try await node.service.answer(request)
        for _ in 0..<5 {
            guard answer.status == 503, String(decoding: answer.body, as: UTF8.self).contains("nothing was done") else {
                break
            }
            answer = try await node.service.answer(request)
        }
        return answer
    }

    /// A link's ticket as `redirectURL` has it.
    func ticket(
        tokenID: String? = nil, expires: Int64 = .max, key: UInt8 = 0, asker: String? = nil
    ) -> String {
        let signer = SessionSigner(clusterKey: (0..<32).map { UInt8($0) ^ key })
        return signer.ticket(
            SignInTicket(tokenID: tokenID ?? apiToken.id, origin: Self.origin, asker: asker).encoded(),
            purpose: SignInTicket.purpose,
            expires: expires)
    }

    func get(_ target: String, cookie: String? = nil) async throws -> Page {
        var request = InProcessService.Request(method: "GET", target: target)
        if let cookie { request.headers.append(("Cookie", "\(BrowserCookie.name)=\(cookie)")) }
        return Page(try await ask(request))
    }

    /// Posts a form as a browser does that was shown the page.
    func post(
        _ path: String, _ fields: [(String, String)], cookie: String? = cookie, check: String = cookie,
        origin: String? = origin
    ) async throws -> Page {
        var request = InProcessService.Request(method: "POST", target: path)
        request.headers = [("Content-Type", "application/x-www-form-urlencoded")]
        if let origin { request.headers.append(("Origin", origin)) }
        if let cookie { request.headers.append(("Cookie", "\(BrowserCookie.name)=\(cookie)")) }
        let all = fields + [("check", check)]
        request.body = Array(URLText.query(all.map { (name: $0.0, value: $0.1) }).utf8)
        return Page(try await ask(request))
    }

    func postJSON(_ path: String, _ body: String, origin: String? = nil) async throws -> Page {
        var request = InProcessService.Request(method: "POST", target: path)
        request.headers = [("Content-Type", "application/json")]
        if let origin { request.headers.append(("Origin", origin)) }
        request.body = Array(body.utf8)
        return Page(try await ask(request))
    }

    /// The token of a session of a user, as administrators make them.
    func session(of user: String) async throws -> String {
        let made = try await admin(
            "POST", "tokens", #"{"kind": "session", "container": "\#(Self.container)", "user": "\#(user)"}"#)
        guard let secret = made["secret"]?.string else { throw TestFailure("\(made)") }
        return secret
    }

    /// The answer to a user's request for the private database of development.
    func post(_ operation: String, by session: String, _ body: String) async throws -> Page {
        try await postJSON(
            "/database/1/\(Self.container)/development/private/\(operation)"
                + "?ckAPIToken=\(apiToken.secret)&ckWebAuthToken=\(session)", body)
    }

    func signIn(_ name: String, _ password: String) async throws -> Page {
        try await postJSON(
            "/sign-in", #"{"apiToken": "\#(apiToken.secret)", "name": "\#(name)", "password": "\#(password)"}"#)
    }

    /// An answer, as tests look at it.
    struct Page: CustomStringConvertible {
        var status: Int
        var headers: [(name: String, value: String)]
        var text: String

        init(_ answer: InProcessService.Answer) {
            status = answer.status
            headers = answer.headers
            text = String(decoding: answer.body, as: UTF8.self)
        }

        subscript(header: String) -> String? { headers.first { $0.name.lowercased() == header }?.value }
        var json: JSONValue { (try? JSONParser.parse(Array(text.utf8))) ?? .null }
        var code: String? { json["serverErrorCode"]?.string }
        var description: String { "\(status) \(headers) \(text)" }
    }
}
