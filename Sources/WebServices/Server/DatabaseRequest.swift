import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel

/// `/database/1/{container}/{environment}/{database}/...`, and who asks.
struct DatabaseRequest: Sendable {
    var key: DatabaseKey
    var caller: Caller
    var deadline: Deadline
    var body: [UInt8]
    /// The `Idempotency-Key` header.
    var idempotencyKey: String?

    var schemaKey: SchemaKey { SchemaKey(container: key.container, environment: key.environment) }

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
}
