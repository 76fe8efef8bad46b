import Admission
import Directory
import RecordModel

// What a client changes of the tokens, keys, roles, schemas and limits of its own container.
extension Client {
    func newToken() -> OfficeStep {
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

    func newSession() -> OfficeStep {
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

    func revocation() -> OfficeStep {
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

    func keyStep() -> OfficeStep {
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

    func roleStep() -> OfficeStep {
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

    func schemaStep() -> OfficeStep {
        let environment: Environment = world.chance(60) ? .development : .production
        let version = office.schemas[environment]?.version ?? 0
        let isWrong = world.chance(15)
        if world.chance(15) {
            let current = office.schemas[.development]?.version ?? 0
            let wanted = isWrong ? current + 1 : current
            return resetStep(expectedVersion: wanted, isWrong ? .conflict : nil)
        }
        let roles = (0..<3).filter { _ in world.chance(60) }.map { "r\($0)" }
        let schema = Schema(roles: Schema.initial.roles + roles, types: Schema.initial.types)
        let command = DirectoryCommand.setSchema(
            office.key(environment), expectedVersion: isWrong ? version + 1 : version, schema)
        return step(command, isWrong ? .conflict : nil) { $0.set(schema, in: environment) }
    }

    func resetStep(expectedVersion: UInt64, _ refusal: ErrorCode? = nil) -> OfficeStep {
        step(.resetDevelopment(container: office.container, expectedVersion: expectedVersion), refusal) { office in
            if let production = office.schemas[.production]?.schema {
                office.set(production, in: .development, isReset: true)
            }
        }
    }

    func limitStep() -> OfficeStep {
        let limit = world.chance(60) ? Self.officeLimit : .databaseRecords
        let value: Int64? = world.chance(75) ? Int64(world.random(1_000...9_000)) : world.chance(30) ? -1 : nil
        let refusal: ErrorCode? = value == -1 ? .badRequest : nil
        return step(.setLimits(container: office.container, [LimitChange(limit, value)]), refusal) {
            if $0.limits[limit] != value { $0.limitChanges += 1 }
            $0.limits[limit] = value
        }
    }

    func detailStep() -> OfficeStep {
        let details = ContainerDetails(
            name: office.container, isHidden: world.chance(50), note: world.chance(50) ? newValue() : "")
        return step(.administration(.describeContainer(details))) { $0.details = details }
    }

    func relabelStep() -> OfficeStep {
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
        guard let token = some([.api, .session]),
            case .api(let container, let environment, let old, let url) = token.kind
        else {
            return step(
                .administration(.changeToken(id: "\(office.prefix)none", label: label, origins: nil)), .notFound
            ) {
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

    func providerStep() -> OfficeStep {
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
}
