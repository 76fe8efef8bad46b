import Directory
import RecordModel
import Service

// The team: who administers the cluster, or single containers of it.
extension AdminRequest {
    private var console: ConsoleAccess { ConsoleAccess(context.service) }

    func administrators() async throws(RequestFailure) -> Reply {
        let team = try await console.administrators()
        return Reply { writer in
            writer.key("administrators")
            writer.array { writer in for one in team { writer.object { Self.write(one, to: &$0) } } }
        }
    }

    func createAdministrator() async throws(RequestFailure) -> Reply {
        var administrator = Administrator(
            name: try administratorName(), role: .viewer, created: context.service.now)
        try apply(try json, to: &administrator)
        guard try json["role"] != nil else { throw Self.unknownRole }
        if let password = try json["password"], !password.isNull {
            administrator.password = try await hash(password)
        }
        try await console.create(administrator, origin: origin)
        return Reply { Self.write(administrator, to: &$0) }
    }

    /// Changes what the body names: the role, the containers, the password. A new password ends all sessions.
    func updateAdministrator() async throws(RequestFailure) -> Reply {
        let (name, json) = (try parameter("name"), try json)
        guard json["role"] != nil || json["containers"] != nil || json["password"] != nil else {
            throw RequestFailure(.badRequest, "nothing to change: role, containers or password is expected in the body")
        }
        let password = json["password"]
        let hash = if let password, !password.isNull { try await hash(password) } else { PasswordHash?.none }
        if json["role"] != nil || json["containers"] != nil {
            try await console.update(name, origin: origin) { one throws(RequestFailure) in try apply(json, to: &one) }
        }
        if password != nil { try await console.setPassword(hash, of: name, origin: origin) }
        guard let one = try await console.administrators().first(where: { $0.name == name }) else {
            throw RequestFailure(.notFound, "the administrator '\(name)' was removed meanwhile")
        }
        return Reply { Self.write(one, to: &$0) }
    }

    /// Removes an administrator with their token, links and sessions.
    func deleteAdministrator() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        try await console.remove(name, origin: origin)
        return Reply { writer in
            writer.member("name", name)
            writer.member("deleted", true)
        }
    }

    private func hash(_ json: JSONValue) async throws(RequestFailure) -> PasswordHash {
        guard let text = json.string else { throw RequestFailure(.badRequest, "password: a text is expected") }
        return try await context.passwordHash(text)
    }

    /// The members `role` and `containers`; what is missing stays.
    private func apply(_ json: JSONValue, to administrator: inout Administrator) throws(RequestFailure) {
        if let given = json["role"] {
            guard let role = given.string.flatMap(AdministratorRole.init(rawValue:)) else { throw Self.unknownRole }
            administrator.role = role
        }
        guard let given = json["containers"] else { return }
        if given.isNull {
            administrator.containers = nil
            return
        }
        let names = given.array?.compactMap(\.string)
        guard let names, names.count == given.array?.count, !names.isEmpty else {
            throw RequestFailure(.badRequest, "containers: a list of containers' names, or null for all, is expected")
        }
        var containers: Set<String> = []
        for name in names { containers.insert(try Self.containerName(name)) }
        administrator.containers = containers.sorted()
    }

    private static let unknownRole = RequestFailure(
        .badRequest, "role: one of \(AdministratorRole.allCases.map(\.rawValue).joined(separator: ", ")) is expected")

    private static func write(_ administrator: Administrator, to writer: inout JSONWriter) {
        writer.member("name", administrator.name)
        writer.member("role", administrator.role.rawValue)
        writer.key("containers")
        write(administrator.containers, to: &writer)
        writer.member("hasPassword", administrator.password != nil)
        writer.member("created", integer: administrator.created)
        writer.key("lastUsed")
        if let time = administrator.lastSignIn { writer.integer(time) } else { writer.null() }
    }
}
