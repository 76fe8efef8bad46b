package import Admission
import Authorization
package import Cluster
import Directory
import Foundation
import RaftCore
import RecordModel
import RecordStore
import Wire

/// What every route needs: the node, and who may administer it.
package struct WebContext: Sendable {
    package var node: ClusterNode
    package var administrator: AdministratorToken
    package var metrics: Metrics
    let userRecords = KnownUserRecords()

    package init(node: ClusterNode, administrator: AdministratorToken) {
        self.node = node
        self.administrator = administrator
        metrics = Metrics()
    }

    /// Milliseconds since 1970.
    var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Decides who the caller is. A refusal is believed only after this node has caught up with the directory, so that a token
    /// works on every node as soon as it was made.
    func admit(
        _ credentials: Credentials, to target: Target
    ) async throws(RequestFailure) -> Caller {
        do throws(ServiceError) {
            return try Admission.caller(with: credentials, for: target, in: node.directory.snapshot, now: now)
        } catch {
            // What was not sent cannot be known better elsewhere.
            if credentials.apiToken == nil || error.code == .authenticationRequired && credentials.webAuthToken == nil {
                throw RequestFailure(error)
            }
        }
        try await refreshDirectory()
        do throws(ServiceError) {
            return try Admission.caller(with: credentials, for: target, in: node.directory.snapshot, now: now)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Has a command applied by the directory; this node may not know of it yet.
    func submit(_ command: DirectoryCommand, by deadline: Deadline) async throws(RequestFailure) -> DirectoryOutcome {
        let bytes: [UInt8]
        do throws(ClusterError) {
            bytes = try await node.router.submit(.machine(command.encoded()), to: .directory, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        return try unpacked(bytes)
    }

    func refreshDirectory() async throws(RequestFailure) {
        do throws(ClusterError) {
            try await node.refreshDirectory()
        } catch {
            throw RequestFailure(error)
        }
    }

    /// The schema as this node knows it; version 0 and empty where none was imported.
    func schema(_ key: SchemaKey) -> VersionedSchema {
        node.directory.snapshot.schemas[key] ?? VersionedSchema(version: 0, schema: Schema())
    }

    func submit(
        _ command: ShardCommand, to group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) -> [UInt8] {
        do throws(ClusterError) {
            return try await node.router.submit(.machine(command.encoded()), to: group, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
    }

    func read(_ request: ShardRead, from group: GroupID, by deadline: Deadline) async throws(RequestFailure)
        -> ReadAnswer
    {
        let answer: [UInt8]
        do throws(ClusterError) {
            answer = try await node.router.read(request.encoded(), from: group, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
        return try unpacked(answer)
    }

    /// Whether the directory holds a newer schema than the one at hand; then this node has it now.
    func isOutdated(
        _ schema: VersionedSchema, _ key: SchemaKey
    ) async throws(RequestFailure) -> Bool {
        try await refreshDirectory()
        return self.schema(key).version > schema.version
    }
}

/// Decodes what another part of the cluster encoded.
func unpacked<Value: WireDecodable>(_ bytes: [UInt8], as _: Value.Type = Value.self) throws(RequestFailure) -> Value {
    do throws(WireError) {
        return try Value(decoding: bytes)
    } catch {
        throw RequestFailure(.internalError, "a shard's answer cannot be read: \(error)")
    }
}

extension RequestFailure {
    init(_ error: ClusterError) {
        switch error {
        case .unavailable(let reason):
            self.init(ServiceError(.tryAgainLater, "nothing was done: \(reason)", retryAfterSeconds: 1))
        case .outcomeUnknown(let reason):
            self.init(
                ServiceError(
                    .tryAgainLater,
                    "outcome unknown: \(reason). Send it again with the same Idempotency-Key, or look before you do",
                    retryAfterSeconds: 1))
        case .failed(let reason):
            self.init(.internalError, reason)
        }
    }
}
