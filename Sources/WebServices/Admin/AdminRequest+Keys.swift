import Admission
import Directory
import RecordModel
import Service

// Keys with which servers sign their requests. The private halves never come here.
extension AdminRequest {
    func keys() async throws(RequestFailure) -> Reply {
        let access = try access
        let keys = try await directory().serverKeys.filter { access.covers($0.container) }
        let names = try await context.service.accounts.read { try $0.names(ofAccounts: keys.map(\.accountID)) }
        return Reply { writer in
            writer.key("keys")
            writer.array { writer in
                for key in keys {
                    writer.object { writer in
                        writer.member("id", key.id)
                        writer.member("container", key.container)
                        writer.member("environment", key.environment.rawValue)
                        writer.member("user", names[key.accountID] ?? "")
                        writer.member("label", key.label)
                        writer.member("created", integer: key.created)
                    }
                }
            }
        }
    }

    func createKey() async throws(RequestFailure) -> Reply {
        let json = try json
        let user = try text("user")
        let pem = try text("publicKey")
        let publicKey: [UInt8]
        do throws(ServiceError) {
            publicKey = try PublicKeyPEM.parse(pem)
        } catch {
            throw RequestFailure(error.code, "publicKey: \(error.reason)")
        }
        let container = try Self.containerName(try text("container"))
        let environment = try Self.environment(json["environment"]?.string ?? "development")
        let account = try await self.account(named: user)
        let key = ServerKey(
            id: Self.randomHex(bytes: 32), container: container, environment: environment, publicKey: publicKey,
            accountID: account.id, label: try label(json), created: context.service.now)
        try await change(.createServerKey(key))
        return Reply { writer in
            writer.member("id", key.id)
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.member("user", user)
            writer.member("userRecordName", Account.userRecordName(accountID: account.id, container: container))
        }
    }

    func revokeKey() async throws(RequestFailure) -> Reply {
        let id = try parameter("id")
        try await change(.revokeServerKey(id: id))
        return Reply { writer in
            writer.member("id", id)
            writer.member("revoked", true)
        }
    }

    /// The member `label`; empty where it is missing.
    func label(_ json: JSONValue) throws(RequestFailure) -> String {
        guard let text = json["label"]?.string, !text.isEmpty else { return "" }
        guard let line = Self.line(text) else {
            throw RequestFailure(
                .badRequest, "label: at most \(Limits.nameLengthMax) characters on one line are expected")
        }
        return line
    }
}
