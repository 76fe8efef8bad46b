import Admission
import Cluster
import Directory
import RecordModel
import Service
import Wire

// What a client changes in the directory where nobody else does: it knows what becomes of each command, and what every
// node must say then.
extension Client {
    /// A command, what refuses it, and the office after it.
    struct OfficeStep: Sendable {
        var command: DirectoryCommand
        var refusal: ErrorCode?
        var after: Office
    }

    /// That other clients do not change.
    static let officeLimit = ContainerLimit.userRecords
    private static let officeTime = SimulatedClock.wallOrigin

    /// Whether no clock is ever wrong by much.
    var areClocksAlwaysRight: Bool {
        let options = nodes[0].options
        return !options.faults.contains(.jump) && !options.hasLoneWrongClock && !options.isUpgraded
            && !options.hasLongDay
    }

    func useOffice() async {
        // Builds of before do not know all of these commands.
        if nodes[0].options.isUpgraded { return }
        guard office.isMade else { return await makeOffice() }
        for _ in 0..<world.random(1...4) where !isEnding && office.isMade {
            let step = nextStep()
            guard await perform(step) else { return }
            await inspectOffice()
            if world.chance(40) { await knock() }
            if world.chance(12) { await signInByPassword() }
        }
    }

    private func leaveOffice() {
        officeSerial += 1
        office = Office(client: number, serial: officeSerial)
    }

    private func misjudged(_ text: String) {
        recorder.violated("client \(number): office \(office.container): \(text)")
        leaveOffice()
    }

    private func makeOffice() async {
        var step = OfficeStep(
            command: .createContainer(name: office.container, time: Self.officeTime), after: office)
        step.after.isMade = true
        guard await perform(step) else { return leaveOffice() }
        // Somebody to begin with.
        for _ in 0..<2 where office.isMade {
            guard await perform(newUser()), await perform(newToken()) else { return }
        }
    }

    /// Has a command done.
    /// - Returns: whether it is known what came of it.
    private func perform(_ step: OfficeStep) async -> Bool {
        let command = step.command
        let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.settle(command)
        }
        switch answer {
        case .answered(.done, _):
            guard step.refusal == nil else {
                misjudged("\(command) is done, and must be refused")
                return false
            }
            office = step.after
            world.met(.administered)
        case .answered(.refused(let error), _):
            guard step.refusal == error.code else {
                misjudged("\(command) is refused: \(error)")
                return false
            }
        case .failed, .nothing(mayHaveBeenDone: true):
            leaveOffice()
            return false
        case .nothing(mayHaveBeenDone: false): return false
        }
        return true
    }

    /// Asks a node that relies on its directory what it says.
    func inspectOffice(triesMax: Int = 2) async {
        moveOn()
        let office = office
        let (lockouts, limit) = (areClocksAlwaysRight, world.random(1...5))
        let own = Self.officeLimit
        let answer = await ask(repeats: true, triesMax: triesMax) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            var inspection = OfficeInspection(office)
            inspection.look(at: visit.node.directory.snapshot, own: own)
            if let fault = inspection.fault { return fault }
            return try await visit.service.accounts.read { rows in
                var inspection = OfficeInspection(office)
                try inspection.look(at: rows, withLockouts: lockouts, limit: limit)
                return inspection.fault ?? ""
            }
        }
        if case .answered(let fault, _) = answer, !fault.isEmpty { misjudged(fault) }
    }

    /// Looks at it for the last time.
    func readBackOffice() async {
        guard office.isMade else { return }
        for _ in nodes where office.isMade { await inspectOffice(triesMax: 5) }
    }

    // MARK: Steps

    func nextStep() -> OfficeStep {
        if office.deleted != nil { return stepOfDeleted() }
        return switch world.random(0...33) {
        case 0..<3: newUser()
        case 3..<6: changedUser()
        case 6: endedUser()
        case 7..<9: passwordStep()
        case 9..<12: newToken()
        case 12..<15: newSession()
        case 15..<17: revocation()
        case 17..<19: keyStep()
        case 19..<22: roleStep()
        case 22..<25: schemaStep()
        case 25..<27: limitStep()
        case 27: detailStep()
        case 28..<30: relabelStep()
        case 30..<32: teamStep()
        case 32: providerStep()
        // A clock that is ahead by a week may purge what was deleted.
        default: nodes[0].options.wrongDaysPercent > 0 || nodes[0].options.hasLongDay ? newToken() : deletionStep()
        }
    }

    private func newID(_ kind: String) -> String { "\(office.prefix)\(kind)\(newValue())" }

    private var someAccount: String {
        office.accounts.keys.sorted().randomElement(using: &world.generator) ?? "\(office.prefix)nobody"
    }

    private func has(_ account: String) -> Bool { office.accounts[account] != nil }

    private func some(_ kinds: Set<TokenFilter.Kind>) -> Token? {
        office.tokens.values.filter { kinds.contains($0.kind.filterKind) }.sorted { $0.id < $1.id }
            .randomElement(using: &world.generator)
    }

    private func step(
        _ command: DirectoryCommand, _ refusal: ErrorCode? = nil, _ effect: (inout Office) -> Void
    ) -> OfficeStep {
        var after = office
        effect(&after)
        return OfficeStep(command: command, refusal: refusal, after: after)
    }

    private func isTaken(_ email: String?, _ identity: ExternalIdentity?, besides id: String) -> Bool {
        office.accounts.values.contains { other in
            other.id != id
                && (email != nil && other.email?.lowercased() == email?.lowercased()
                    || identity != nil && other.identity == identity)
        }
    }

    private var someEmail: String {
        let name = "mail\(world.random(0...2))@\(office.prefix)"
        return world.chance(30) ? name.uppercased() : name
    }

    private var someIdentity: ExternalIdentity {
        ExternalIdentity(issuer: "https://issuer", subject: "\(office.prefix)\(world.random(0...2))")
    }

    private func newUser() -> OfficeStep {
        var account = Account(
            id: newID("a"), name: "\(office.prefix)user\(world.random(0...2))", created: Self.officeTime)
        if world.chance(50) { account.email = someEmail }
        if world.chance(50) { account.identity = someIdentity }
        let isTaken =
            office.account(named: account.name) != nil
            || isTaken(account.email, account.identity, besides: account.id)
        return step(.createAccount(account), isTaken ? .exists : nil) {
            $0.accounts[account.id] = account
            $0.everyID.insert(account.id)
        }
    }

    private func changedUser() -> OfficeStep {
        let name = "\(office.prefix)user\(world.random(0...2))"
        var changes = AccountChanges()
        if world.chance(50) { changes.email = world.chance(30) ? "" : someEmail }
        if world.chance(30) { changes.givenName = world.chance(30) ? "" : newValue() }
        if world.chance(30) { changes.familyName = newValue() }
        if world.chance(30) { changes.isDiscoverable = world.chance(50) }
        if world.chance(40) { changes.identity = world.chance(30) ? ExternalIdentity.none : someIdentity }
        guard var account = office.account(named: name) else {
            return step(.updateAccount(name: name, changes), .notFound) { _ in }
        }
        if let email = changes.email { account.email = email.isEmpty ? nil : email }
        if let given = changes.givenName { account.givenName = given.isEmpty ? nil : given }
        if let family = changes.familyName { account.familyName = family }
        if let isDiscoverable = changes.isDiscoverable { account.isDiscoverable = isDiscoverable }
        if let identity = changes.identity { account.identity = identity == .none ? nil : identity }
        let isTaken = isTaken(account.email, account.identity, besides: account.id)
        return step(.updateAccount(name: name, changes), isTaken ? .exists : nil) { $0.accounts[account.id] = account }
    }

    private func endedUser() -> OfficeStep {
        let name = "\(office.prefix)user\(world.random(0...2))"
        guard let account = office.account(named: name) else {
            return step(.deleteAccount(name: name), .notFound) { _ in }
        }
        return step(.deleteAccount(name: name)) { office in
            office.accounts[account.id] = nil
            office.failures[account.id] = nil
            office.removeTokens { $0.kind.accountID == account.id }
            office.keys = office.keys.filter { $1.accountID != account.id }
            office.members = office.members.filter { $0.accountID != account.id }
        }
    }

    static func passwordHash(_ password: String) -> PasswordHash {
        // As little work as can be.
        var hash = PasswordHash(salt: [UInt8](repeating: 7, count: 16), logN: 1, r: 1, p: 1, hash: [])
        hash.hash = PasswordHasher.derive(Array(password.utf8), hash, byteCount: 32) ?? []
        return hash
    }

    static let officePasswords = ["password-one", "password-two"]

    private func passwordStep() -> OfficeStep {
        let id = someAccount
        guard let account = office.accounts[id] else { return newUser() }
        switch world.random(0...5) {
        case 0:
            return step(.noteSignInFailure(accountID: id, time: timeOfFailure)) {
                $0.failures[id, default: 0] += 1
            }
        case 1: return step(.administration(.unlock(account: account.name))) { $0.failures[id] = nil }
        default:
            let hash = world.chance(80) ? Self.passwordHash(world.pick(Self.officePasswords)) : nil
            let endsSessions = world.chance(40)
            return step(.setPassword(account: account.name, hash, endsSessions: endsSessions)) { office in
                office.accounts[id]?.password = hash
                office.failures[id] = nil
                if endsSessions { office.removeTokens { $0.kind.accountID == id } }
            }
        }
    }

    private var timeOfFailure: Int64 { Int64(world.now / World.millisecond) + Self.officeTime }

    private func newToken() -> OfficeStep {
        let (id, secret) = (newID("t"), newID("secret"))
        let kind = TokenKind.api(
            container: office.container, environment: world.chance(70) ? .development : .production,
            origins: world.chance(30) ? ["https://app.example"] : [], callbackURL: nil)
        var token = Token(
            id: id, secretHash: Token.hash(ofSecret: secret), kind: kind, label: newValue(),
            created: Self.officeTime + Int64(world.random(0...3)))
        if world.chance(10), let other = some([.api]) {
            token.id = other.id
            return step(.createToken(token), .exists) { _ in }
        }
        return step(.createToken(token)) { office in
            office.add(token)
            office.secrets[id] = secret
        }
    }

    private func newSession() -> OfficeStep {
        let (id, account) = (newID("s"), world.chance(90) ? someAccount : "\(office.prefix)nobody")
        let expires = Self.officeTime + 30 * 86_400_000
        if world.chance(40) {
            let secret = newID("secret")
            let token = Token(
                id: id, secretHash: Token.hash(ofSecret: secret),
                kind: .session(container: office.container, accountID: account, expires: expires), label: "",
                created: Self.officeTime)
            return step(.createToken(token), has(account) ? nil : .notFound) { office in
                office.add(token)
                office.secrets[id] = secret
            }
        }
        let token = Token(
            sessionID: id, container: office.container, accountID: account, expires: expires, label: "",
            created: Self.officeTime + Int64(world.random(0...3)))
        let password = Self.passwordHash(world.pick(Self.officePasswords))
        let app = some([.api])?.id ?? "none"
        let isRight = office.accounts[account]?.password == password && office.tokens[app] != nil
        let basis = SignInBasis(.password(fingerprint: password.fingerprint), apiTokenID: app)
        let refusal: ErrorCode? = has(account) ? (isRight ? nil : .authenticationFailed) : .notFound
        return step(.beginSession(token, basis), refusal) { office in
            office.add(token)
            office.failures[account] = nil
        }
    }

    private func revocation() -> OfficeStep {
        guard world.chance(90), let token = some([.api, .session, .signIn, .administrator, .console]) else {
            return step(.revokeToken(id: "\(office.prefix)none"), .notFound) { _ in }
        }
        return step(.revokeToken(id: token.id)) { office in
            office.tokens[token.id] = nil
            // Nothing is left by which there would be an administrator of the name.
            if case .administrator(let name) = token.kind, office.team[name] == nil {
                office.removeTokens { $0.kind.administratorName == name }
            }
        }
    }

    private func keyStep() -> OfficeStep {
        if world.chance(35), let key = office.keys.values.sorted(by: { $0.id < $1.id }).first {
            return step(.revokeServerKey(id: key.id)) { $0.keys[key.id] = nil }
        }
        let account = someAccount
        let isShort = world.chance(10)
        let key = ServerKey(
            id: newID("k"), container: office.container, environment: .development,
            publicKey: [4] + [UInt8](repeating: 1, count: isShort ? 63 : 64), accountID: account, label: "",
            created: Self.officeTime)
        return step(.createServerKey(key), has(account) ? (isShort ? .badRequest : nil) : .notFound) {
            $0.keys[key.id] = key
            $0.everyID.insert(key.id)
        }
    }

    private func roleStep() -> OfficeStep {
        let environment: Environment = world.chance(60) ? .development : .production
        if world.chance(35), let member = office.members.sorted().randomElement(using: &world.generator) {
            return step(.removeRoleMember(member)) { $0.members.remove(member) }
        }
        let member = RoleMember(
            container: office.container, environment: environment, role: "r\(world.random(0...2))",
            accountID: someAccount)
        if world.chance(10), !office.members.contains(member) {
            return step(.removeRoleMember(member), .notFound) { _ in }
        }
        let isRole = office.schemas[environment]?.schema.roles.contains(member.role) ?? false
        return step(.addRoleMember(member), has(member.accountID) && isRole ? nil : .notFound) {
            $0.members.insert(member)
        }
    }

    private func schemaStep() -> OfficeStep {
        let environment: Environment = world.chance(60) ? .development : .production
        let version = office.schemas[environment]?.version ?? 0
        let isWrong = world.chance(15)
        if world.chance(15) {
            let current = office.schemas[.development]?.version ?? 0
            let wanted = isWrong ? current + 1 : current
            return step(
                .resetDevelopment(container: office.container, expectedVersion: wanted), isWrong ? .conflict : nil
            ) { office in
                if let production = office.schemas[.production]?.schema {
                    office.set(production, in: .development, isReset: true)
                }
            }
        }
        var schema = Schema.initial
        schema.roles += (0..<3).filter { _ in world.chance(60) }.map { "r\($0)" }
        schema = Schema(roles: schema.roles, types: schema.types)
        let command = DirectoryCommand.setSchema(
            office.key(environment), expectedVersion: isWrong ? version + 1 : version, schema)
        return step(command, isWrong ? .conflict : nil) { $0.set(schema, in: environment) }
    }

    private func limitStep() -> OfficeStep {
        let limit = world.chance(60) ? Self.officeLimit : .databaseRecords
        let value: Int64? = world.chance(75) ? Int64(world.random(1_000...9_000)) : world.chance(30) ? -1 : nil
        let refusal: ErrorCode? = value == -1 ? .badRequest : nil
        return step(.setLimits(container: office.container, [LimitChange(limit, value)]), refusal) {
            if $0.limits[limit] != value { $0.limitChanges += 1 }
            $0.limits[limit] = value
        }
    }

    private func detailStep() -> OfficeStep {
        let details = ContainerDetails(
            name: office.container, isHidden: world.chance(50), note: world.chance(50) ? newValue() : "")
        return step(.administration(.describeContainer(details))) { $0.details = details }
    }

    private func relabelStep() -> OfficeStep {
        let label = newValue()
        switch world.random(0...2) {
        case 0:
            guard let key = office.keys.values.min(by: { $0.id < $1.id }) else { break }
            return step(.administration(.changeKey(id: key.id, label: label))) { $0.keys[key.id]?.label = label }
        case 1:
            let ids = [some([.api])?.id, office.keys.keys.min(), "\(office.prefix)none"].compactMap(\.self)
            let time = Self.officeTime + Int64(world.random(1...1_000))
            return step(.administration(.noteUses(ids: ids, time: time))) { office in
                for id in ids {
                    if office.tokens[id]?.lastUsed ?? 0 < time { office.tokens[id]?.lastUsed = time }
                    if office.keys[id]?.lastUsed ?? 0 < time { office.keys[id]?.lastUsed = time }
                }
            }
        default: break
        }
        guard let token = some([.api, .session]), case .api(let container, let environment, let old, let url) = token.kind
        else {
            return step(.administration(.changeToken(id: "\(office.prefix)none", label: label, origins: nil)), .notFound) {
                _ in
            }
        }
        let origins: [String]? = world.chance(50) ? nil : world.chance(50) ? ["https://other.example"] : []
        let newLabel = world.chance(50) ? label : nil
        return step(.administration(.changeToken(id: token.id, label: newLabel, origins: origins))) { office in
            if let newLabel { office.tokens[token.id]?.label = newLabel }
            office.tokens[token.id]?.kind = .api(
                container: container, environment: environment, origins: origins ?? old, callbackURL: url)
        }
    }

    private func providerStep() -> OfficeStep {
        let name = "\(office.prefix)provider\(world.random(0...1))"
        if world.chance(40) {
            return step(.removeIdentityProvider(name: name), office.providers[name] == nil ? .notFound : nil) {
                $0.providers[name] = nil
            }
        }
        let provider = IdentityProvider(
            name: name, issuer: "https://issuer\(world.random(0...1))", clientID: "c", sealedSecret: [],
            allowsSignUp: world.chance(50))
        return step(.setIdentityProvider(provider)) { $0.providers[name] = provider }
    }

    // MARK: The team

    private func teamStep() -> OfficeStep {
        let name = "\(office.prefix)boss\(world.random(0...2))"
        let known = office.team[name]
        let own = office.tokens.values.first { $0.kind == .administrator(name: name) }
        let isThere = known != nil || own != nil
        switch world.random(0...6) {
        case 0:
            let new = Administrator(
                name: name, role: world.pick([.viewer, .developer, .admin]),
                containers: world.chance(50) ? [office.container] : nil, created: Self.officeTime)
            let isRepeat = known == new
            return step(.console(.save(new, isNew: true)), isThere && !isRepeat ? .exists : nil) { $0.team[name] = new }
        case 1:
            let role = world.pick([AdministratorRole.viewer, .developer, .admin])
            return step(
                .administration(.changeAdministrator(name: name, role: role, containers: nil)),
                isThere ? nil : .notFound
            ) { office in
                var changed = known ?? Administrator(name: name, role: .admin, created: own?.created ?? 0)
                changed.role = role
                office.team[name] = changed
            }
        case 2:
            return step(.console(.remove(name: name)), isThere ? nil : .notFound) { office in
                office.team[name] = nil
                office.removeTokens { $0.kind.administratorName == name }
            }
        case 3:
            let (id, secret) = (newID("b"), newID("secret"))
            let token = Token(
                id: id, secretHash: Token.hash(ofSecret: secret), kind: .administrator(name: name), label: "",
                created: Self.officeTime)
            return step(.createToken(token), own == nil ? nil : .exists) { office in
                office.add(token)
                office.secrets[id] = secret
            }
        case 4: return linkStep(name, isThere)
        default: return actingStep(name, isThere)
        }
    }

    /// Makes a link to the console, or begins a session by one.
    private func linkStep(_ name: String, _ isThere: Bool) -> OfficeStep {
        let expires = Self.officeTime + 30 * 86_400_000
        let (id, secret) = (newID("c"), newID("secret"))
        if let link = some([.consoleLink]), case .consoleLink(let owner, _) = link.kind {
            let session = Token(
                id: id, secretHash: Token.hash(ofSecret: secret), kind: .console(name: owner, expires: expires),
                label: "", created: Self.officeTime + 5)
            let command = ConsoleCommand.beginSession(session, .link(secretHash: link.secretHash), replacing: "")
            return step(.console(command)) { office in
                office.tokens[link.id] = nil
                office.add(session)
                office.team[owner]?.lastSignIn = session.created
            }
        }
        let link = Token(
            id: id, secretHash: Token.hash(ofSecret: secret), kind: .consoleLink(name: name, expires: expires),
            label: "", created: Self.officeTime)
        return step(.console(.makeLink(link)), isThere ? nil : .authenticationFailed) { $0.add(link) }
    }

    private func actingStep(_ name: String, _ isThere: Bool) -> OfficeStep {
        if world.chance(30), let token = some([.acting]) {
            return step(.administration(.endActing(token))) { $0.tokens[token.id] = nil }
        }
        let account = someAccount
        let acting = ActingSession(
            by: name, in: "", as: account, of: office.key(.development), reason: "r", mayWrite: false,
            expires: Self.officeTime + 30 * 86_400_000)
        let id = newID("u")
        let token = Token(
            id: id, secretHash: Token.hash(ofSession: id), kind: .acting(acting), label: "", created: Self.officeTime)
        let refusal: ErrorCode? = !has(account) ? .notFound : isThere ? nil : .authenticationFailed
        return step(.administration(.beginActing(token)), refusal) { office in
            office.removeTokens { other in
                if case .acting(let earlier) = other.kind { earlier.administrator == name } else { false }
            }
            office.add(token)
        }
    }

    // MARK: The end of a container

    private func deletionStep() -> OfficeStep {
        let time = Int64(world.now / World.millisecond) + Self.officeTime
        return step(.endContainer(office.container, .delete(time: time))) { $0.deleted = time }
    }

    private func stepOfDeleted() -> OfficeStep {
        let name = office.container
        let deleted = office.deleted ?? 0
        let week: Int64 = 7 * 86_400_000
        return switch world.random(0...9) {
        case 0: step(.createContainer(name: name, time: deleted), .exists) { _ in }
        case 1: step(.setLimits(container: name, [LimitChange(Self.officeLimit, 5_000)]), .notFound) { _ in }
        case 2: step(.endContainer(name, .restore(time: deleted + week)), .conflict) { _ in }
        case 3: step(.endContainer(name, .purge(time: deleted + week - 1)), .notFound) { _ in }
        case 4: step(.endContainer(name, .remove), .notFound) { _ in }
        case 5: step(.endContainer(name, .delete(time: deleted)), .notFound) { _ in }
        default: step(.endContainer(name, .restore(time: deleted + week - 1))) { $0.deleted = nil }
        }
    }
}
