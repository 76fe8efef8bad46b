import Admission
import RecordModel
import Testing

@Suite("What identity providers say of themselves")
struct ProviderTests {
    private static let issuer = TestProvider.issuer

    private static func document(_ changes: [(String, String)] = []) -> String {
        var members = [
            ("issuer", #""\#(issuer)""#), ("authorization_endpoint", #""\#(issuer)/authorize?tenant=1""#),
            ("token_endpoint", #""https://tokens.example/token""#), ("jwks_uri", #""\#(issuer)/keys""#),
            ("response_types_supported", #"["code","id_token"]"#),
        ]
        for (name, value) in changes {
            members.removeAll { $0.0 == name }
            if !value.isEmpty { members.append((name, value)) }
        }
        return "{" + members.map { #""\#($0.0)":\#($0.1)"# }.joined(separator: ",") + "}"
    }

    private static func refusal(of document: String, issuer: String = Self.issuer) -> ServiceError? {
        AdmissionTests.refusal { () throws(ServiceError) in
            try ProviderDocument(parsing: Array(document.utf8), issuer: issuer)
        }
    }

    @Test("a discovery document gives the endpoints")
    func document() throws {
        let document = try ProviderDocument(parsing: Array(Self.document().utf8), issuer: Self.issuer)
        #expect(document.tokenEndpoint == "https://tokens.example/token")
        #expect(document.keysEndpoint == Self.issuer + "/keys")
        #expect(document.tokenAuthenticationMethods == ["client_secret_basic"])
        #expect(!document.namesIssuerInAnswer)
        let request = AuthorizationRequest(
            clientID: "zone keeper", redirectAddress: "https://k.example/sign-in/callback", state: "zkt1_A-_",
            nonce: "n/1",
            codeChallenge: "c")
        #expect(
            document.authorizationAddress(request)
                == "https://accounts.example/authorize?tenant=1&response_type=code&client_id=zone%20keeper"
                + "&redirect_uri=https%3A%2F%2Fk.example%2Fsign-in%2Fcallback&scope=openid%20email%20profile&state=zkt1_A-_"
                + "&nonce=n%2F1&code_challenge=c&code_challenge_method=S256")
    }

    @Test(
        "documents of others, without TLS or without what is needed are refused by the member at fault",
        arguments: [
            ("issuer", #""https://accounts.example/""#, "that of 'https://accounts.example/'"),
            ("issuer", #""https://evil.example""#, "that of"), ("issuer", "", "that of 'nobody'"),
            ("issuer", "7", "that of 'nobody'"), ("token_endpoint", "", "'token_endpoint'"),
            ("jwks_uri", #""http://accounts.example/keys""#, "not https"),
            ("jwks_uri", #""http://127.0.0.1/keys""#, "not https"), ("jwks_uri", #""file:///etc/keys""#, "'jwks_uri'"),
            ("authorization_endpoint", #""javascript:alert(1)""#, "'authorization_endpoint'"),
            ("authorization_endpoint", #""https://user@evil.example""#, "'authorization_endpoint'"),
            ("authorization_endpoint", #""https://accounts.example/#x""#, "'authorization_endpoint'"),
            ("response_types_supported", #"["id_token"]"#, "'code'"),
            ("code_challenge_methods_supported", #"["plain"]"#, "'S256'"),
        ])
    func badDocuments(member: String, value: String, expected: String) throws {
        let error = try #require(Self.refusal(of: Self.document([(member, value)])))
        #expect(error.code == .internalError)
        #expect(error.reason.contains(Self.issuer) && error.reason.contains(expected), "\(error.reason)")
    }

    @Test("what is not JSON, or far too long, is no document")
    func notJSON() {
        for text in ["", "<html>", "[]", Self.document() + "x", String(repeating: " ", count: 300_000) + "{}"] {
            #expect(Self.refusal(of: text)?.code == .internalError)
        }
    }

    @Test("a provider on this machine may do without TLS")
    func loopback() throws {
        let text = Self.document().replacing("https://accounts.example", with: "http://localhost:9000")
        let document = try ProviderDocument(parsing: Array(text.utf8), issuer: "http://localhost:9000")
        #expect(document.keysEndpoint == "http://localhost:9000/keys")
    }

    @Test("an issuer is an https address, or one of this machine")
    func issuers() throws {
        #expect(
            try ProviderDocument.address(ofIssuer: "https://a.example/tenant/")
                == "https://a.example/tenant/.well-known/openid-configuration")
        for issuer in ["http://localhost:9000", "http://127.0.0.1", "http://[::1]:80", "https://a.example"] {
            #expect(try ProviderDocument.address(ofIssuer: issuer).hasPrefix(issuer))
        }
        for issuer in [
            "", "a.example", "http://a.example", "http://127.0.0.1.evil.example", "http://localhost.evil.example",
            "https://a.example?x", "https://a.example/#", "https://u@a.example", "https://", "ftp://a.example",
        ] {
            let error = AdmissionTests.refusal { () throws(ServiceError) in
                try ProviderDocument.address(ofIssuer: issuer)
            }
            #expect(error?.code == .badRequest, "\(issuer)")
        }
    }

    @Test(
        "a key set without a key that serves is refused",
        arguments: [
            "{}", "[]", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AAAA"}]}"#,
            #"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
            #"{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}"#,
            #"{"keys":[{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}]}"#,
        ])
    func badKeys(text: String) {
        let error = AdmissionTests.refusal { () throws(ServiceError) in
            try ProviderKeys(parsing: Array(text.utf8), issuer: Self.issuer)
        }
        #expect(error?.code == .internalError)
    }

    @Test("the proof key for code exchange is that of RFC 7636, appendix B")
    func proofKey() {
        let proof = PKCE(seed: [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ])
        #expect(proof.verifier == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        #expect(proof.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        #expect(PKCE.challenge(of: proof.verifier) == proof.challenge)
    }
}
