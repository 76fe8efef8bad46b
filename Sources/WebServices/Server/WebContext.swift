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
        do throws(ClusterError) {
            return try decoded(try await node.router.read(request.encoded(), from: group, by: deadline))
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Whether the directory holds a newer schema than the one at hand; then this node has it now.
    func isOutdated(
        _ schema: VersionedSchema, _ key: SchemaKey
    ) async throws(RequestFailure) -> Bool {
        try await refreshDirectory()
        return self.schema(key).version > schema.version
    }

    /// Asks a shard under the schema this node knows, and brings the two to the same version where they differ.
    func readUnderSchema(
        _ key: SchemaKey, from group: GroupID, by deadline: Deadline,
        _ request: (VersionedSchema) async throws(RequestFailure) -> ShardRead
    ) async throws(RequestFailure) -> (bytes: [UInt8], cursor: [UInt8]?) {
        for _ in 0..<8 {
            switch try await read(try await request(schema(key)), from: group, by: deadline) {
            case .found(let bytes, let cursor): return (bytes, cursor)
            case .refused(let error): throw RequestFailure(error)
            case .needsSchema(let installed): try await reconcile(key, installed: installed, on: group, by: deadline)
            }
        }
        throw RequestFailure(
            ServiceError(.tryAgainLater, "the schema kept changing meanwhile", retryAfterSeconds: 1))
    }

    /// Brings a shard's schema and this node's to the same version.
    /// - Parameter installed: the version that the shard holds.
    func reconcile(
        _ key: SchemaKey, installed: UInt64, on group: GroupID, by deadline: Deadline
    ) async throws(RequestFailure) {
        let known = schema(key)
        guard installed < known.version else { return try await refreshDirectory() }
        let install = InstallSchema(
            container: key.container, environment: key.environment, version: known.version, schema: known.schema)
        _ = try await submit(.record(.installSchema(install)), to: group, by: deadline)
    }
}

/// Decodes what another part of the cluster encoded.
func decoded<Value: WireDecodable>(_ bytes: [UInt8], as _: Value.Type = Value.self) throws(ClusterError) -> Value {
    do throws(WireError) {
        return try Value(decoding: bytes)
    } catch {
        throw .failed("a shard's answer cannot be read: \(error)")
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
