import Admission
import Crypto
import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import WebServices

@Suite("Signing in through an identity provider", .serialized)
struct SignInProviderTests {
    /// The claims that are the same for everybody; a token is believed for an hour.
    private func claims(_ subject: String, _ more: String = "") -> String {
        let now = Int(Date().timeIntervalSince1970)
        return #""sub": "\#(subject)", "iat": \#(now), "exp": \#(now + 600)\#(more)"#
    }

    /// Goes to the provider and back with a code.
    private func visit(
        _ world: SignInWorld, _ provider: FakeProvider, claims: String, code: String = FakeProvider.code,
        nonce: String? = nil, cookie: String = SignInWorld.cookie, named name: String = "Corp"
    ) async throws -> SignInWorld.Page {
        let target = try await address(behindButtonOf: world, named: name)
        let url = RequestURL(target: String(target.dropFirst(provider.issuer.count)))
        #expect(url.segments == ["authorize"])
        #expect(url["response_type"] == "code" && url["client_id"] == FakeProvider.clientID)
        #expect(url["redirect_uri"] == "https://localhost/sign-in/callback" && url["code_challenge_method"] == "S256")
        provider.state.withLock { state in
            state.claims = claims
            state.nonce = nonce ?? url["nonce"] ?? ""
            state.challenge = url["code_challenge"] ?? ""
        }
        let state = try #require(url["state"])
        return try await world.get(
            "/sign-in/callback?code=\(URLText.escape(code))&state=\(state)", cookie: cookie)
    }

    /// Where the button leads that names the provider.
    private func address(behindButtonOf world: SignInWorld, named name: String = "Corp") async throws -> String {
        let away = try await world.post("/sign-in", [("ticket", world.ticket()), ("provider", name)])
        #expect(away.status == 200, "\(away)")
        let link = try #require(away.text.split(separator: "<a href=\"").last?.split(separator: "\"").first)
        return String(link.replacing("&amp;", with: "&"))
    }

    private func add(
        _ provider: FakeProvider, to world: SignInWorld, signUp: Bool, named name: String = "Corp"
    ) async throws {
        let answer = try await world.admin(
            "POST", "providers",
            """
            {"name": "\(name)", "issuer": "\(provider.issuer)", "clientID": "\(FakeProvider.clientID)",
             "clientSecret": "\(FakeProvider.clientSecret)", "allowsSignUp": \(signUp)}
            """)
        #expect(answer["hasSecret"] == .bool(true) && answer["clientSecret"] == nil)
    }

    @Test("a new user gets an account where that is allowed, and the same one the next time")
    func signsUp() async throws {
        try await FakeProvider.run { provider in
            let world = try await SignInWorld()
            try await add(provider, to: world, signUp: true)
            #expect(try await world.get("/sign-in?ticket=\(world.ticket())").text.contains(#"value="Corp""#))
            let about = claims(
                "s-1", #", "email": "Grace@example.com", "email_verified": true, "given_name": "Grace""#)
            for _ in 0..<2 {
                let done = try await visit(world, provider, claims: about)
                #expect(done.status == 200 && done.text.contains("ckWebAuthToken"), "\(done)")
            }
            let users = try await world.admin("GET", "users")["users"]?.array
            #expect(users?.compactMap { $0["name"]?.string } == ["Grace@example.com", "ada"])
            let grace = users?.first
            #expect(grace?["identity"]?["subject"]?.string == "s-1" && grace?["hasPassword"] == .bool(false))
            #expect(grace?["givenName"]?.string == "Grace")
            // An address that is not confirmed, or is another's, makes nobody that other.
            let other = try await visit(
                world, provider, claims: claims("s-2", #", "email": "grace@example.com", "email_verified": true"#))
            #expect(other.status == 200)
            #expect(try await world.admin("GET", "users")["users"]?.array?.count == 3)
            provider.state.withLock { state in
                #expect(state.documents == 1)
                #expect(state.forms.last?["redirect_uri"] == "https://localhost/sign-in/callback")
                // RFC 6749: both are escaped as in a form before they are joined.
                let pair = Array("zone%20keeper:s%20e%3Acret".utf8)
                #expect(state.authorization == "Basic \(Base64.encode(pair))")
            }
            let button = try await world.post("/sign-in", [("ticket", world.ticket()), ("provider", "Corp")])
            #expect(button.status == 200 && button.text.contains("http-equiv=\"refresh\""), "\(button)")
            try await world.node.stop()
        }
    }

    @Test("a provider's name may have letters that are composed of several characters")
    func composedName() async throws {
        try await FakeProvider.run { provider in
            let (world, name) = (try await SignInWorld(), "Cafe\u{301}")
            try await add(provider, to: world, signUp: true, named: name)
            let done = try await visit(world, provider, claims: claims("s-1"), named: name)
            #expect(done.status == 200 && done.text.contains("ckWebAuthToken"), "\(done)")
            try await world.node.stop()
        }
    }

    @Test("a link to a provider asks first, and says for which page; only that page is told of the session")
    func asksFirst() async throws {
        try await FakeProvider.run { provider in
            let world = try await SignInWorld()
            try await add(provider, to: world, signUp: true)
            let evil = "https://evil.example"
            let page = try await world.get(
                "/sign-in/provider?name=Corp&ticket=\(world.ticket(asker: evil))", cookie: SignInWorld.cookie)
            #expect(page.status == 200 && page["location"] == nil && !page.text.contains("http-equiv"), "\(page)")
            #expect(page.text.contains(SignInWorld.container) && page.text.contains(evil))
            #expect(page.text.contains(#"name="provider" value="Corp""#) && !page.text.contains(#"type="password""#))
            // Without a page that asked, none is told.
            let done = try await visit(world, provider, claims: claims("s-1"))
            #expect(done.status == 200 && done.text.contains("var targets = [];"), "\(done)")
            try await world.node.stop()
        }
    }

    @Test("without sign-up only a connected account signs in; what does not fit is refused")
    func refusals() async throws {
        try await FakeProvider.run { provider in
            let world = try await SignInWorld()
            try await add(provider, to: world, signUp: false)
            #expect(try await visit(world, provider, claims: claims("s-1")).status == 403)
            _ = try await world.admin(
                "PATCH", "users?name=ada", #"{"identity": {"issuer": "\#(provider.issuer)", "subject": "s-1"}}"#)
            let done = try await visit(world, provider, claims: claims("s-1"))
            #expect(done.status == 200 && done.text.contains("<strong>ada</strong>"), "\(done)")
            #expect(try await visit(world, provider, claims: claims("s-1"), code: "other").status == 401)
            #expect(try await visit(world, provider, claims: claims("s-1"), nonce: "other").status == 401)
            let elsewhere = String(repeating: "6d", count: 16)
            #expect(try await visit(world, provider, claims: claims("s-1"), cookie: elsewhere).status == 400)
            // Another key under the known name is no reason to read the keys again.
            provider.state.withLock { state in
                state.key = P256.Signing.PrivateKey()
                state.keyID = "k1"
            }
            #expect(try await visit(world, provider, claims: claims("s-1")).status == 401)
            for (target, status) in [
                ("/sign-in/callback?code=x&state=zkt1_x", 400), ("/sign-in/callback", 400),
                ("/sign-in/provider?name=None&ticket=\(world.ticket())", 404),
                ("/sign-in/provider?ticket=\(world.ticket())", 400), ("/sign-in/provider?name=Corp", 400),
            ] { #expect(try await world.get(target, cookie: SignInWorld.cookie).status == status, "\(target)") }
            _ = try await world.admin("DELETE", "providers?name=Corp")
            #expect(try await world.admin("GET", "providers")["providers"]?.array == [])
            try await world.node.stop()
        }
    }

    @Test("a user who says no at the provider is sent back to the app; one who cannot be reached is tried later")
    func declined() async throws {
        let world = try await SignInWorld()
        try await FakeProvider.run { provider in
            try await add(provider, to: world, signUp: false)
            let url = RequestURL(target: try await address(behindButtonOf: world))
            let state = try #require(url["state"])
            let no = try await world.get(
                "/sign-in/callback?error=access_denied&state=\(state)", cookie: SignInWorld.cookie)
            #expect(no.status == 200 && no.text.contains("errorMessage"), "\(no)")
            let failed = try await world.get(
                "/sign-in/callback?error=server_error&state=\(state)", cookie: SignInWorld.cookie)
            #expect(failed.status == 401 && failed.text.contains("server_error"))
            let mixed = try await world.get(
                "/sign-in/callback?code=x&iss=https://other.example&state=\(state)", cookie: SignInWorld.cookie)
            #expect(mixed.status == 401)
        }
        // Nobody listens at the discovery port of the system.
        _ = try await world.admin(
            "POST", "providers", #"{"name": "Gone", "issuer": "http://127.0.0.1:9", "clientID": "x"}"#)
        let gone = try await world.post("/sign-in", [("ticket", world.ticket()), ("provider", "Gone")])
        #expect(gone.status == 503 && gone["retry-after"] != nil, "\(gone)")
        for issuer in ["http://issuer.example", "https://issuer.example?x", "issuer"] {
            _ = try await world.admin(
                "POST", "providers", #"{"name": "Bad", "issuer": "\#(issuer)", "clientID": "x"}"#, status: 400)
        }
        try await world.node.stop()
    }
}
