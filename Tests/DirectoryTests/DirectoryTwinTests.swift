import GRDB
import RaftCore
import RecordModel
import Testing

@testable import Directory

/// Random commands, against the tables and against a naive account of sessions and roles.
@Suite("Random commands")
struct DirectoryTwinTests {
    @Test("snapshot from changes, snapshot from tables and a naive twin say the same", arguments: 1...6)
    func twins(seed: Int) throws {
        let directory = try TestDirectory()
        var random = RandomCommands(seed: UInt64(seed))
        var kept = DirectorySnapshot()
        var doneCount = 0
        for step in 0..<400 {
            let command = random.command()
            let before = kept
            let origin = AuditOrigin(actor: "a", requestID: "\(step)", address: "", time: Int64(step))
            let entry = DirectoryEntry(command, origin: step.isMultiple(of: 3) ? origin : nil)
            let (outcome, changes) = try directory.apply(entry)
            for change in changes { kept.take(change) }
            if case .done = outcome {
                doneCount += 1
            } else {
                // Only the audit log tells of it.
                #expect(changes.allSatisfy { if case .audit = $0 { true } else { false } }, "\(command)")
            }
            // A copy does not see what was changed after it was made.
            if !changes.isEmpty { #expect(before != kept || changes.allSatisfy(\.isRepetition), "\(command)") }
            if step.isMultiple(of: 20) { try check(kept, directory) }
        }
        try check(kept, directory)
        #expect(doneCount > 100 && doneCount < 400, "\(doneCount) done")
        let page = try directory.audit()
        #expect(page.firstBroken == nil)
        #expect(kept.auditBounds(of: .changes).last == page.records.last?.sequence)
    }

    private func check(_ kept: DirectorySnapshot, _ directory: TestDirectory) throws {
        let read = try directory.snapshot()
        #expect(kept == read)
        let tokens = try directory.tokens()
        let accounts = try directory.accounts()
        let ids = Set(accounts.map(\.id))
        for container in RandomCommands.containers {
            let users = Set(tokens.filter { $0.kind.container == container }.compactMap(\.kind.accountID))
            #expect(kept.userCount(of: container) == users.count)
        }
        for token in tokens {
            #expect(try directory.token(withID: token.id) == token)
            guard let accountID = token.kind.accountID else {
                #expect(kept.token(withID: token.id) == token)
                continue
            }
            #expect(kept.token(withID: token.id) == nil && ids.contains(accountID))
        }
        for account in accounts {
            #expect(try directory.account(named: account.name) == account)
            if let identity = account.identity { #expect(try directory.account(withIdentity: identity) == account) }
            for container in RandomCommands.containers {
                let roles = kept.members(container: container, environment: .development)
                    .filter { $0.accountID == account.id }.map(\.role)
                #expect(kept.roles(of: account.id, container: container, environment: .development) == roles)
            }
        }
        #expect(kept.serverKeys.allSatisfy { ids.contains($0.accountID) })
        let rows = try directory.database.read { db in
            try ["account", "token", "server_key", "provider"].map {
                try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM \($0)") ?? -1
            }
        }
        #expect(rows == [accounts.count, tokens.count, kept.serverKeys.count, kept.providers.count])
    }
}

extension DirectoryChange {
    /// Whether the change may say again what is known already, or is of what snapshots do not have.
    fileprivate var isRepetition: Bool {
        switch self {
        case .firstExpiry, .accountAdded, .accountChanged: true
        case .tokenRemoved(let token): token.kind.accountID != nil
        default: false
        }
    }
}

/// Commands about a handful of names, so that they meet.
private struct RandomCommands {
    static let containers = ["c0", "c1", "c2"]
    private static let limits: [ContainerLimit] = [.userBytes, .requestsPerSecond, .databaseRecords]
    private var generator: SplitMix64
    private var time: Int64 = 0

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    private mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
    private mutating func bool() -> Bool { Bool.random(using: &generator) }
    private mutating func name(_ prefix: String, _ count: Int) -> String { "\(prefix)\(number(count))" }
    private mutating func container() -> String { name("c", 3) }

    mutating func command() -> DirectoryCommand {
        time += Int64(number(3))
        let kind = number(25)
        return kind < 12 ? accountCommand(kind) : accessCommand(kind)
    }

    private mutating func accountCommand(_ kind: Int) -> DirectoryCommand {
        switch kind {
        case 0, 1:
            let number = number(5)
            return .createAccount(
                Account(
                    id: "a\(number)", name: "n\(number)", created: time, email: bool() ? name("e", 4) : nil,
                    identity: bool() ? identity() : nil))
        case 2:
            return .updateAccount(
                name: name("n", 5),
                AccountChanges(
                    email: bool() ? name("e", 4) : "",
                    identity: bool() ? identity() : ExternalIdentity.none))
        case 3: return .deleteAccount(name: name("n", 5))
        case 4:
            let password = PasswordHash(salt: [UInt8(number(3))], logN: 1, r: 1, p: 1, hash: [])
            return .setPassword(account: name("n", 5), bool() ? password : nil, endsSessions: number(4) == 0)
        case 5: return .noteSignInFailure(accountID: name("a", 5), time: time)
        case 6, 7:
            return .beginSession(
                Token(
                    sessionID: name("s", 12), container: container(), accountID: name("a", 5),
                    expires: time + Int64(number(60)), label: "", created: time), basis())
        case 8: return .revokeToken(id: name(bool() ? "s" : "t", 12))
        default: return .createToken(token())
        }
    }

    /// Now and then what holds by chance.
    private mutating func basis() -> SignInBasis {
        guard bool() else {
            return SignInBasis(.identity(identity(), provider: name("p", 2)), apiTokenID: name("t", 12))
        }
        let password = PasswordHash(salt: [UInt8(number(3))], logN: 1, r: 1, p: 1, hash: [])
        return SignInBasis(.password(fingerprint: password.fingerprint), apiTokenID: name("t", 12))
    }

    private mutating func identity() -> ExternalIdentity {
        ExternalIdentity(issuer: name("i", 2), subject: name("s", 3))
    }

    private mutating func token() -> Token {
        let number = number(12)
        let kind: TokenKind =
            if bool() {
                .session(container: container(), accountID: name("a", 5), expires: time + Int64(self.number(60)))
            } else {
                .api(container: container(), environment: .production, origins: [], callbackURL: nil)
            }
        return Token(
            id: "t\(number)", secretHash: Token.hash(ofSecret: "\(number)"), kind: kind, label: "", created: time)
    }

    private mutating func accessCommand(_ kind: Int) -> DirectoryCommand {
        switch kind {
        case 12: return .createContainer(name: container(), time: time)
        case 13:
            let key = SchemaKey(container: container(), environment: .development)
            return .setSchema(key, expectedVersion: UInt64(1 + number(3)), Schema(roles: ["r0", "r1"]))
        case 14:
            return .addContainerKey(container: container(), ContainerKey(number: UInt64(1 + number(3)), wrapped: [1]))
        case 15:
            return .createServerKey(
                ServerKey(
                    id: name("k", 6), container: container(), environment: .development,
                    publicKey: [4] + [UInt8](repeating: 1, count: 64), accountID: name("a", 5), label: "", created: time
                ))
        case 16: return .revokeServerKey(id: name("k", 6))
        case 17, 18: return .addRoleMember(member())
        case 19: return .removeRoleMember(member())
        case 20, 21:
            let limit = Self.limits[number(3)]
            let change = LimitChange(limit, bool() ? Int64(number(5)) : nil)
            return .setLimits(container: bool() ? container() : nil, [change])
        case 22:
            if number(3) == 0 { return .setSignUp(isOpen: bool()) }
            if number(3) == 0 { return .webhook(webhook()) }
            if bool() { return .administration(administration()) }
            if bool() { return .removeIdentityProvider(name: name("p", 2)) }
            return .setIdentityProvider(
                IdentityProvider(
                    name: name("p", 2), issuer: "i", clientID: "c", sealedSecret: [], allowsSignUp: bool()))
        case 23: return .endContainer(container(), end())
        default: return .purge(time: time, auditRecordsMax: UInt64(10 + number(40)))
        }
    }

    private mutating func webhook() -> WebhookCommand {
        if number(3) == 0 { return .remove(container: container(), .development, name: name("w", 2)) }
        var webhook = Webhook(
            container: container(), environment: .development, name: name("w", 2), id: "i", url: "u",
            sealedSecrets: [[1]], state: number(3) == 0 ? .leaving : .enabled)
        webhook.revision = UInt64(number(3))
        return .save(webhook)
    }

    private mutating func administration() -> AdministrationCommand {
        let acting = ActingSession(
            by: "", in: "", as: name("a", 6), of: SchemaKey(container: container(), environment: .development),
            reason: "r", mayWrite: bool(), expires: time + 5)
        let id = name("acting", 2)
        let token = Token(
            id: id, secretHash: Token.hash(ofSession: id), kind: .acting(acting), label: "u", created: time)
        return switch number(7) {
        case 0, 1: .beginActing(token)
        case 2: .endActing(token)
        case 3: .describeContainer(ContainerDetails(name: container(), isHidden: bool(), note: bool() ? "n" : ""))
        case 4: .changeToken(id: name("t", 12), label: bool() ? "l" : nil, origins: bool() ? ["https://o"] : nil)
        case 5: .unlock(account: name("n", 5))
        default: .noteUses(ids: [name("t", 12), name("k", 6)], time: time)
        }
    }

    private mutating func end() -> ContainerEnd {
        switch number(5) {
        case 0: .delete(time: time)
        case 1: .restore(time: time)
        case 2: .purge(time: time + (bool() ? ContainerDeletion.graceMilliseconds : 0))
        case 3: .revoke(ids: [name("t", 12), name("s", 12), name("k", 6)])
        default: .remove
        }
    }

    private mutating func member() -> RoleMember {
        RoleMember(container: container(), environment: .development, role: name("r", 2), accountID: name("a", 5))
    }
}
