import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore

/// `/database/1/{container}/{environment}/{database}/...`, and who asks.
struct DatabaseRequest: Sendable {
    var key: DatabaseKey
    var caller: Caller
    var deadline: Deadline
    var body: [UInt8]
    /// The `Idempotency-Key` header.
    var idempotencyKey: String?
    /// `getCurrentSyncToken=true`: the answer is to carry the zone's current token.
    var wantsSyncToken = false
    /// Whether it came with GET, and so without a body.
    var isGet = false
    /// Who asks, as the audit log names it.
    var origin = AuditOrigin(actor: "", requestID: "", address: "", time: 0)

    /// What is asked for, as the audit log names it.
    var subject = ""

    var schemaKey: SchemaKey { SchemaKey(of: key) }

    /// The request's body as one of the protocol's forms.
    func form<Form: WebRequest>(_: Form.Type) throws(RequestFailure) -> Form {
        do throws(ServiceError) {
            return try Form(body: body)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// The zone that a request names in this database.
    /// - Throws: `ACCESS_DENIED` for another user's zone, `BAD_REQUEST` for a custom zone in the public database.
    func zone(_ id: ZoneID) throws(RequestFailure) -> ZoneKey {
        if let owner = id.owner, owner != key.owner, owner != "__defaultOwner__", key.scope == .private {
            throw RequestFailure(
                .accessDenied,
                "zone '\(id.name)' belongs to '\(owner)': the private database has the caller's own zones only")
        }
        if key.scope == .public, id.name != ZoneKey.defaultZoneName {
            throw RequestFailure(
                .badRequest,
                "zoneID.zoneName: the public database has the zone '\(ZoneKey.defaultZoneName)' only, not '\(id.name)'")
        }
        return ZoneKey(database: key, name: id.name)
    }

    /// A zone of this database as answers name it.
    func zoneID(named name: String) -> ZoneID {
        ZoneID(name: name, owner: key.scope == .public ? nil : key.owner)
    }

    /// The token that a request wants to have of its zone; nil where it wants none or the zone has none.
    func currentToken(of zone: ZoneKey, in context: WebContext) async throws(RequestFailure) -> String? {
        guard wantsSyncToken, zone.isAtomic, let state = try await context.zoneState(zone, by: deadline) else {
            return nil
        }
        return Base64.encode(ZoneToken.current(zone, state))
    }
}
