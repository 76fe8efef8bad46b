import Admission
package import Authorization
import Cluster
import Crypto
package import Directory
import RaftCore
package import RecordModel
package import RecordStore

extension DatabaseKey {
    /// The public database of a container's environment, or the caller's own of another scope.
    package init(_ scope: Scope, of caller: Caller, in schema: SchemaKey) {
        self.init(
            container: schema.container, environment: schema.environment, scope: scope,
            owner: scope == .public ? DatabaseKey.publicOwner : caller.user ?? "")
    }
}

/// A request for one database: who asks, by when, and what is remembered of it.
package struct DatabaseRequest: Sendable {
    /// That of the node that was asked.
    package let service: RecordService
    /// The database that is read or changed; a request may name its zones only.
    package var key: DatabaseKey
    /// The caller with their credential, the request's id and the client's address.
    package var requester: Requester
    /// The directory as it was when the request was let in.
    package let directory: DirectorySnapshot
    /// When the client is answered at the latest; nothing is tried again after it.
    package var deadline: Deadline
    /// Under which the request is applied once, however often it comes; nil where the client gave no key.
    package var identity: RequestIdentity?
    /// Whether the answer is to carry the zone's current token.
    package var wantsSyncToken = false
    /// Scheme and host, as the client addresses the cluster: what URLs in answers begin with.
    package var origin = ""
    /// The device that asks, as it names itself; nil where it does not.
    package var clientID: String?

    package init(
        _ service: RecordService, key: DatabaseKey, requester: Requester, in directory: DirectorySnapshot,
        deadline: Deadline
    ) {
        self.service = service
        self.key = key
        self.requester = requester
        self.directory = directory
        self.deadline = deadline
    }

    /// The user and roles by which shards judge permissions.
    package var caller: Caller { requester.admitted.caller }

    /// The container and environment whose schema the database's records follow.
    package var schemaKey: SchemaKey { SchemaKey(of: key) }

    /// What is asked for, as the audit log names it.
    package var subject: String {
        "\(key.scope.rawValue) database of \(key.container) (\(key.environment.rawValue))"
    }

    /// The zone that a request names in this database.
    /// - Throws: `ACCESS_DENIED` for another user's zone, `BAD_REQUEST` for a custom zone in the public database.
    package func zone(_ id: ZoneID) throws(RequestFailure) -> ZoneKey {
        if let owner = id.owner, owner != key.owner, owner != "__defaultOwner__", key.scope == .private {
            throw .accessDenied(
                "zone '\(id.name)' belongs to '\(owner)': the private database has the caller's own zones only")
        }
        if key.scope == .public, id.name != ZoneKey.defaultZoneName {
            throw .badRequest(
                "zoneID.zoneName: the public database has the zone '\(ZoneKey.defaultZoneName)' only, not '\(id.name)'")
        }
        return ZoneKey(database: key, name: id.name)
    }

    /// What a shard remembers a command of the request by; nil where the client gave no key.
    ///
    /// Callers without a name share a space of keys only where they use the same API token.
    /// - Parameter position: the command's number, where the request makes several.
    func idempotencyKey(position: Int = 0) -> IdempotencyKey? {
        identity.map { identity in
            IdempotencyKey(
                key: identity.key, bodyHash: identity.bodyHash,
                caller: caller.user ?? "\(Caller.anonymousName)/\(requester.admitted.apiToken?.id ?? "")",
                position: UInt64(position))
        }
    }

    /// A zone of this database as answers name it.
    package func zoneID(named name: String) -> ZoneID {
        ZoneID(name: name, owner: key.scope == .public ? nil : key.owner)
    }

    /// The token that a request wants to have of its zone; nil where it wants none or the zone has none.
    func currentToken(of zone: ZoneKey) async throws(RequestFailure) -> String? {
        guard wantsSyncToken, zone.isAtomic, let state = try await service.attempts.zoneState(zone, by: deadline) else {
            return nil
        }
        return token(of: state)
    }

    /// The token of a zone of this database as it is now; nil where it has no feed.
    package func token(of state: ZoneState) -> String? {
        let zone = ZoneKey(database: key, name: state.name)
        guard zone.isAtomic else { return nil }
        return SealedPosition.zone.text(of: ZoneToken.current(zone, state), in: service)
    }
}

/// What makes two requests one: the client's key and a hash of what it sent.
package struct RequestIdentity: Hashable, Sendable {
    /// The 16 bytes of an `Idempotency-Key`.
    package var key: [UInt8]
    /// SHA-256 of the request's body.
    package var bodyHash: [UInt8]

    /// - Parameter text: a UUID of version 7.
    /// - Throws: `BAD_REQUEST` for what is no UUID of version 7, or too old to be remembered, or from the future;
    ///   `TRY_AGAIN_LATER` where the node cannot tell.
    package init(_ text: String, body: [UInt8], in service: RecordService) throws(RequestFailure) {
        key = try service.judgedByClock { now throws(RequestFailure) in try Self.key(text, now: now) }
        bodyHash = Array(SHA256.hash(data: body))
    }

    /// How long a key may be used for retries, in milliseconds: a little less than answers are kept.
    private static let lifetimeMilliseconds: Int64 = 86_100_000
    /// How far a client's clock may be ahead.
    private static let aheadMillisecondsMax: Int64 = 3_600_000

    /// The 16 bytes of an `Idempotency-Key`.
    static func key(_ text: String, now: Int64) throws(RequestFailure) -> [UInt8] {
        guard let uuid = UUIDv7(text) else {
            throw RequestFailure(
                ServiceError(
                    .badRequest, "Idempotency-Key: '\(text.prefix(64))' is not a UUID of version 7",
                    detail: .idempotencyKey))
        }
        guard now - uuid.milliseconds <= lifetimeMilliseconds else {
            throw RequestFailure(
                ServiceError(
                    .badRequest,
                    "Idempotency-Key: it was made more than a day ago, and answers are not remembered longer",
                    detail: .idempotencyKey))
        }
        guard uuid.milliseconds - now <= aheadMillisecondsMax else {
            throw RequestFailure(
                ServiceError(
                    .badRequest, "Idempotency-Key: it was made in the future; check the client's clock",
                    detail: .idempotencyKey))
        }
        return uuid.bytes
    }
}
