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
    }

    /// Asks a node to be let in, by tokens that there are and some that there are no more.
    func knock() async {
        let office = office
        let ids = office.everyID.sorted()
        let apps = ids.filter { office.secrets[$0] != nil && (office.tokens[$0]?.kind.filterKind ?? .api) == .api }
        guard let app = apps.randomElement(using: &world.generator) else { return }
        let sessions = ids.filter { [.session, .signIn].contains(office.tokens[$0]?.kind.filterKind) }
        let gone = ids.filter { $0.hasPrefix("\(office.prefix)s") && office.tokens[$0] == nil }
        let session = (world.chance(70) ? sessions : gone).randomElement(using: &world.generator)
        let knock = Knock(
            apiID: app, sessionID: world.chance(80) ? session : nil,
            environment: world.chance(80) ? .development : .production,
            origin: world.chance(60) ? nil : world.pick(["https://app.example", "https://other.example"]),
            needsUser: world.chance(70))
        let issued = Int64(world.now / World.millisecond)
        let expected = answer(to: knock)
        self.office.used.insert(app)
        let result = await ask(repeats: true, triesMax: 2) { visit in
            await Self.enter(knock, of: office, issued: issued, visit)
        }
        guard case .answered(let told, _) = result, let told, told != expected else { return }
        recorder.violated(
            "client \(number): \(knock) at \(office.container) is answered \(told), and must be \(expected)")
    }

    private static func enter(_ knock: Knock, of office: Office, issued: Int64, _ visit: Visit) async -> String? {
        let service = visit.service
        let secret = office.secrets[knock.apiID]
        var credentials = Credentials(apiToken: secret, webAuthToken: nil, origin: knock.origin)
        if let id = knock.sessionID {
            credentials.webAuthToken = office.secrets[id] ?? service.signer?.token(sessionID: id, issued: issued)
        }
        let target = Target(
            container: office.container, environment: knock.environment, needsUser: knock.needsUser)
        let scope = RequestScope(target: target, rate: .requests)
        var notes = RequestNotes()
        do throws(RequestFailure) {
            let precheck = try await service.identification.precheck(credentials, for: scope, address: nil)
            let admitted = try await service.admit(
                credentials, precheck, to: scope, address: nil, by: visit.deadline, &notes)
            service.leave(scope)
            let caller = admitted.admitted.caller
            return "\(caller.user ?? "nobody") with \(caller.roles.filter { !$0.hasPrefix("_") })"
        } catch {
            switch error.error.code {
            case .tryAgainLater, .throttled: return nil
            default: return error.error.code.rawValue
            }
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

    /// - Returns: the token of the session that began.
    private func signIn(_ name: String, _ password: String, apiToken: String) async -> Asked<Token?> {
        let address = newValue()
        return await ask(repeats: false, triesMax: 1) { visit throws(RequestFailure) in
            let signIn = SignIn(visit.service, NoProviders(), requestID: "", address: address)
            try await signIn.prepare()
            let goal = try await signIn.goal(ofAPIToken: apiToken, origin: nil)
            let session = try await signIn.signIn(
                name: name, password: password, from: nil, for: goal, keepsSignedIn: true)
            guard let opened = visit.service.signer?.open(session.webAuthToken) else { return nil }
            return try await visit.service.accounts.read { try $0.token(withID: opened.sessionID) }
        }
    }

    /// Signs in by a password that is right, or one that is not.
    func signInByPassword() async {
        guard office.deleted == nil,
            let id = office.accounts.keys.sorted().filter({ office.accounts[$0]?.password != nil })
                .randomElement(using: &world.generator), let account = office.accounts[id], let hash = account.password,
            let app = office.tokens.values.filter({ $0.kind.filterKind == .api && office.secrets[$0.id] != nil })
                .min(by: { $0.id < $1.id }),
            let secret = office.secrets[app.id]
        else { return }
        let password = world.pick(Self.officePasswords)
        let isRight = Self.passwordHash(password) == hash
        let name = account.name
        let answer = await signIn(name, password, apiToken: secret)
        switch answer {
        case .answered(let token?, _):
            guard isRight, case .signIn(office.container, id, let expires) = token.kind,
                expires == token.created + 14 * 86_400_000
            else {
                recorder.violated("client \(number): \(password) of \(name) begins the session \(token)")
                return
            }
            world.met(.signedIn)
            office.add(token)
            office.failures[id] = nil
        case .answered(nil, _), .nothing(mayHaveBeenDone: true):
            officeSerial += 1
            office = Office(client: number, serial: officeSerial)
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
