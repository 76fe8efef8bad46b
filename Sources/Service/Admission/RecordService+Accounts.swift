import Cluster
package import Directory

// Accounts and sessions, as this node's copy of the directory has them. Whoever must not miss what was acknowledged a
// moment ago refreshes the directory first.
extension RecordService {
    /// Answers questions about accounts from one snapshot.
    /// - Throws: `TRY_AGAIN_LATER` where too many such questions wait.
    package func readAccounts<Value: Sendable>(
        _ read: @escaping @Sendable (AccountReader) throws -> Value
    ) async throws(RequestFailure) -> Value {
        do throws(ClusterError) { return try await accounts.read(read) } catch { throw RequestFailure(error) }
    }

    /// The account of a name, however its letters are composed.
    package func account(named name: String) async throws(RequestFailure) -> Account? {
        try await readAccounts { try $0.account(named: name) }
    }

    /// The account that goes by a user record name in a container.
    package func account(
        withUserRecordName name: String, in container: String
    ) async throws(RequestFailure) -> Account? {
        do throws(ClusterError) {
            return try await accounts.account(withUserRecordName: name, in: container)
        } catch {
            throw RequestFailure(error)
        }
    }
}
