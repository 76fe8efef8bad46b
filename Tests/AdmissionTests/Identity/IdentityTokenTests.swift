import Admission
import RecordModel
import Testing

@Suite("Identity tokens of OpenID Connect")
struct IdentityTokenTests {
    private let provider: TestProvider
    private let keys: ProviderKeys

    init() throws {
        provider = try TestProvider()
        keys = try provider.keys()
    }

    private func verify(
        _ token: String, keys: ProviderKeys? = nil,
        expecting expectation: IdentityExpectation = TestProvider.expectation
    ) async -> Result<IdentityClaims, ServiceError> {
        do throws(ServiceError) {
            return .success(try await IdentityToken.verify(token, keys: keys ?? self.keys, expecting: expectation))
        } catch {
            return .failure(error)
        }
    }

    private func refusal(of token: String, keys: ProviderKeys? = nil) async -> String? {
        guard case .failure(let error) = await verify(token, keys: keys) else { return nil }
        return error.code == .authenticationFailed ? error.reason : "wrong code \(error.code)"
    }

    /// A token signed rightly, by the key of this id.
    private func token(_ changes: [(String, String)] = [], algorithm: String = "ES256", key: String = "ec") throws
        -> String
    {
        try provider.token(
            header: #"{"alg":"\#(algorithm)","kid":"\#(key)","typ":"JWT"}"#, payload: TestProvider.payload(changes),
            algorithm: algorithm)
    }

    @Test(
        "tokens of every kind of key are believed, and give the person",
        arguments: [
            ("RS256", "rsa"), ("PS256", "rsa"), ("RS512", "rsa"), ("RS256", "rs256"), ("ES256", "ec"),
            ("ES384", "p384"),
        ])
    func good(algorithm: String, key: String) async throws {
        let token = try token(algorithm: algorithm, key: key)
        #expect(keys.hasKey(for: token))
        let claims = try await verify(token).get()
        #expect(claims.issuer == TestProvider.issuer && claims.subject == "4711")
        #expect(claims.email == "ada@example.org" && claims.isEmailVerified)
        #expect(claims.givenName == "Ada" && claims.familyName == "Lovelace" && claims.name == "Ada Lovelace")
    }

    @Test("an address is verified only where the provider says so")
    func unverified() async throws {
        for (value, expected) in [
            ("", false), ("false", false), (#""false""#, false), ("1", false), (#""true""#, true),
        ] {
            let claims = try await verify(try token([("email_verified", value)])).get()
            #expect(claims.isEmailVerified == expected, "\(value)")
        }
        let claims = try await verify(try token([("email", ""), ("given_name", #""""#), ("name", "7")])).get()
        #expect(claims.email == nil && claims.givenName == nil && claims.name == nil)
    }

    @Test(
        "every claim is held against what is expected",
        arguments: [
            ("iss", #""https://evil.example""#, "issuer"), ("iss", #""https://accounts.example/""#, "issuer"),
            ("iss", "", "issuer"), ("aud", #""another""#, "another client"), ("aud", "", "another client"),
            ("aud", "[]", "another client"), ("aud", #"["zonekeeper","another"]"#, "another party"),
            ("azp", #""another""#, "another party"), ("azp", "7", "another party"),
            ("nonce", #""n-2""#, "nonce"), ("nonce", "", "nonce"), ("sub", "", "subject"), ("sub", #""""#, "subject"),
            ("sub", "4711", "subject"), ("sub", #""\u212aarl""#, "ASCII"),
            ("sub", #""\#(String(repeating: "x", count: 256))""#, "subject"),
            ("exp", "\(TestProvider.now / 1000 - 61)", "expired"), ("exp", "", "expires"),
            ("exp", #""soon""#, "expires"),
            ("exp", "-1e300", "expired"), ("iat", "\(TestProvider.now / 1000 + 61)", "future"), ("iat", "", "issued"),
            ("iat", "\(TestProvider.now / 1000 - 3601)", "too old"),
            ("nbf", "\(TestProvider.now / 1000 + 61)", "not valid yet"),
            ("nbf", #""x""#, "not valid yet"),
        ])
    func claims(name: String, value: String, expected: String) async throws {
        let reason = try #require(await refusal(of: try token([(name, value)])))
        #expect(reason.contains(expected), "\(reason)")
    }

    @Test("clocks may differ by a minute, and audiences be several where the token names this client")
    func tolerance() async throws {
        let seconds = TestProvider.now / 1000
        for changes in [
            [("exp", "\(seconds - 59)")], [("iat", "\(seconds + 60)")], [("exp", "\(seconds + 300).5")],
            [("aud", #"["another","zonekeeper"]"#), ("azp", #""zonekeeper""#)], [("aud", #"["zonekeeper"]"#)],
            [("azp", #""zonekeeper""#)],
        ] {
            let reason = await refusal(of: try token(changes))
            #expect(reason == nil, "\(changes)")
        }
    }

    @Test("an empty nonce is never expected")
    func emptyNonce() async throws {
        var expectation = TestProvider.expectation
        expectation.nonce = ""
        for value in ["", #""""#] {
            let result = await verify(try token([("nonce", value)]), expecting: expectation)
            #expect(throws: ServiceError.self) { try result.get() }
        }
    }

    @Test(
        "no header makes a token good that the provider's key for it did not sign",
        arguments: [
            (#"{"alg":"none"}"#, "none", "algorithm is 'none'"),
            (#"{"alg":"None","kid":"rsa"}"#, "none", "algorithm is 'None'"),
            (#"{"alg":"HS256","kid":"rsa"}"#, "HS256", "algorithm is 'HS256'"),
            (#"{"alg":"HS256","kid":"secret"}"#, "HS256", "algorithm is 'HS256'"),
            (#"{"alg":"RS256","kid":"rsa"}"#, "HS256", "signature"),
            (#"{"alg":"RS256","kid":"rsa"}"#, "none", "signature"),
            (#"{"alg":"RS256","kid":"rsa"}"#, "PS256", "signature"),
            (#"{"alg":"PS256","kid":"rs256"}"#, "PS256", "no key"),
            (#"{"alg":"RS256","kid":"ec"}"#, "RS256", "no key"), (#"{"alg":"ES256","kid":"p384"}"#, "ES256", "no key"),
            (#"{"alg":"ES256","kid":"rsa"}"#, "ES256", "no key"),
            (#"{"alg":"ES256","kid":"unknown"}"#, "ES256", "no key"),
            (#"{"alg":"RS256"}"#, "RS256", "no key"), (#"{"kid":"rsa"}"#, "RS256", "names no algorithm"),
            (#"{"alg":7}"#, "RS256", "names no algorithm"), (#"["RS256"]"#, "RS256", "header is not JSON"),
            (#"{"alg":"ES256","kid":"ec","crit":["b64"],"b64":false}"#, "ES256", "critical"),
            (#"{"alg":"ES256","kid":"ec","jwk":{"kty":"EC"}}"#, "none", "signature"),
        ])
    func headers(header: String, algorithm: String, expected: String) async throws {
        let token = try provider.token(header: header, payload: TestProvider.payload(), algorithm: algorithm)
        let reason = try #require(await refusal(of: token))
        #expect(reason.contains(expected), "\(reason)")
    }

    @Test("a token without a key's id is checked by the only key for its algorithm")
    func noKeyID() async throws {
        let token = try provider.token(
            header: #"{"alg":"ES384"}"#, payload: TestProvider.payload(), algorithm: "ES384")
        #expect(!keys.hasKey(for: token), "the provider may have another key by now")
        #expect(await refusal(of: token) == nil)
    }

    @Test("the shell learns that a token's key is missing, and that garbage has none")
    func missingKey() throws {
        #expect(!keys.hasKey(for: try token(key: "next")))
        #expect(!keys.hasKey(for: "garbage"))
    }

    @Test("a forged token does not bind a key to its algorithm")
    func binding() async throws {
        let forged = try provider.token(
            header: #"{"alg":"PS512","kid":"rsa"}"#, payload: TestProvider.payload(), algorithm: "none")
        #expect(await refusal(of: forged)?.contains("signature") == true)
        #expect(await refusal(of: try token(algorithm: "RS256", key: "rsa")) == nil)
    }

    @Test("a token that was cut or changed anywhere is refused")
    func damaged() async throws {
        let token = try token()
        let bytes = Array(token.utf8)
        for position in stride(from: 0, to: bytes.count, by: 3) {
            var changed = bytes
            changed[position] = changed[position] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            for text in [String(decoding: changed, as: UTF8.self), String(decoding: bytes[..<position], as: UTF8.self)]
            {
                #expect(await refusal(of: text) != nil, "byte \(position)")
            }
        }
        for text in ["", "..", "a.b.c", token + ".x", token + "=", String(repeating: "A", count: 70_000)] {
            #expect(await refusal(of: text) != nil)
        }
    }

    @Test("the signature of RFC 7515, appendix A.3 is good, its claims are not")
    func standardVector() async throws {
        let set = #"""
            {"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}
            """#
        let keys = try ProviderKeys(parsing: Array(set.utf8), issuer: "joe")
        let token =
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
            + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        let reason = try #require(await refusal(of: token, keys: keys))
        #expect(reason.contains("issuer is 'joe'"), "\(reason)")
    }
}
