package import Admission
import Cluster
import Directory
import Foundation
import RecordModel
import Wire

/// Signing users in, up and out, as typed calls for one request.
package struct SignIn: Sendable {
    let service: RecordService
    let providers: any IdentityProviderClient
    private let requestID: String
    private let address: String

    /// - Parameters:
    ///   - providers: talks to identity providers.
    ///   - requestID: for the audit log.
    ///   - address: the client's; for limits and the audit log.
    package init(
        _ service: RecordService, _ providers: any IdentityProviderClient, requestID: String, address: String?
    ) {
        self.service = service
        self.providers = providers
        self.requestID = requestID
        self.address = address ?? ""
    }

    /// Nothing here relies on a directory that this node is not sure of: what was revoked elsewhere works nowhere.
    package func prepare() async throws(RequestFailure) { try await service.cluster.requireDirectory() }

    // MARK: Whom for

    /// What a link was made for.
    /// - Throws: `BAD_REQUEST` for a link that is not ours, has expired, or whose API token was revoked.
    package func goal(ofTicket text: String?) async throws(RequestFailure) -> SignInGoal {
        let signer = try service.requireSigner()
        guard let text, !text.isEmpty else {
            throw .badRequest(
                "Signing in begins in an app: it is given a link to this page, and this is not the whole link.")
        }
        guard let payload = signer.openTicket(text, purpose: SignInTicket.purpose, now: service.now),
            let ticket = try? SignInTicket(decoding: payload)
        else {
            throw .badRequest(
                "This link has expired, or was changed. Go back to the app and sign in again: it is given a new one.")
        }
        return try await goal(of: ticket)
    }

    /// - Throws: `BAD_REQUEST` where the API token was revoked.
    package func goal(of ticket: SignInTicket) async throws(RequestFailure) -> SignInGoal {
        let goal = try await known { directory in
            directory.token(withID: ticket.tokenID).flatMap {
                SignInGoal($0, pageOrigin: ticket.origin, asker: ticket.asker)
            }
        }
        if let goal { return goal }
        throw .badRequest("The app may not sign users in any more: its API token was revoked.")
    }

    /// What a program signs in for.
    /// - Throws: `AUTHENTICATION_FAILED` for an API token that is unknown, or not for the request's origin; `THROTTLED`
    ///   for an address that sent too many unknown ones.
    package func goal(ofAPIToken secret: String, origin: String?) async throws(RequestFailure) -> SignInGoal {
        let goal = try await known { directory in directory.token(withSecret: secret).flatMap { SignInGoal($0) } }
        guard let goal else {
            throw .authenticationFailed("the API token is not known: it was never made, or was revoked")
        }
        guard OriginRule.allows(origin, goal.origins) else {
            throw .authenticationFailed(
                "the API token is not for pages of \(origin ?? ""); it is for \(goal.origins.joined(separator: ", "))")
        }
        return goal
    }

    /// What an API token is for; nil where there is none by the newest directory either, which counts as a failure of
    /// the address to authenticate.
    /// - Throws: `THROTTLED` where that has failed too often: nothing is asked for it any more.
    private func known(_ find: (DirectorySnapshot) -> SignInGoal?) async throws(RequestFailure) -> SignInGoal? {
        if let goal = find(service.directory) { return goal }
        let (failures, address) = (service.failedAuthentications, address.isEmpty ? nil : address)
        try failures.requireFew(of: address)
        if let goal = find(try await service.cluster.newestDirectory()) { return goal }
        try failures.count(of: address)
        return nil
    }

    // MARK: Sessions

    /// A session that was begun, as its user gets it.
    package struct Session: Sendable {
        /// Signed; each answer brings the next.
        package var webAuthToken: String
        /// In the goal's container.
        package var userRecordName: String
        /// Milliseconds since 1970.
        package var expires: Int64
        /// As pages call the user.
        package var accountName: String
        /// What the browser keeps, so that it is known from then on.
        package var knownBrowser: String
    }

    /// How long a session lasts without and with "keep me signed in".
    package static let lifetimeMilliseconds: (short: Int64, kept: Int64) = (30 * 60_000, 14 * 86_400_000)

    /// Begins a session of an account, whose owner has shown who they are.
    /// - Throws: `AUTHENTICATION_FAILED` where that, or the app's API token, is worth nothing any more by now.
    func beginSession(
        of account: Account, by proof: SignInBasis.Proof, for goal: SignInGoal, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> Session {
        let signer = try service.requireSigner()
        let (id, now) = (service.randomHex(bytes: 8), service.now)
        let expires = now + (keepsSignedIn ? Self.lifetimeMilliseconds.kept : Self.lifetimeMilliseconds.short)
        let session = Token(
            sessionID: id, container: goal.container, accountID: account.id, expires: expires, label: "sign-in",
            created: now)
        let command = DirectoryCommand.beginSession(session, SignInBasis(proof, apiTokenID: goal.tokenID))
        try await service.cluster.enter(
            DirectoryEntry(command, origin: audited(account.name, in: goal)), by: service.deadline())
        service.signIns.places.didSignIn(account.id, address: address, now: now)
        let browser = KnownBrowser(accountID: account.id, id: service.randomHex(bytes: 16))
        return Session(
            webAuthToken: signer.token(sessionID: id, issued: now),
            userRecordName: Account.userRecordName(accountID: account.id, container: goal.container), expires: expires,
            accountName: account.name, knownBrowser: browser.sealed(by: signer, now: service.now))
    }

    /// Begins a session by the account's password, which is looked at again by the directory.
    private func beginSession(
        of account: Account, for goal: SignInGoal, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> Session {
        try await beginSession(
            of: account, by: .password(fingerprint: account.password?.fingerprint ?? []), for: goal,
            keepsSignedIn: keepsSignedIn)
    }

    /// Ends a session on all nodes. That it has ended already is no fault.
    /// - Parameter credentials: an API token, and the session's token.
    /// - Throws: `AUTHENTICATION_FAILED` for an API token that is not known, or of another container than the session.
    package func signOut(_ credentials: Credentials, origin: String?) async throws(RequestFailure) {
        guard let secret = credentials.apiToken else {
            throw .authenticationFailed("the request has no ckAPIToken")
        }
        guard credentials.webAuthToken != nil else {
            throw .badRequest("the request has no ckWebAuthToken: it says which session is to end")
        }
        let goal = try await goal(ofAPIToken: secret, origin: origin)
        try await service.cluster.refreshDirectory()
        let presented = try await service.accounts.session(of: credentials, service.signer)
        if let session = presented?.known {
            guard Bytewise(session.token.kind.container) == Bytewise(goal.container) else {
                throw .authenticationFailed(
                    "the ckWebAuthToken's session is in another container than the ckAPIToken's: it goes on")
            }
            do throws(RequestFailure) {
                try await service.cluster.change(
                    .revokeToken(id: session.token.id), origin: audited(session.accountName, in: goal))
            } catch {
                // Another request has ended it meanwhile.
                if error.error.code != .notFound { throw error }
            }
            return
        }
        try countAttempt()
        // What this cluster never signed was no session that signing in began: nothing is to be waited for.
        guard presented?.isOfSignIn == true else { return }
        // It may have ended a moment ago, by a request whose answer was lost: that no node relies on it any more is to
        // be true of this answer, too.
        _ = try await ask(await service.node.changeDirectory(DirectoryEntry(nil), by: service.deadline()))
    }

    // MARK: Passwords

    private static let wrong = "The name or the password is not right."

    /// Signs in the owner of a name, where the password is right. Unknown names, and accounts without a password, are
    /// refused like wrong passwords, after as much work.
    ///
    /// - Parameter browser: the browser, where somebody signed in from it before.
    /// - Throws: `AUTHENTICATION_FAILED`, and `THROTTLED` while too many attempts failed: of this address, or for this
    ///   name.
    package func signIn(
        name: String, password: String, from browser: KnownBrowser?, for goal: SignInGoal, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> Session {
        try countAttempt()
        let attempt = try await attempt(on: name, browser)
        try SignInAttempts.require(attempt.lockout, isOverAt: service.now)
        let hash = attempt.account?.password
        guard try await service.accounts.isRight(password, for: hash), let account = attempt.account else {
            try await noteFailure(attempt)
            // The failure counts, also where this node cannot hear now how long to wait after it.
            let lockout = try? await self.attempt(on: name, browser).lockout
            let pause = SignInAttempts.secondsLeft(of: lockout, service.now).map {
                " Try again in \(SignInAttempts.words($0))."
            }
            throw .authenticationFailed(Self.wrong + (pause ?? ""))
        }
        // Others may have been guessing meanwhile, and the password may have been changed.
        let current = try await self.attempt(on: name, browser)
        try SignInAttempts.require(current.lockout, isOverAt: service.now)
        guard let same = current.account, same.id == account.id, same.password == hash else {
            throw .authenticationFailed(Self.wrong)
        }
        return try await beginSession(of: same, for: goal, keepsSignedIn: keepsSignedIn)
    }

    /// What is known of a name that somebody wants to sign in with.
    private struct Attempt {
        var name: String
        var account: Account?
        var lockout: Lockout?
        /// A name for where the request comes from, where somebody signed in to the account from there before: attempts
        /// from there are counted for themselves, so that others cannot lock the owner out.
        var place: String?
    }

    /// A password that was changed, or a lock-out, at another node must not be unknown here.
    private func attempt(on name: String, _ browser: KnownBrowser?) async throws(RequestFailure) -> Attempt {
        try await service.cluster.refreshDirectory()
        let (account, counted) = try await service.accounts.read { reader in
            let account = try reader.account(named: name)
            return (account, try account.flatMap { try reader.lockout(of: $0.id) })
        }
        let known = service.signIns
        var attempt = Attempt(name: name, account: account)
        if let account, service.signer != nil {
            attempt.place = known.places.place(of: account.id, browser: browser, address: address, now: service.now)
        }
        // An account without a password is to look like an unknown name.
        attempt.lockout = known.lockout(
            at: attempt.place, else: account?.password == nil ? known.decoys.lockout(of: name) : counted)
        return attempt
    }

    private func noteFailure(_ attempt: Attempt) async throws(RequestFailure) {
        let (now, account) = (service.now, attempt.account)
        if let place = attempt.place { service.signIns.places.lockouts.note(place, time: now) }
        if let account, account.password != nil {
            return try await enter(.noteSignInFailure(accountID: account.id, time: now), by: "somebody")
        }
        service.signIns.decoys.note(attempt.name, time: now)
        // What was typed as a name may be a password: the log does not have it.
        try await note(
            subject: account.map { "user \($0.name)" } ?? "a name that no account has",
            outcome: account == nil ? "refused: unknown name" : "refused: the account has no password")
    }

    // MARK: New accounts

    /// - Throws: `ACCESS_DENIED` where nobody may make an account for themselves.
    package func requireOpenSignUp() throws(RequestFailure) {
        guard service.directory.isSignUpOpen else {
            throw .accessDenied("New accounts are made by the administrator here: sign-up is not open.")
        }
    }

    /// Makes an account, where sign-up is open, and signs its owner in.
    package func signUp(
        name: String, password: String, for goal: SignInGoal, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> Session {
        let account = try await newAccount(name: name, password: password)
        do throws(RequestFailure) {
            return try await beginSession(of: account, for: goal, keepsSignedIn: keepsSignedIn)
        } catch {
            let reason = "The account is made, but nobody is signed in yet: sign in. (\(error.error.reason))"
            throw RequestFailure(
                ServiceError(error.error.code, reason, retryAfterSeconds: error.error.retryAfterSeconds))
        }
    }

    private func newAccount(name given: String, password: String) async throws(RequestFailure) -> Account {
        try countAttempt()
        try await service.cluster.refreshDirectory()
        try requireOpenSignUp()
        let name = try AccountAdministration.name(
            given.trimmingCharacters(in: .whitespaces).precomposedStringWithCanonicalMapping)
        guard Account.isPlainLine(name) else {
            throw .badRequest("The name has characters that cannot be seen: leave them out.")
        }
        let taken = RequestFailure(.exists, "There is an account of this name: choose another name.")
        guard try await service.accounts.account(named: name) == nil else { throw taken }
        var account = Account(id: service.randomHex(bytes: 16), name: name, created: service.now)
        account.password = try await service.hash(ofPassword: password)
        do throws(RequestFailure) {
            try await enter(.createAccount(account), by: "sign-up")
        } catch {
            throw [.conflict, .exists].contains(error.error.code) ? taken : error
        }
        return account
    }

    // MARK: The directory

    /// Counts an attempt of this address.
    /// - Throws: `THROTTLED` where there were too many.
    func countAttempt() throws(RequestFailure) { try service.signIns.count(of: address, now: service.uptime) }

    private func audited(_ actor: String) -> AuditOrigin {
        AuditOrigin(actor: actor, requestID: requestID, address: address, time: service.now)
    }

    /// A user who signs in or out; nil where the audit log has told of that user often enough in this hour.
    private func audited(_ user: String, in goal: SignInGoal) -> AuditOrigin? {
        let origin = audited("user \(user)")
        return service.audit.tells(origin, in: goal.container) ? origin : nil
    }

    /// Has a command applied, tells the audit log, and waits until this node knows. Each question to the cluster has
    /// its own time: hashing a password, or an identity provider, may have taken longer than a question may.
    func enter(_ command: DirectoryCommand, by actor: String) async throws(RequestFailure) {
        try await service.cluster.enter(DirectoryEntry(command, origin: audited(actor)), by: service.deadline())
    }

    /// Tells the audit log of an attempt that no command tells of; waits as for a command, so that nobody can tell them
    /// apart.
    func note(subject: String, outcome: String) async throws(RequestFailure) {
        let event = AuditEvent(origin: audited("somebody"), action: "sign-in", subject: subject, outcome: outcome)
        try await service.cluster.enter(DirectoryEntry(nil, events: [event]), by: service.deadline())
    }
}
