import Admission
import Authorization
import Cluster
import Directory
import RecordModel
import Service

// Whom nodes let in to an office, and who can sign in there.
extension Client {
    /// What a request shows of who sends it.
    private struct Knock: Sendable {
        var apiID: String
        var sessionID: String?
        var environment: Environment
        var origin: String?
        var needsUser: Bool
        /// When the session's token was made.
        var issued: Int64
    }

    private func someKnock() -> Knock? {
        let ids = office.everyID.sorted()
        let apps = ids.filter { office.secrets[$0] != nil && (office.tokens[$0]?.kind.filterKind ?? .api) == .api }
        guard let app = apps.randomElement(using: &world.generator) else { return nil }
        let sessions = ids.filter { [.session, .signIn].contains(office.tokens[$0]?.kind.filterKind) }
        let gone = ids.filter { $0.hasPrefix("\(office.prefix)s") && office.tokens[$0] == nil }
        let session = (world.chance(70) ? sessions : gone).randomElement(using: &world.generator)
        office.used.insert(app)
        return Knock(
            apiID: app, sessionID: world.chance(80) ? session : nil,
            environment: world.chance(80) ? .development : .production,
            origin: world.chance(60) ? nil : world.pick(["https://app.example", "https://other.example"]),
            needsUser: world.chance(70), issued: Int64(world.now / World.millisecond))
    }

    /// Asks a node to be let in, by tokens that there are and some that there are no more.
    func knock() async {
        guard let knock = someKnock() else { return }
        let office = office
        let result = await ask(repeats: true, triesMax: 2) { visit in
            switch await Self.begin(knock, of: office, visit) {
            case .failure(let failure): Self.told(failure)
            case .success(let precheck): await Self.enter(knock, precheck, of: office, visit)
            }
        }
        if case .answered(let told, _) = result { judge(knock, told) }
    }

    private func judge(_ knock: Knock, _ told: String?) {
        let expected = answer(to: knock)
        guard let told, told != expected else { return }
        recorder.violated(
            "client \(number): \(knock) at \(office.container) is answered \(told), and must be \(expected)")
    }

    /// Sends a request whose body takes long to come: what it shows is looked at first, something changes, and all of
    /// it is judged by what holds then.
    func knockSlowly() async {
        let present = nodes.filter { $0.running != nil }
        guard let knock = someKnock(), let node = present.randomElement(using: &world.generator) else { return }
        let (before, process) = (office, node.process)
        let begun = await ServerCall.make(to: node, as: UserSession(""), recorder) { visit in
            await Self.begin(knock, of: before, visit)
        }
        guard case .value(let result) = begun else { return }
        guard case .success(let precheck) = result else {
            if case .failure(let failure) = result { judge(knock, Self.told(failure)) }
            return
        }
        let revocation = step(.revokeToken(id: knock.apiID)) { $0.tokens[knock.apiID] = nil }
        guard await take(before.tokens[knock.apiID] != nil && world.chance(40) ? revocation : nextStep()),
            node.process === process
        else { return }
        let after = office
        let answer = await ServerCall.make(to: node, as: UserSession(""), recorder) { visit in
            await Self.enter(knock, precheck, of: after, visit)
        }
        guard case .value(let told) = answer else { return }
        world.met(.lateBody)
        judge(knock, told)
    }

    private static func begin(
        _ knock: Knock, of office: Office, _ visit: Visit
    ) async -> Result<Precheck, RequestFailure> {
        do throws(RequestFailure) {
            return .success(
                try await visit.service.identification.precheck(
                    credentials(of: knock, in: office, visit.service), for: scope(of: knock, in: office), address: nil))
        } catch {
            return .failure(error)
        }
    }

    private static func credentials(of knock: Knock, in office: Office, _ service: RecordService) -> Credentials {
        var credentials = Credentials(
            apiToken: office.secrets[knock.apiID], webAuthToken: nil, origin: knock.origin)
        if let id = knock.sessionID {
            credentials.webAuthToken =
                office.secrets[id] ?? service.signer?.token(sessionID: id, issued: knock.issued)
        }
        return credentials
    }

    private static func scope(of knock: Knock, in office: Office) -> RequestScope {
        RequestScope(
            target: Target(container: office.container, environment: knock.environment, needsUser: knock.needsUser),
            rate: .requests)
    }

    private static func enter(
        _ knock: Knock, _ precheck: Precheck, of office: Office, _ visit: Visit
    ) async -> String? {
        let service = visit.service
        var notes = RequestNotes()
        do throws(RequestFailure) {
            let scope = scope(of: knock, in: office)
            let admitted = try await service.admit(
                credentials(of: knock, in: office, service), precheck, to: scope, address: nil, by: visit.deadline,
                &notes)
            service.leave(scope)
            let caller = admitted.admitted.caller
            return "\(caller.user ?? "nobody") with \(caller.roles.filter { !$0.hasPrefix("_") })"
        } catch {
            return told(error)
        }
    }

    /// - Returns: nil where it says nothing of who asked.
    private static func told(_ failure: RequestFailure) -> String? {
        switch failure.error.code {
        case .tryAgainLater, .throttled: nil
        default: failure.error.code.rawValue
        }
    }

    private func answer(to knock: Knock) -> String {
        guard case .api(_, let environment, let origins, _)? = office.tokens[knock.apiID]?.kind,
            environment == knock.environment
        else { return ErrorCode.authenticationFailed.rawValue }
        if let origin = knock.origin, !origins.isEmpty, !origins.contains(origin) {
            return ErrorCode.accessDenied.rawValue
        }
        if office.deleted != nil { return ErrorCode.notFound.rawValue }
        guard let id = knock.sessionID else {
            return knock.needsUser ? ErrorCode.authenticationRequired.rawValue : "nobody with []"
        }
        guard let account = office.tokens[id]?.kind.accountID else { return ErrorCode.authenticationRequired.rawValue }
        let user = Account.userRecordName(accountID: account, container: office.container)
        return "\(user) with \(office.roles(of: account, in: knock.environment))"
    }

    // MARK: Passwords

    /// A session that began, and its token as long as it is there.
    private struct Begun: Sendable {
        var id: String
        var token: Token?
    }

    private func signIn(_ name: String, _ password: String, apiToken: String) async -> Asked<Begun?> {
        let address = newValue()
        return await ask(repeats: false, triesMax: 1) { visit throws(RequestFailure) in
            let signIn = SignIn(visit.service, NoProviders(), requestID: "", address: address)
            try await signIn.prepare()
            let goal = try await signIn.goal(ofAPIToken: apiToken, origin: nil)
            let session = try await signIn.signIn(
                name: name, password: password, from: nil, for: goal, keepsSignedIn: true)
            guard let opened = visit.service.signer?.open(session.webAuthToken) else { return nil }
            let id = opened.sessionID
            // A node that cannot hear of it now may not know it yet.
            do throws(RequestFailure) { try await visit.service.cluster.refreshDirectory() } catch { return nil }
            return try await visit.service.accounts.read { Begun(id: id, token: try $0.token(withID: id)) }
        }
    }

    /// An account that has a password, with that, and an app.
    private func someSignIn() -> (Account, PasswordHash, apiToken: String)? {
        guard office.deleted == nil,
            let account = office.accounts.values.filter({ $0.password != nil }).sorted(by: { $0.id < $1.id })
                .randomElement(using: &world.generator), let hash = account.password,
            let app = office.tokens.values.filter({ $0.kind.filterKind == .api && office.secrets[$0.id] != nil })
                .min(by: { $0.id < $1.id }),
            let secret = office.secrets[app.id]
        else { return nil }
        return (account, hash, secret)
    }

    /// Somebody signs in as all sessions of the account end with its password, or with the account: whichever comes
    /// first, there is no session then.
    func signInMeanwhile() async {
        guard let (account, hash, secret) = someSignIn(),
            let password = Self.officePasswords.first(where: { Self.passwordHash($0) == hash })
        else { return }
        let other = Self.passwordHash(Self.officePasswords.first { $0 != password } ?? "")
        let end = step(.setPassword(account: account.name, other, endsSessions: true)) { office in
            office.accounts[account.id]?.password = other
            office.failures[account.id] = nil
            office.removeTokens { $0.kind.accountID == account.id }
        }
        let (options, serial) = (nodes[0].options, officeSerial)
        let delay = world.microseconds(0...(6_000 + 6 * options.network.delayMax + 4 * options.delays.workMax))
        async let signedIn = signIn(account.name, password, apiToken: secret)
        await sleep(delay)
        let isDone = await take(end)
        let answer = await signedIn
        guard officeSerial == serial else { return }
        // The password is as it was, and there may be another session.
        guard isDone else { return leaveOffice() }
        office.failedAtNodes.insert(account.id)
        switch answer {
        case .answered(let begun?, _):
            world.met(.signedInMeanwhile)
            office.everyID.insert(begun.id)
        case .answered(nil, _), .nothing(mayHaveBeenDone: true): return leaveOffice()
        case .failed, .nothing(mayHaveBeenDone: false): break
        }
        // It may have been counted as a failure.
        guard await take(step(.administration(.unlock(account: account.name))) { $0.failures[account.id] = nil }) else {
            if officeSerial == serial { leaveOffice() }
            return
        }
        await inspectOffice()
    }

    /// Signs in by a password that is right, or one that is not.
    func signInByPassword() async {
        guard let (account, hash, secret) = someSignIn() else { return }
        let id = account.id
        let password = world.pick(Self.officePasswords)
        let isRight = Self.passwordHash(password) == hash
        let name = account.name
        let answer = await signIn(name, password, apiToken: secret)
        switch answer {
        case .answered(let begun?, _):
            guard isRight, let token = begun.token, case .signIn(office.container, id, let expires) = token.kind,
                expires == token.created + 14 * 86_400_000
            else {
                recorder.violated("client \(number): \(password) of \(name) begins the session \(begun)")
                return
            }
            world.met(.signedIn)
            office.add(token)
            office.failures[id] = nil
        case .answered(nil, _), .nothing(mayHaveBeenDone: true): leaveOffice()
        case .failed(let failure) where failure.error.code == .authenticationFailed && !isRight:
            office.failures[id, default: 0] += 1
            office.failedAtNodes.insert(id)
        case .failed(let failure):
            recorder.violated("client \(number): \(password) of \(name) is answered \(failure.error)")
        // Of an account that is locked, or at a node that cannot tell.
        case .nothing(mayHaveBeenDone: false): break
        }
    }
}

/// Nobody signs in by a provider.
private struct NoProviders: IdentityProviderClient {
    private static var none: RequestFailure { RequestFailure(ServiceError(.internalError, "there is no provider")) }

    func document(ofIssuer issuer: String) async throws(RequestFailure) -> ProviderDocument { throw Self.none }

    func keys(ofIssuer issuer: String, for idToken: String) async throws(RequestFailure) -> ProviderKeys {
        throw Self.none
    }

    func idToken(for exchange: CodeExchange, at document: ProviderDocument) async throws(RequestFailure) -> String {
        throw Self.none
    }
}
