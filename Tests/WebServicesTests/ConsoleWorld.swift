import Admission
import Directory
import RecordModel
import Service
import Telemetry
import TestSupport
import Wire

@testable import WebServices

/// A node with a container, as the tests of the console need it.
struct ConsoleWorld {
    static let container = "iCloud.test.console"
    static let origin = "https://localhost"
    static let password = "correct horse"

    let node: SingleNode

    /// - Parameter tracer: records the node's traces.
    init(service: ServiceSettings = ServiceSettings(), tracer: NodeTracer? = nil) async throws {
        node = try await SingleNode.start(shards: 1, service: service, tracer: tracer)
        _ = try await admin("POST", "containers", #"{"name": "\#(Self.container)"}"#)
        _ = try await link()
    }

    /// A browser, as far as the server can tell.
    struct Browser {
        /// As the header has it: name and value.
        var cookie: String?
        var csrf: String?
        var origin: String? = ConsoleWorld.origin
        var site: String? = "same-origin"
    }

    func send(
        _ method: String, _ target: String, _ body: String = "", headers: [(String, String)]
    ) async throws -> SignInWorld.Page {
        var request = InProcessService.Request(method: method, target: target)
        request.headers = headers
        request.body = Array(body.utf8)
        var answer = try await node.service.answer(request)
        // A machine that hashes passwords and does much else at once may be late with a round of the log.
        for _ in 0..<20 where answer.status == 503 && !target.hasSuffix("console/links") {
            answer = try await node.service.answer(request)
        }
        return SignInWorld.Page(answer)
    }

    /// A request of a browser for `/admin/1/`, or for any path that begins with a slash.
    func browse(
        _ browser: Browser, _ method: String, _ path: String, _ body: String = ""
    ) async throws -> SignInWorld.Page {
        var headers: [(String, String)] = []
        if let cookie = browser.cookie { headers.append(("Cookie", cookie)) }
        if let csrf = browser.csrf { headers.append(("X-Zonekeeper-CSRF", csrf)) }
        if let origin = browser.origin { headers.append(("Origin", origin)) }
        if let site = browser.site { headers.append(("Sec-Fetch-Site", site)) }
        return try await send(method, path.hasPrefix("/") ? path : "/admin/1/\(path)", body, headers: headers)
    }

    /// A request with a token, usually that of the nodes.
    func token(
        _ method: String, _ path: String, _ body: String = "", secret: String = SingleNode.administratorToken
    ) async throws -> SignInWorld.Page {
        try await send(
            method, path.hasPrefix("/") ? path : "/admin/1/\(path)", body,
            headers: [("Authorization", "Bearer \(secret)")])
    }

    /// The answer to a request with the nodes' token, which must succeed.
    @discardableResult
    func admin(_ method: String, _ path: String, _ body: String = "") async throws -> JSONValue {
        let page = try await token(method, path, body)
        guard page.status == 200 else { throw TestFailure("\(method) \(path): \(page)") }
        return page.json
    }

    /// The secret of a new link.
    func link(_ secret: String = SingleNode.administratorToken) async throws -> String {
        let page = try await token("POST", "console/links", secret: secret)
        guard let secret = page.json["secret"]?.string,
            page.json["url"]?.string == "\(Self.origin)/console/#link=\(secret)"
        else { throw TestFailure("\(page)") }
        return secret
    }

    /// A browser after it signed in; the answer must be 200.
    func signedIn(_ page: SignInWorld.Page) throws -> Browser {
        guard page.status == 200, let cookie = page["set-cookie"]?.split(separator: ";").first,
            let csrf = page.json["csrfToken"]?.string
        else { throw TestFailure("\(page)") }
        return Browser(cookie: String(cookie), csrf: csrf)
    }

    func signIn(link: String, _ browser: Browser = Browser()) async throws -> SignInWorld.Page {
        try await browse(browser, "POST", "console/sign-in", #"{"link": "\#(link)"}"#)
    }

    func signIn(
        _ name: String, _ password: String = password, _ browser: Browser = Browser()
    ) async throws -> SignInWorld.Page {
        try await browse(
            browser, "POST", "console/sign-in", #"{"name": "\#(name)", "password": "\#(password)"}"#)
    }

    /// A new administrator with `password`, and a browser in which they signed in.
    func member(_ name: String, _ role: String, containers: String = "null") async throws -> Browser {
        try await admin(
            "POST", "administrators",
            #"{"name": "\#(name)", "role": "\#(role)", "containers": \#(containers), "password": "\#(Self.password)"}"#)
        return try signedIn(try await signIn(name))
    }
}
