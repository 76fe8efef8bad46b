import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct AdministratorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "administrator", abstract: "Give people tokens of their own to administer the cluster with.",
        discussion: """
            Each administrator has a token, and the audit log names them by it. The token that every node has in its \
            file admin.token administers too; keep it for the machines, and for the day when no other works.
            """,
        subcommands: [AdministratorAddCommand.self, AdministratorListCommand.self, AdministratorRemoveCommand.self])
}

struct AdministratorAddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Make a token for an administrator, and write it to a file.",
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
                    "label": label.map { .string($0) },
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
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the administrators who have tokens of their own.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let tokens = try await connection.administerList("tokens", parameters: ["kind": "administrator"])
        let columns: [Table.Column] = [
            ("NAME", { $0.text("name") }), ("CREATED", { $0.time("created") }), ("LABEL", { $0.text("label") }),
        ]
        try show(.members(["administrators": .array(tokens)]), Table(tokens, columns).text)
    }
}

struct AdministratorRemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Make an administrator's token worthless, on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The name, as `administrator list` shows it.")
    var name: String

    func run(on connection: Connection) async throws {
        let tokens = try await connection.administerList("tokens", parameters: ["kind": "administrator"])
        guard let token = tokens.first(where: { $0.text("name") == name }) else {
            throw CommandFailure("there is no administrator '\(name)': `zonekeeper administrator list` shows them")
        }
        let response = try await connection.administer("DELETE", "tokens", parameters: ["id": token.text("id")])
        try show(response, "administrator \(name) is removed")
    }
}
