import RecordModel
import Testing

@testable import Directory

@Suite("Secrets and the audit log")
struct AuditSecretTests {
    private static let secret = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2"
    private static let bytes = Array(secret.utf8)

    /// One command of each case, with the secret wherever there may be one, and where somebody could take it for an id.
    private static let commands: [DirectoryCommand] = {
        let hash = PasswordHash(salt: bytes, logN: 15, r: 8, p: 1, hash: bytes)
        let identity = ExternalIdentity(issuer: "https://id", subject: secret)
        let account = Account(
            id: secret, name: "ada", created: 1, email: secret, givenName: secret, familyName: secret, password: hash,
            identity: identity)
        let member = RoleMember(container: "app", environment: .production, role: "editor", accountID: secret)
        let api = TokenKind.api(
            container: "app", environment: .production, origins: [secret], callbackURL: "https://x?\(secret)")
        let session = TokenKind.session(container: "app", accountID: secret, expires: 1)
        return [
            .installMap(ClusterMap(clusterID: secret, epoch: 1, nodes: [], shards: [[]], slots: [])),
            .changeMap(.claimNode(1, incarnation: 2, previous: 3)),
            .createContainer(name: "app", time: 1),
            .setSchema(SchemaKey(container: "app", environment: .production), expectedVersion: 1, Schema()),
            .setSchema(
                SchemaKey(container: "app", environment: .development), expectedVersion: 2, Schema(), growth: "Note"),
            .resetDevelopment(container: "app", expectedVersion: 1),
            .addContainerKey(container: "app", ContainerKey(number: 1, wrapped: bytes)),
            .createAccount(account),
            .updateAccount(
                name: "ada",
                AccountChanges(email: secret, givenName: secret, familyName: secret, identity: identity)),
            .deleteAccount(name: "ada"), .setPassword(account: "ada", hash, endsSessions: true),
            .createToken(Token(id: secret, secretHash: bytes, kind: api, label: secret, created: 1)),
            .createToken(Token(id: secret, secretHash: bytes, kind: session, label: secret, created: 1)),
            .beginSession(
                Token(sessionID: secret, container: "app", accountID: secret, expires: 1, label: secret, created: 1),
                SignInBasis(.password(fingerprint: bytes), apiTokenID: secret)),
            .revokeToken(id: secret), .noteSignInFailure(accountID: secret, time: 1),
            .createServerKey(
                ServerKey(
                    id: secret, container: "app", environment: .production, publicKey: bytes, accountID: secret,
                    label: secret, created: 1)),
            .revokeServerKey(id: secret), .addRoleMember(member), .removeRoleMember(member),
            .setLimits(container: "app", [LimitChange(.userBytes, 1)]),
            .setIdentityProvider(
                IdentityProvider(
                    name: "p", issuer: "https://id", clientID: secret, sealedSecret: bytes, allowsSignUp: true)),
            .removeIdentityProvider(name: "p"), .setSignUp(isOpen: true), .purge(time: 1),
            .webhook(
                .save(
                    Webhook(
                        container: "app", environment: .development, name: "w", id: secret,
                        url: "https://h.example/\(secret)", sealedSecrets: [bytes]))),
            .console(.save(Administrator(name: "grace", role: .admin, password: hash, created: 1), isNew: true)),
            .console(.setPassword(name: "grace", hash, keepingSession: secret, time: 1)),
            .console(
                .makeLink(
                    Token(
                        id: secret, secretHash: bytes, kind: .consoleLink(name: "grace", expires: 1), label: secret,
                        created: 1))),
            .console(
                .beginSession(
                    Token(
                        id: secret, secretHash: bytes, kind: .console(name: "grace", expires: 1), label: secret,
                        created: 1), .link(secretHash: bytes), replacing: secret)),
            .console(.remove(name: "grace")),
            .administration(
                .beginActing(
                    Token(
                        id: secret, secretHash: bytes,
                        kind: .acting(
                            ActingSession(
                                by: secret, in: secret, as: secret,
                                of: SchemaKey(container: "app", environment: .development), reason: "why",
                                mayWrite: true, expires: 1)), label: "ada", created: 1))),
            .administration(.describeContainer(ContainerDetails(name: "app", isHidden: true, note: "n"))),
            .administration(.changeToken(id: secret, label: secret, origins: ["https://o"])),
            .administration(.changeKey(id: secret, label: secret)),
            .administration(.noteUses(ids: [secret], time: 1)), .administration(.unlock(account: "ada")),
            .administration(
                .makeToken(
                    Token(
                        id: secret, secretHash: bytes, kind: .administrator(name: "grace"), label: secret, created: 1),
                    session: secret)),
            .administration(.changeAdministrator(name: secret, role: .viewer, containers: ["app"])),
        ]
    }()

    /// The secret, its second half, and both as the hexadecimal digits and the numbers of its bytes.
    private static func isShown(in text: String) -> Bool {
        let half = String(secret.suffix(32))
        return [half, Hex.encode(Array(half.utf8)), half.utf8.map(String.init).joined(separator: ", ")]
            .contains { text.contains($0) }
    }

    @Test("no command's summary shows a secret", arguments: commands.indices)
    func summaries(index: Int) {
        let (action, subject) = Self.commands[index].auditSummary
        #expect(!action.isEmpty && !subject.isEmpty)
        #expect(!Self.isShown(in: action + "\n" + subject), "\(subject)")
    }

    @Test("no record of a command shows a secret, whether it was done or refused")
    func records() throws {
        let empty = try TestDirectory()
        let populated = try TestDirectory.populated()
        let origin = AuditOrigin(actor: "administrator", requestID: "r", address: "::1", time: 1)
        var texts = ""
        for directory in [empty, populated] {
            var appended: UInt64 = 0
            // Twice, so that what exists is made again; the map above has no form that can be read back, and a growth
            // that comes too late is not told.
            for command in (Self.commands + Self.commands).filter({
                switch $0 {
                case .installMap, .setSchema(_, _, _, .some): false
                default: true
                }
            }) {
                try directory.apply(DirectoryEntry(command, origin: origin))
                appended += 1
            }
            let pages = try AuditLog.allCases.map { try directory.audit($0) }
            #expect(pages.reduce(0) { $0 + ($1.records.last?.sequence ?? 0) } == appended)
            #expect(pages.allSatisfy { $0.firstBroken == nil && !$0.records.isEmpty })
            #expect(Set(pages.flatMap(\.records).map { $0.event.outcome == "done" }) == [true, false])
            for record in pages.flatMap(\.records) {
                let event = record.event
                let text = "\(event.action) \(event.subject) \(event.outcome)"
                #expect(!Self.isShown(in: text), "\(event)")
                texts += text + "\n"
            }
        }
        // Every node makes these texts for itself, and hashes them. So a build with other ones differs from one of the
        // same feature level: a text that is to change needs a level from which on it does.
        let known = "1f219a19a4bc80e22362a03a45c28d88006cb23d02477121ca5e42447773b8f6"
        #expect(Hex.encode(Token.hash(ofSecret: texts)) == known, "\(texts)")
    }

    @Test("ids are shown, what could be a secret is not")
    func ids() {
        #expect(AuditText.id("t1") == "t1")
        #expect(AuditText.id("0123456789abcdef") == "0123456789abcdef")
        #expect(AuditText.id("0123456789abcdef0123456789abcdef") == "0123456789abcdef0123456789abcdef")
        #expect(AuditText.id(Self.secret) == "5ec2e75ec2e75ec2…")
        let hidden = AuditText.id("a-secret_that-an-administrator-chose")
        #expect(hidden.hasPrefix("#") && hidden.utf8.count == 9)
    }
}
