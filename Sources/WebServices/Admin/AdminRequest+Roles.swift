import Cluster
import Directory
import RecordModel
import Service

// Who has which of a schema's custom roles.
extension AdminRequest {
    /// The custom roles of a schema, each with its members; also those that the schema has lost and somebody still has.
    func roles() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let schema = try await currentSchema(key).schema
        let directory = context.service.node.directory.snapshot
        let members = directory.members(container: key.container, environment: key.environment)
        let users = try await context.service.accounts.read { try $0.names(ofAccounts: members.map(\.accountID)) }
        let names = Set(schema.roles.filter { !$0.hasPrefix("_") } + members.map(\.role))
        return Reply { writer in
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.key("roles")
            writer.array { writer in
                for name in names.sorted() {
                    let holders = members.filter { $0.$role == Bytewise(name) }.compactMap { users[$0.accountID] }
                    writer.object { writer in
                        writer.member("name", name)
                        writer.key("members")
                        writer.array { writer in for user in holders.sorted() { writer.string(user) } }
                    }
                }
            }
        }
    }

    func addRoleMember() async throws(RequestFailure) -> Reply {
        let json = try json
        let key = SchemaKey(
            container: try Self.containerName(try text("container")),
            environment: try Self.environment(json["environment"]?.string ?? "development"))
        let (role, user) = (try text("role"), try text("user"))
        try await change(.addRoleMember(try await member(key, role, user)))
        return Self.membership(key, role, user, isMember: true)
    }

    func removeRoleMember() async throws(RequestFailure) -> Reply {
        let key = try schemaKey()
        let (role, user) = (try parameter("role"), try parameter("user"))
        try await change(.removeRoleMember(try await member(key, role, user)))
        return Self.membership(key, role, user, isMember: false)
    }

    private func member(_ key: SchemaKey, _ role: String, _ user: String) async throws(RequestFailure) -> RoleMember {
        try Self.requireContainer(key.container, in: try await directory())
        let account = try await self.account(named: user)
        return RoleMember(container: key.container, environment: key.environment, role: role, accountID: account.id)
    }

    private static func membership(_ key: SchemaKey, _ role: String, _ user: String, isMember: Bool) -> Reply {
        Reply { writer in
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.member("role", role)
            writer.member("user", user)
            writer.member("member", isMember)
        }
    }
}
