import Admission
import Cluster
import Directory
import Foundation
import RecordModel
import Service
import Wire

// Signing in through an OpenID Connect provider: authorization code with PKCE.
extension SignInRequest {
    /// `GET /sign-in/provider`: a page with one button that leads to the provider. Never there at once: a provider that
    /// knows the visitor would send the browser back signed in, and any page may link here.
    func confirmProvider() async throws(RequestFailure) -> Reply {
        let ticket = url["ticket"]
        let goal = try await goal(ofTicket: ticket)
        guard let name = url["name"], !name.isEmpty else {
            throw RequestFailure(.badRequest, "The parameter 'name' is missing: it says which identity provider.")
        }
        _ = try provider(named: name)
        let cookie = BrowserCookie(header: headers.cookie) ?? BrowserCookie()
        var page = page(.provider(name), for: goal, ticket: ticket ?? "", cookie: cookie)
        page.keepsSignedIn = url["keepSignedIn"] == "true"
        return page.page.reply(cookie: cookie)
    }

    /// Where the browser goes to be recognised.
    func authorizationURL(
        provider name: String, goal: SignInGoal, browser: BrowserCookie, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> String {
        try countAttempt()
        let signer = try context.service.requireSigner()
        let provider = try provider(named: name)
        let document = try await document(of: provider)
        var generator = SystemRandomNumberGenerator()
        let proof = PKCE(seed: (0..<32).map { _ in UInt8.random(in: 0 ... .max, using: &generator) })
        let state = ProviderState(
            ticket: SignInTicket(tokenID: goal.token.id, origin: goal.pageOrigin ?? "", asker: goal.asker),
            provider: provider.name,
            nonce: AdminRequest.randomHex(bytes: 16), verifier: proof.verifier, keepsSignedIn: keepsSignedIn,
            browser: browser.value)
        let ticket = signer.ticket(
            state.encoded(), purpose: ProviderState.purpose,
            expires: context.service.now + ProviderState.lifetimeMilliseconds)
        return document.authorizationAddress(
            AuthorizationRequest(
                clientID: provider.clientID, redirectAddress: Self.callbackAddress(state.ticket), state: ticket,
                nonce: state.nonce, codeChallenge: proof.challenge))
    }

    /// What administrators register at the provider.
    private static func callbackAddress(_ ticket: SignInTicket) -> String { ticket.origin + "/sign-in/callback" }

    private func provider(named name: String) throws(RequestFailure) -> IdentityProvider {
        let providers = context.service.node.directory.snapshot.providers
        guard let provider = providers.first(where: { $0.$name == Bytewise(name) }) else {
            throw RequestFailure(.notFound, "There is no identity provider '\(name)' here any more.")
        }
        return provider
    }

    private func document(of provider: IdentityProvider) async throws(RequestFailure) -> ProviderDocument {
        do throws(ServiceError) {
            return try await context.identity.providers.document(ofIssuer: provider.issuer)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// `GET /sign-in/callback`: the browser comes back with a code.
    func comeFromProvider() async throws(RequestFailure) -> Reply {
        try countAttempt()
        let signer = try context.service.requireSigner()
        guard let text = url["state"],
            let payload = signer.openTicket(text, purpose: ProviderState.purpose, now: context.service.now),
            let state = try? ProviderState(decoding: payload)
        else {
            throw RequestFailure(
                .badRequest, "This sign-in has expired, or did not begin here. Go back to the app and sign in again.")
        }
        guard let cookie = BrowserCookie(header: headers.cookie), cookie.matches(state.browser) else {
            throw RequestFailure(
                .badRequest,
                "This sign-in began in another browser, or cookies are switched off. Go back to the app and sign in again."
            )
        }
        let goal = try await goal(of: state.ticket)
        guard let code = url["code"], !code.isEmpty else { return try declined(goal, state) }
        let provider = try provider(named: state.provider)
        let claims = try await claims(code, state, provider)
        let account = try await account(of: claims, provider)
        let identity = ExternalIdentity(issuer: claims.issuer, subject: claims.subject)
        let session = try await beginSession(
            of: account, by: .identity(identity, provider: provider.name), for: goal,
            keepsSignedIn: state.keepsSignedIn)
        return finish(session, of: account, for: goal)
    }

    /// The user said no there, or the provider does not work: the one is the app's to know, the other the user's.
    private func declined(_ goal: SignInGoal, _ state: ProviderState) throws(RequestFailure) -> Reply {
        let code = (url["error"] ?? "").filter { $0.isASCII && ($0.isLetter || $0 == "_") }.prefix(40)
        if code == "access_denied" { return cancel(goal) }
        throw RequestFailure(
            .authenticationFailed,
            "The identity provider '\(state.provider)' did not sign you in\(code.isEmpty ? "" : ": it said '\(code)'")."
        )
    }

    private func claims(
        _ code: String, _ state: ProviderState, _ provider: IdentityProvider
    ) async throws(RequestFailure) -> IdentityClaims {
        let document = try await document(of: provider)
        // Another provider's answer, mixed in under this one's name (RFC 9207).
        if let issuer = url["iss"] ?? (document.namesIssuerInAnswer ? "" : nil), issuer != provider.issuer {
            throw RequestFailure(
                .authenticationFailed, "The answer is not that of the identity provider '\(provider.name)'.")
        }
        do throws(ServiceError) {
            let exchange = ProviderClient.Exchange(
                clientID: provider.clientID, clientSecret: try context.secret(of: provider), code: code,
                verifier: state.verifier, redirectAddress: Self.callbackAddress(state.ticket))
            let providers = context.identity.providers
            let token = try await providers.idToken(for: exchange, at: document)
            let expectation = IdentityExpectation(
                issuer: provider.issuer, clientID: provider.clientID, nonce: state.nonce, now: context.service.now)
            return try await IdentityToken.verify(
                token, keys: try await providers.keys(ofIssuer: provider.issuer, for: token), expecting: expectation)
        } catch {
            throw RequestFailure(error)
        }
    }
}

// The account of whom a provider names.
extension SignInRequest {
    /// The account with the identity; a new one where the provider's users may have one.
    ///
    /// An account is never found by its address: whoever can have an address confirmed somewhere would have the
    /// account.
    private func account(
        of claims: IdentityClaims, _ provider: IdentityProvider
    ) async throws(RequestFailure) -> Account {
        let identity = ExternalIdentity(issuer: claims.issuer, subject: claims.subject)
        try await context.service.refreshDirectory()
        if let account = try await self.account(with: identity) { return account }
        guard provider.allowsSignUp else {
            try await note(subject: "provider \(provider.name)", outcome: "refused: no account has this identity")
            throw RequestFailure(
                .accessDenied,
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
                try await context.service.refreshDirectory()
                if let account = try await self.account(with: identity) { return account }
            }
        }
        throw RequestFailure(ServiceError(.tryAgainLater, "No account could be made. Try again.", retryAfterSeconds: 1))
    }

    private func account(with identity: ExternalIdentity) async throws(RequestFailure) -> Account? {
        try await context.service.accounts.read { try $0.account(withIdentity: identity) }
    }

    /// - Parameter isPlain: whether to do without what may be another's: a name of one's own, and an address.
    private func newAccount(
        for claims: IdentityClaims, _ identity: ExternalIdentity, _ provider: IdentityProvider, isPlain: Bool
    ) async throws(RequestFailure) -> Account {
        var account = Account(
            id: AdminRequest.randomHex(bytes: 16), name: "\(provider.name)-\(AdminRequest.randomHex(bytes: 6))",
            created: context.service.now)
        if !isPlain, claims.isEmailVerified, let email = claims.email?.precomposedStringWithCanonicalMapping,
            AdminRequest.isEmail(email), AdminRequest.line(email) != nil, Account.isPlainLine(email)
        {
            let (hasAddress, hasName) = try await context.service.accounts.read {
                (try $0.account(withEmail: email) != nil, try $0.account(named: email) != nil)
            }
            if !hasAddress { account.email = email }
            if !hasAddress, !hasName { account.name = email }
        }
        func plain(_ text: String) -> String? { Account.isPlainLine(text) ? AdminRequest.line(text) : nil }
        account.givenName = claims.givenName.flatMap(plain)
        account.familyName = claims.familyName.flatMap(plain)
        account.identity = identity
        return account
    }
}
