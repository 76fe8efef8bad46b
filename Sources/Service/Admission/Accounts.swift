package import Admission
import Cluster
package import Directory
package import RecordModel

/// Accounts and sessions, as this node's copy of the directory has them.
///
/// A caller that must not miss what was acknowledged a moment ago refreshes the directory first. Every question fails
/// with `TRY_AGAIN_LATER` where too many wait.
package struct Accounts: Sendable {
    private let node: NodeAccounts
    private let userNames: UserNames

    init(of node: ClusterNode) {
        self.node = NodeAccounts(of: node)
        userNames = node.directory.userNames
    }

    /// Answers questions from one snapshot.
    package func read<Value: Sendable>(
        _ questions: @escaping @Sendable (AccountReader) throws -> Value
    ) async throws(RequestFailure) -> Value {
        return try await ask(await node.read(questions))
    }

    /// Hashes a new password, away from event loops.
    /// - Throws: `BAD_REQUEST` for one that is too short or too long, `TRY_AGAIN_LATER` where too many wait.
    func hash(of password: String, salt: [UInt8]) async throws(RequestFailure) -> PasswordHash {
        try await hashing { () throws(ServiceError) in try PasswordHasher.hash(password, salt: salt) }
    }

    /// Whether a password is the one of a hash; as much work where there is none.
    func isRight(_ password: String, for hash: PasswordHash?) async throws(RequestFailure) -> Bool {
        try await hashing { () throws(ServiceError) in PasswordHasher.matches(password, hash) }
    }

    private func hashing<Value: Sendable>(
        _ work: @escaping @Sendable () throws(ServiceError) -> Value
    ) async throws(RequestFailure) -> Value {
        do {
            return try await node.passwords.run { try work() }
        } catch let error as ServiceError {
            throw RequestFailure(error)
        } catch {
            let reason =
                error is QueueFull ? "too many sign-ins are being checked at this moment" : "this node is stopping"
            throw RequestFailure(ServiceError(.tryAgainLater, reason, retryAfterSeconds: 2))
        }
    }

    /// The account of a name, however its letters are composed.
    package func account(named name: String) async throws(RequestFailure) -> Account? {
        try await read { try $0.account(named: name) }
    }

    /// The account that goes by a user record name in a container.
    package func account(
        withUserRecordName name: String, in container: String
    ) async throws(RequestFailure) -> Account? {
        try await read { [userNames] reader in
            let generation = userNames.generation
            return try reader.account(withUserRecordName: name, in: container, userNames, generation: generation)
        }
    }

    /// The accounts that are asked for by address or user record name, each in its place.
    package func accounts(_ lookups: [LookupInfo], in container: String) async throws(RequestFailure) -> [Account?] {
        try await read { [userNames] reader in
            let generation = userNames.generation
            return try lookups.map { info in
                try info.emailAddress.flatMap { try reader.account(withEmail: $0) }
                    ?? info.userRecordName.flatMap {
                        try reader.account(withUserRecordName: $0, in: container, userNames, generation: generation)
                    }
            }
        }
    }

    /// The names of the accounts whose private databases they are, by owner.
    package func names(ofOwners keys: [DatabaseKey]) async throws(RequestFailure) -> [String: String] {
        try await read { [userNames] reader in
            let generation = userNames.generation
            var found: [String: String] = [:]
            for key in keys where key.scope == .private {
                let account = try reader.account(
                    withUserRecordName: key.owner, in: key.container, userNames, generation: generation)
                found[key.owner] = account?.name
            }
            return found
        }
    }

    /// The session that credentials name, as this node knows it; nil where they name none.
    /// - Parameter signer: opens the web auth tokens of sign-ins; nil where the node has no key for them.
    package func session(
        of credentials: Credentials, _ signer: SessionSigner?
    ) async throws(RequestFailure) -> PresentedSession? {
        guard credentials.signed == nil, let webAuthToken = credentials.webAuthToken else { return nil }
        var session = PresentedSession(webAuthToken: webAuthToken, signer: signer)
        session.known = try await ask(await node.session(session.key))
        return session
    }
}
