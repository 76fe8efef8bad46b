import Admission
import Authorization
import Cluster
package import Directory
import RecordModel

/// Times for which administrators are let in as users: beginning, showing and ending them.
///
/// Such a time is a row of the directory, so its end holds on every node at once (decision 0008).
package struct ActingAdministration: Sendable {
    /// A time as a user, as its administrator is told of it.
    package struct Entry: Sendable {
        /// By what requests name it.
        package var id: String
        /// What it allows, and until when.
        package var session: ActingSession
        /// The user's name.
        package var user: String
        /// When it began, in milliseconds since 1970.
        package var began: Int64
        /// Whether it is the caller's own, so that their requests can name it.
        package var isOwn: Bool

        /// As the container knows the user.
        package var userRecordName: String {
            Account.userRecordName(accountID: session.accountID, container: session.container)
        }
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// Lets the administrator in as a user of a container's environment, in place of an earlier time there.
    /// - Parameter minutes: how long at most; nil: as long as is allowed.
    /// - Throws: `ACCESS_DENIED` where the container's limits do not allow it; `NOT_FOUND` for an unknown user.
    package func begin(
        as user: String, in place: SchemaKey, reason: String, mayWrite: Bool, minutes: Int64?
    ) async throws(RequestFailure) -> Entry {
        let access = try administration.access
        let directory = try await administration.directory(with: place.container)
        let allowed = try Self.minutesAllowed(in: place, by: directory)
        let account = try await administration.account(named: user)
        try await administration.requireLevel()
        let now = try service.trustedNow()
        let session = ActingSession(
            by: access.name ?? "", in: access.session?.id ?? "", as: account.id, of: place, reason: reason,
            mayWrite: mayWrite, expires: now + min(minutes ?? allowed, allowed) * 60_000)
        let id = service.randomHex(bytes: 8)
        let token = Token(
            id: id, secretHash: Token.hash(ofSession: id), kind: .acting(session), label: account.name, created: now)
        try await administration.change(.administration(.beginActing(token)))
        return Entry(id: id, session: session, user: account.name, began: now, isOwn: true)
    }

    static func minutesAllowed(
        in place: SchemaKey, by directory: DirectorySnapshot
    ) throws(RequestFailure) -> Int64 {
        let limit = place.environment == .production ? ContainerLimit.actAsProductionMinutes : .actAsMinutes
        let minutes = directory.limits(of: place.container)[limit]
        if minutes > 0 { return minutes }
        throw .accessDenied(
            "nobody may act as a user of '\(place.container)' (\(place.environment.rawValue)): its limit "
                + "\(limit.rawValue) is 0; an admin of the cluster can set it with `zonekeeper limits set "
                + "\(limit.rawValue)=15`")
    }

    /// The times that last: the administrator's own, and for an admin of the cluster all others, the newest first.
    package func list() async throws(RequestFailure) -> [Entry] {
        let directory = try await service.cluster.newestDirectory()
        let access = try administration.access
        let (seesAll, now) = (access.isClusterAdmin, service.now)
        let entries = directory.acting.map { token, session in
            Entry(
                id: token.id, session: session, user: token.label, began: token.created,
                isOwn: session.belongs(to: access))
        }
        return entries.filter { ($0.isOwn || seesAll) && now < $0.session.expires }
            .sorted { ($1.began, $1.id) < ($0.began, $0.id) }
    }

    /// Ends one; when it returns, no node takes it any more.
    /// - Throws: `NOT_FOUND` where the administrator may end no such time.
    package func end(_ id: String) async throws(RequestFailure) {
        guard try await list().contains(where: { $0.id == id }), let token = service.directory.token(withID: id) else {
            throw .notFound("no time as a user '\(AuditText.id(id))': `zonekeeper act-as list` shows those that last")
        }
        try await administration.change(.administration(.endActing(token)))
    }
}

extension ActingSession {
    /// Whether an administrator's requests may name it: those of the session of the console, or with the token, by
    /// which it began.
    func belongs(to access: AdministratorAccess) -> Bool {
        administrator == access.name ?? "" && consoleSession == access.session?.id ?? ""
    }
}

/// What a request shows of an administrator who acts as a user.
package struct ActingCredential: Hashable, Sendable {
    /// Of the time as a user.
    package var id: String
    /// Who names it.
    package var access: AdministratorAccess

    package init(id: String, access: AdministratorAccess) {
        self.id = id
        self.access = access
    }

    /// Who asks, where an administrator acts as a user: judged by the directory as it is now, under the node's lease,
    /// so that nothing goes on after an end that was acknowledged.
    /// - Throws: `ACCESS_DENIED` where the time is over, is another's or elsewhere, or may only read and `writes`;
    ///   `NOT_FOUND` where the container was deleted.
    func admitted(
        by service: RecordService, to target: Target, writes: Bool
    ) async throws(RequestFailure) -> AdmittedRequest {
        let node = service.node
        try await service.cluster.requireDirectory()
        if node.directory.snapshot.token(withID: id) == nil { try await service.cluster.refreshDirectory() }
        let directory = node.directory.snapshot
        guard case .acting(let session)? = directory.token(withID: id)?.kind,
            session.belongs(to: access), try service.trustedNow() < session.expires,
            let account = try await service.accounts.read({ try $0.account(withID: session.accountID) })
        else {
            throw .accessDenied("your time as a user is over, or never was: `zonekeeper act-as start` begins another")
        }
        let place = SchemaKey(container: target.container, environment: target.environment)
        guard session.schemaKey == place else {
            throw .accessDenied(
                "you act as a user of '\(session.container)' (\(session.environment.rawValue)), the request names "
                    + "'\(target.container)' (\(target.environment.rawValue))")
        }
        try relay(directory.requireContainer(place.container))
        // Either may have been taken away meanwhile.
        _ = try ActingAdministration.minutesAllowed(in: place, by: directory)
        try ConsoleAccess(service).access(named: access.name, session: access.session).require(
            AdministratorNeed(.admin, .container), container: place.container, environment: place.environment,
            now: service.now)
        if writes, !session.mayWrite {
            throw .accessDenied("you act as user '\(account.name)' to read only: nothing was changed")
        }
        var admitted = Admitted(
            caller: Admission.caller(session.accountID, for: target, in: directory), accountID: session.accountID)
        admitted.accountName = account.name
        admitted.administrator = access.actor
        return AdmittedRequest(admitted: admitted, directory: directory)
    }
}
