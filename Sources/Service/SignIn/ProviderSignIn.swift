package import Admission
import Cluster
import Directory
import Foundation
import RecordModel
import Wire

/// Talks to identity providers.
package protocol IdentityProviderClient: Sendable {
    /// What a provider says of itself.
    /// - Throws: `TRY_AGAIN_LATER` where it cannot be reached, `INTERNAL_ERROR` where it cannot be used.
    func document(ofIssuer issuer: String) async throws(RequestFailure) -> ProviderDocument
    /// The provider's keys, read again where they lack the one that a token names.
    func keys(ofIssuer issuer: String, for idToken: String) async throws(RequestFailure) -> ProviderKeys
    /// The identity token for a code.
    /// - Throws: `AUTHENTICATION_FAILED` where the provider refuses the code, `TRY_AGAIN_LATER` where it cannot be
    ///   reached.
    func idToken(for exchange: CodeExchange, at document: ProviderDocument) async throws(RequestFailure) -> String
}

/// What a node must show a token endpoint.
package struct CodeExchange: Sendable {
    /// What this cluster is called at the provider.
    package var clientID: String
    /// Nil for a public client.
    package var clientSecret: String?
    /// From the provider, by the browser.
    package var code: String
    /// The secret of PKCE.
    package var verifier: String
    /// As in the authorization request, letter by letter.
    package var redirectAddress: String
}

// Signing in through an OpenID Connect provider: authorization code with PKCE.
extension SignIn {
    /// - Throws: `NOT_FOUND` where there is none of the name.
    package func requireProvider(_ name: String) throws(RequestFailure) { _ = try provider(named: name) }

    private func provider(named name: String) throws(RequestFailure) -> IdentityProvider {
        if let provider = service.directory.providers.first(where: { $0.$name == Bytewise(name) }) { return provider }
        throw .notFound("There is no identity provider '\(name)' here any more.")
    }

    /// Where the browser goes to be recognised.
    /// - Parameter browser: the name that the browser has while somebody signs in.
    package func authorizationURL(
        provider name: String, for goal: SignInGoal, browser: String, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> String {
        try countAttempt()
        let signer = try service.requireSigner()
        let provider = try provider(named: name)
        let document = try await providers.document(ofIssuer: provider.issuer)
        let proof = PKCE(seed: service.randomBytes(32))
        let state = ProviderState(
            ticket: SignInTicket(tokenID: goal.tokenID, origin: goal.pageOrigin ?? "", asker: goal.asker),
            provider: provider.name, nonce: service.randomHex(bytes: 16), verifier: proof.verifier,
            keepsSignedIn: keepsSignedIn, browser: browser)
        let sealed = signer.ticket(
            state.encoded(), purpose: ProviderState.purpose,
            expires: service.now + ProviderState.lifetimeMilliseconds)
        return document.authorizationAddress(
            AuthorizationRequest(
                clientID: provider.clientID, redirectAddress: Self.callbackAddress(state.ticket), state: sealed,
                nonce: state.nonce, codeChallenge: proof.challenge))
    }

    /// What administrators register at the provider.
    private static func callbackAddress(_ ticket: SignInTicket) -> String { ticket.origin + "/sign-in/callback" }

    /// What a browser that comes back from a provider carries.
    /// - Throws: `BAD_REQUEST` for what is not ours, or has expired.
    package func providerState(_ text: String?) throws(RequestFailure) -> ProviderState {
        try countAttempt()
        guard let text,
            let payload = try service.requireSigner().openTicket(
                text, purpose: ProviderState.purpose, now: service.now),
            let state = try? ProviderState(decoding: payload)
        else {
            throw .badRequest("This sign-in has expired, or did not begin here. Go back to the app and sign in again.")
        }
        return state
    }

    /// Signs in whom a provider's code names.
    /// - Parameter issuer: the issuer that the answer names; nil where it names none.
    package func signIn(
        code: String, issuer: String?, _ state: ProviderState, for goal: SignInGoal
    ) async throws(RequestFailure) -> Session {
        let provider = try provider(named: state.provider)
        let claims = try await claims(code, issuer, state, provider)
        let identity = ExternalIdentity(issuer: claims.issuer, subject: claims.subject)
        let account = try await account(with: identity, claims, provider)
        return try await beginSession(
            of: account, by: .identity(identity, provider: provider.name), for: goal,
            keepsSignedIn: state.keepsSignedIn)
    }

    private func claims(
        _ code: String, _ issuer: String?, _ state: ProviderState, _ provider: IdentityProvider
    ) async throws(RequestFailure) -> IdentityClaims {
        let document = try await providers.document(ofIssuer: provider.issuer)
        // Another provider's answer, mixed in under this one's name (RFC 9207).
        if let issuer = issuer ?? (document.namesIssuerInAnswer ? "" : nil), issuer != provider.issuer {
            throw .authenticationFailed("The answer is not that of the identity provider '\(provider.name)'.")
        }
        let exchange = CodeExchange(
            clientID: provider.clientID, clientSecret: try secret(of: provider), code: code,
            verifier: state.verifier, redirectAddress: Self.callbackAddress(state.ticket))
        let token = try await providers.idToken(for: exchange, at: document)
        let keys = try await providers.keys(ofIssuer: provider.issuer, for: token)
        let expectation = IdentityExpectation(
            issuer: provider.issuer, clientID: provider.clientID, nonce: state.nonce, now: service.now)
        do throws(ServiceError) {
            return try await IdentityToken.verify(token, keys: keys, expecting: expectation)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Nil for a public client, which has none.
    /// - Throws: `INTERNAL_ERROR` where it does not open with this node's encryption key.
    private func secret(of provider: IdentityProvider) throws(RequestFailure) -> String? {
        let secret = try relay(
            service.node.vault.openSecret(provider.sealedSecret, purpose: provider.secretPurpose))
        return secret.isEmpty ? nil : String(decoding: secret, as: UTF8.self)
    }

    /// The account with an identity; a new one where the provider's users may have one.
    ///
    /// An account is never found by its address: whoever can have an address confirmed somewhere would have the
    /// account.
    private func account(
        with identity: ExternalIdentity, _ claims: IdentityClaims, _ provider: IdentityProvider
    ) async throws(RequestFailure) -> Account {
        if let account = try await account(with: identity) { return account }
        guard provider.allowsSignUp else {
            try await note(subject: "provider \(provider.name)", outcome: "refused: no account has this identity")
            throw .accessDenied(
                "There is no account for you here, and '\(provider.name)' makes none: ask the administrator to connect yours."
            )
        }
        for attempt in 0..<3 {
            let account = try await newAccount(for: claims, identity, provider, isPlain: attempt > 0)
            do throws(RequestFailure) {
                try await enter(.createAccount(account), by: "provider \(provider.name)")
                return account
            } catch {
                guard [.conflict, .exists].contains(error.error.code) else { throw error }
                // The same user in another window was faster, or the name or address is another's by now.
                if let account = try await self.account(with: identity) { return account }
            }
        }
        throw .tryAgain("No account could be made. Try again.")
    }

    private func account(with identity: ExternalIdentity) async throws(RequestFailure) -> Account? {
        try await service.cluster.refreshDirectory()
        return try await service.accounts.read { try $0.account(withIdentity: identity) }
    }

    /// - Parameter isPlain: whether to do without what may be another's: a name of one's own, and an address.
    private func newAccount(
        for claims: IdentityClaims, _ identity: ExternalIdentity, _ provider: IdentityProvider, isPlain: Bool
    ) async throws(RequestFailure) -> Account {
        func plain(_ text: String) -> String? {
            Account.isPlainLine(text) ? AccountAdministration.line(text) : nil
        }
        var account = Account(
            id: service.randomHex(bytes: 16),
            name: Account.comparable(name: "\(provider.name)-\(service.randomHex(bytes: 6))"),
            created: service.now, givenName: claims.givenName.flatMap(plain),
            familyName: claims.familyName.flatMap(plain), identity: identity)
        guard !isPlain, claims.isEmailVerified,
            let email = claims.email?.precomposedStringWithCanonicalMapping, AccountAdministration.isEmail(email),
            plain(email) != nil
        else { return account }
        let (hasAddress, hasName) = try await service.accounts.read {
            (try $0.account(withEmail: email) != nil, try $0.account(named: email) != nil)
        }
        if !hasAddress { account.email = email }
        if !hasAddress, !hasName { account.name = email }
        return account
    }
}
