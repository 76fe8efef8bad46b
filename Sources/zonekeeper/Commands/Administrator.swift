import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct AdministratorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "administrator", abstract: "Say who administers the cluster, and give them tokens of their own.",
        discussion: """
            An administrator is a viewer, a developer or an admin, of the cluster or of some containers, and signs in to \
            the console. A token of the same name has the same role; one without a role here is an admin's. The audit log \
            names them by either. The token that every node has in its file admin.token administers too; keep it for the \
            machines, and for the day when no other works.
            """,
        subcommands: [
            AdministratorListCommand.self, AdministratorCreateCommand.self, AdministratorUpdateCommand.self,
            AdministratorDeleteCommand.self, AdministratorAddCommand.self, AdministratorRemoveCommand.self,
        ])
}

struct AdministratorRoleOptions: ParsableArguments {
    @Option(help: "viewer, developer or admin; each may do all that those before it may.")
    var role: String?

    @Option(
        name: .customLong("only"),
        help: ArgumentHelp("A container that the role is for, and no others; may be repeated.", valueName: "container"))
    var containers: [String] = []

    @OptionGroup var password: NewPasswordOptions

    var containersJSON: JSONValue? { containers.isEmpty ? nil : .strings(containers) }
}

struct AdministratorCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Add somebody to those who administer.",
        discussion: "With a password they sign in to the console; `administrator add` gives them a token.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "How the audit log names the administrator: letters, digits and any of - _ . @")
    var name: String

    @OptionGroup var given: AdministratorRoleOptions

    func validate() throws {
        if given.role == nil { throw ValidationError("--role is missing: viewer, developer or admin is expected") }
    }

    func run(on connection: Connection) async throws {
        let secret = try given.password.secret(of: name)
        let body = JSONValue.members([
            "name": .string(name), "role": .given(given.role), "containers": given.containersJSON,
            "password": .given(secret),
        ])
        let response = try await connection.administer("POST", "administrators", body: body)
        try show(response, "created the administrator \(name)")
    }
}

struct AdministratorUpdateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "update",
        abstract: "Change an administrator's role, containers or password; what is not named stays.",
        discussion: "A new password ends all sessions of theirs in the console, on all nodes.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The name, as `administrator list` shows it.")
    var name: String

    @OptionGroup var given: AdministratorRoleOptions

    @Flag(help: "Let the role hold in all containers.")
    var everywhere = false

    @Flag(help: "Take the password away.")
    var noPassword = false

    func validate() throws {
        if everywhere, !given.containers.isEmpty {
            throw ValidationError("--only and --everywhere contradict each other")
        }
        if noPassword, given.password.isGiven {
            throw ValidationError("--no-password and a password contradict each other")
        }
        if given.role == nil, given.containers.isEmpty, !everywhere, !noPassword, !given.password.isGiven {
            throw ValidationError(
                "nothing to change: --role, --only, --everywhere, --password, --password-stdin or --no-password is expected"
            )
        }
    }

    func run(on connection: Connection) async throws {
        let secret = try given.password.secret(of: name)
        let body = JSONValue.members([
            "role": .given(given.role), "containers": everywhere ? .null : given.containersJSON,
            "password": noPassword ? .null : .given(secret),
        ])
        let response = try await connection.administer(
            "PATCH", "administrators", parameters: ["name": name], body: body)
        try show(response, "changed the administrator \(name)")
    }
}

struct AdministratorDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Remove an administrator; the token and all sessions end, on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The name, as `administrator list` shows it.")
    var name: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("DELETE", "administrators", parameters: ["name": name])
        try show(response, "the administrator \(name) is removed")
    }
}

struct AdministratorAddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Make a token for an administrator, and write it to a file.",
        discussion: """
            The file is for its owner only, and its secret is shown nowhere. Hand it to the administrator, who names it \
            with --admin-token-file or ZONEKEEPER_ADMIN_TOKEN_FILE.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "How the audit log names the administrator: letters, digits and any of - _ . @")
    var name: String

    @Option(help: ArgumentHelp("Where the token goes; a file that is not there yet.", valueName: "file"))
    var output: String

    @Option(help: "A note for the list.")
    var label: String?

    func run(on connection: Connection) async throws {
        try connection.needAdministrator()
        let secret = RandomText.hex(bytes: 32)
        try PrivateFile.create(output, secret + "\n")
        let response: ServiceResponse
        do {
            response = try await connection.administer(
                "POST", "tokens",
                body: .members([
                    "kind": .string("administrator"), "name": .string(name), "secret": .string(secret),
                    "label": .given(label),
                ]))
        } catch let failure as CommandFailure where failure.isOutcomeUnknown {
            throw CommandFailure(
                "\(failure.message). The token may be good, so it stays in \(output): see `zonekeeper administrator list`",
                isOutcomeUnknown: true)
        } catch let failure as CommandFailure {
            unlink(output)
            throw failure
        }
        let id = try response.json().text("id")
        let told = JSONValue.members(["id": .string(id), "name": .string(name), "file": .string(output)])
        try show(told, "administrator \(name) has the token in \(output)")
    }
}

struct AdministratorListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List those who administer.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let columns: [Table.Column] = [
            .text("NAME", "name"), .text("ROLE", "role"), .init("CONTAINERS", { Self.containers(of: $0) ?? "all" }),
            .flag("PASSWORD", "hasPassword"), .init("TOKEN SINCE", { $0["token"]?.time("created") ?? "" }),
            .time("CREATED", "created"), .time("LAST SIGN-IN", "lastUsed"),
        ]
        try list(try await connection.administer("GET", "administrators"), "administrators", columns)
    }

    /// Where somebody's role holds, which is nowhere once its containers were removed; nil: everywhere.
    static func containers(of member: JSONValue) -> String? {
        guard let names = member["containers"]?.array?.compactMap(\.string) else { return nil }
        return names.isEmpty ? "none" : names.joined(separator: ", ")
    }
}

struct AdministratorRemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Make an administrator's token worthless, on all nodes when the command ends.",
        discussion: "A role, a password and sessions in the console stay: `administrator delete` ends all of it.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The name, as `administrator list` shows it.")
    var name: String

    func run(on connection: Connection) async throws {
        let tokens = try await connection.administerList("tokens", parameters: ["kind": "administrator"])
        guard let token = tokens.first(where: { $0.text("name") == name }) else {
            throw CommandFailure("\(name) has no token: `zonekeeper administrator list` shows who has one")
        }
        let response = try await connection.administer("DELETE", "tokens", parameters: ["id": token.text("id")])
        // It is done, whether or not this is answered.
        let team = try? await connection.administerList("administrators")
        try show(response, Self.line(name, team ?? []))
    }

    static func line(_ name: String, _ team: [JSONValue]) -> String {
        let line = "the token of \(name) is revoked"
        guard let member = team.first(where: { $0.text("name") == name }) else { return line }
        let places = AdministratorListCommand.containers(of: member) ?? "the cluster"
        return "\(line); \(name) is still \(member.text("role")) of \(places), "
            + "`zonekeeper administrator delete \(name)` ends that"
    }
}
