import Admission
import Directory
import RecordModel
import Synchronization
import Testing
import Wire

@testable import Service
@testable import WebServices

@Suite("The parts of the sign-in pages")
struct SignInPagesTests {
    private static let evil = #""'><script>alert(1)</script>&"#

    private func text(_ reply: Reply) -> String { String(decoding: reply.body, as: UTF8.self) }

    private func header(_ name: String, _ reply: Reply) -> String? { reply.headers.first { $0.name == name }?.value }

    @Test("text of others is escaped wherever it stands in a page")
    func escaping() {
        var page = SignInPage(
            kind: .signIn, ticket: Self.evil, cookie: BrowserCookie(), container: Self.evil, isDevelopment: true)
        page.providers = [Self.evil]
        page.problem = Self.evil
        page.name = Self.evil
        page.isSignUpOpen = true
        for markup in [
            text(page.page.reply()), text(Page.problem(Self.evil, requestID: Self.evil).reply()),
            text(Page.goingOn(to: Self.evil, at: "https://x.example/?a=\"&b='").reply()),
            text(
                ClosingPage(
                    outcome: .signedIn(webAuthToken: Self.evil, name: Self.evil), audience: [Self.evil]
                ).page.reply()),
        ] {
            #expect(!markup.contains("<script>"))
            #expect(!markup.contains("\"'>"))
            #expect(!markup.contains("?a=\""))
        }
    }

    @Test("a page may load nothing, be framed by nobody, and is not stored; each has another nonce")
    func policy() throws {
        var page = SignInPage(
            kind: .signIn, ticket: "t", cookie: BrowserCookie(), container: "c", isDevelopment: false)
        page.callbackOrigin = "https://app.example"
        let reply = page.page.reply()
        let policy = try #require(header("content-security-policy", reply))
        #expect(policy.hasPrefix("default-src 'none'; style-src 'nonce-"))
        #expect(policy.contains("frame-ancestors 'none'"))
        #expect(policy.contains("form-action 'self' https://app.example"))
        #expect(!policy.contains("script-src"))
        #expect(header("cache-control", reply) == "no-store")
        #expect(header("referrer-policy", reply) == "same-origin")
        #expect(header("content-security-policy", page.page.reply()) != policy)
        let closing = ClosingPage(outcome: .failed(reason: "no"), audience: []).page.reply()
        let nonce = try #require(
            header("content-security-policy", closing)?.split(separator: "script-src 'nonce-").last?.prefix(32))
        #expect(text(closing).contains("<script nonce=\"\(nonce)\">"))
    }

    @Test("a popup's page tells the token to its audience under both names, and the reason where there is none")
    func closing() {
        let done = text(
            ClosingPage(
                outcome: .signedIn(webAuthToken: "W", name: "ada"),
                audience: ["https://a.example", "https://b.example"]
            ).page.reply())
        #expect(done.contains(#"var message = {"ckWebAuthToken":"W","ckSession":"W"};"#))
        #expect(done.contains(#"var targets = ["https://a.example","https://b.example"];"#))
        let failed = text(ClosingPage(outcome: .failed(reason: "gave up"), audience: []).page.reply())
        #expect(failed.contains(#"var message = {"errorMessage":"gave up"};"#))
        #expect(failed.contains("var targets = [];"))
    }

    @Test("forms are decoded as browsers encode them, and nothing in them traps")
    func forms() throws {
        let form = SignInForm(urlEncoded: Array("name=a+b%26%C3%A4&password=%3D%2B&empty=&keepSignedIn=true&x".utf8))
        #expect(form["name"] == "a b&ä" && form["password"] == "=+" && form.keepsSignedIn)
        #expect(form["empty"] == nil && form["x"] == nil && form["none"] == nil)
        for odd in ["", "&", "=", "%", "a=%", "a=%4", "a=%zz", "&&=&="] { _ = SignInForm(urlEncoded: Array(odd.utf8)) }
        // No form here has more fields than a few.
        let many = String(repeating: "a&", count: SignInForm.fieldsMax) + "late=1"
        #expect(SignInForm(urlEncoded: Array(many.utf8))["late"] == nil)
        let some = String(repeating: "a&", count: SignInForm.fieldsMax - 1) + "late=1"
        #expect(SignInForm(urlEncoded: Array(some.utf8))["late"] == "1")
        let json = try SignInForm(json: Array(#"{"name": "ada", "keepSignedIn": true, "n": 1}"#.utf8))
        #expect(json["name"] == "ada" && json.keepsSignedIn && json["n"] == nil)
        #expect(try !SignInForm(json: Array(#"{"keepSignedIn": false}"#.utf8)).keepsSignedIn)
        #expect(throws: RequestFailure.self) { try SignInForm(json: Array("[]".utf8)) }
        #expect(throws: RequestFailure.self) { try SignInForm(json: Array("name=ada".utf8)) }
    }

    @Test(
        "a parameter is added to a URL whatever it has already",
        arguments: [
            ("https://a.example/x", "https://a.example/x?t=%2B%20"),
            ("https://a.example/x?y=1", "https://a.example/x?y=1&t=%2B%20"),
            ("https://a.example/x?#top", "https://a.example/x?t=%2B%20#top"),
            ("app://in#a?b", "app://in?t=%2B%20#a?b"),
        ])
    func addedParameters(url: String, expected: String) {
        #expect(URLText.adding([("t", "+ ")], to: url) == expected)
    }

    @Test("callback URLs are https, this machine, or an app's own scheme")
    func callbacks() {
        for good in [
            "https://app.example/done?x=1", "http://localhost:3000/", "http://127.0.0.1/x", "http://[::1]:8080/",
            "com.example.app:/in", "cloudkit-iCloud.com.example.app://in",
        ] { #expect(CallbackRule.allows(good), "\(good)") }
        for bad in [
            "", "app.example", "http://app.example/", "http://localhost.evil.example/", "http://127.0.0.1.evil/",
            "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https:/x",
            "https://",
            "https://a b/", "https://a.example/\u{E4}", "https://a.example/\r\nset-cookie: x", "1app:/x",
            "https://user@a.example;script-src/",
        ] { #expect(!CallbackRule.allows(bad), "\(bad)") }
        #expect(URLText.origin(of: "HTTPS://App.Example:8443/x?y") == "https://app.example:8443")
        #expect(URLText.origin(of: "com.example.app:/in") == "com.example.app:")
    }

    @Test("the cookie is found among others, and only where it is whole")
    func cookies() {
        let value = String(repeating: "0a", count: 16)
        let name = BrowserCookie.name
        #expect(BrowserCookie(header: "a=b; \(name)=\(value); c=d")?.value == value)
        for bad in [
            nil, "", name, "\(name)=", "\(name)=\(value)0", "\(name)=\(value.uppercased())", "x\(name)=\(value)",
        ] {
            #expect(BrowserCookie(header: bad) == nil, "\(bad ?? "nil")")
        }
        let cookie = BrowserCookie()
        #expect(cookie.matches(cookie.value))
        // Any one digit that is another makes another cookie, wherever it stands.
        for position in 0..<32 {
            for digit in "0123456789abcdef" {
                var digits = Array(cookie.value)
                if digits[position] == digit { continue }
                digits[position] = digit
                #expect(!cookie.matches(String(digits)))
            }
        }
        #expect(!cookie.matches(nil) && !cookie.matches(""))
        #expect(cookie.header.value.hasSuffix("Path=/; Max-Age=1800; Secure; HttpOnly; SameSite=Lax"))
    }

    @Test("tickets and states survive their codec")
    func codecs() throws {
        let ticket = SignInTicket(tokenID: "0123", origin: "https://zk.example")
        #expect(try SignInTicket(decoding: ticket.encoded()) == ticket)
        let state = ProviderState(
            ticket: ticket, provider: "p", nonce: "n", verifier: "v", keepsSignedIn: true, browser: "b")
        #expect(try ProviderState(decoding: state.encoded()) == state)
    }

    @Test("a wait is told in seconds, or in minutes where it is long")
    func waits() {
        #expect(SignInAttempts.words(1) == "1 second" && SignInAttempts.words(64) == "64 seconds")
        #expect(SignInAttempts.words(128) == "3 minutes" && SignInAttempts.words(900) == "15 minutes")
    }

    @Test("names that nobody has are locked like others")
    func decoys() {
        let decoys = LocalLockouts()
        for _ in 0..<5 { decoys.note("x", time: 1_000) }
        #expect(decoys.lockout(of: "x")?.isLocked(at: 1_000) == false)
        decoys.note("x", time: 1_000)
        #expect(decoys.lockout(of: "x")?.isLocked(at: 1_999) == true)
        #expect(decoys.lockout(of: "x")?.isLocked(at: 2_000) == false)
        #expect(decoys.lockout(of: "y") == nil)
    }

    @Test("what a node remembers by itself is bounded; the oldest is forgotten first")
    func memory() {
        let memory = BoundedMemory<Int>(countMax: 100)
        for number in 0..<1_000 { memory.change(String(number), time: Int64(number)) { _ in number } }
        let remembered = (0..<1_000).filter { (number: Int) in memory[String(number)] == number }
        #expect((75...100).contains(remembered.count) && remembered == Array((1_000 - remembered.count)..<1_000))
        // Also where all are of one moment.
        let flood = BoundedMemory<Int>(countMax: 100)
        for number in 0..<1_000 { flood.change("\(number)", time: 7) { _ in number } }
        #expect((75...100).contains((0..<1_000).count { flood["\($0)"] != nil }) && flood["999"] == 999)
    }

    @Test("a browser is known by a cookie of this cluster, for its account, until it expires")
    func knownBrowsers() throws {
        let signer = SessionSigner(clusterKey: [UInt8](repeating: 1, count: 32))
        let known = KnownBrowser(accountID: "a1", id: String(repeating: "7", count: 32))
        let cookie = KnownBrowser.header(known.sealed(by: signer, now: 1_000)).value
        #expect(cookie.hasSuffix("; Path=/; Max-Age=15552000; Secure; HttpOnly; SameSite=Lax"))
        let header = "a=b; " + cookie.prefix { $0 != ";" }
        #expect(KnownBrowser(header: header, signer: signer, now: 2_000) == known)
        #expect(KnownBrowser(header: header, signer: signer, now: 1_000 + 15_552_000_000) == nil)
        let other = SessionSigner(clusterKey: [UInt8](repeating: 2, count: 32))
        #expect(KnownBrowser(header: header, signer: other, now: 2_000) == nil)
        for bad in [nil, "", "\(KnownBrowser.cookieName)=", "\(KnownBrowser.cookieName)=zkt1_x"] {
            #expect(KnownBrowser(header: bad, signer: signer, now: 2_000) == nil)
        }
        let places = KnownPlaces()
        #expect(places.place(of: "a1", browser: known, address: "", now: 1) == "browser \(known.id)")
        #expect(places.place(of: "a2", browser: known, address: "10.0.0.1", now: 1) == nil)
        places.didSignIn("a2", address: "10.0.0.1", now: 1)
        places.didSignIn("a2", address: "", now: 1)
        #expect(places.place(of: "a2", browser: known, address: "10.0.0.1", now: 2) != nil)
        for (account, address) in [("a2", "10.0.0.2"), ("a1", "10.0.0.1"), ("a2", "")] {
            #expect(places.place(of: account, browser: nil, address: address, now: 2) == nil)
        }
        #expect(places.place(of: "a2", browser: nil, address: "10.0.0.1", now: 31 * 86_400_000) == nil)
    }
}
