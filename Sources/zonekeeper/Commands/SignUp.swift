import ArgumentParser
import RecordModel
import ServiceClient

struct SignUpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-up", abstract: "Say whether people may make accounts for themselves; closed at first.",
        subcommands: [SignUpStatusCommand.self, SignUpOpenCommand.self, SignUpCloseCommand.self],
        defaultSubcommand: SignUpStatusCommand.self)

    static func text(_ response: ServiceResponse) throws -> String {
        switch try response.json()["open"] {
        case .bool(true)?: "sign-up is open: the sign-in page lets anybody make an account"
        case .bool(false)?: "sign-up is closed: administrators make accounts, and providers that may"
        default: throw CommandFailure("the answer does not say whether sign-up is open. Is this a Zonekeeper node?")
        }
    }

    static func set(isOpen: Bool, on connection: Connection) async throws -> ServiceResponse {
        try await connection.administer("PATCH", "sign-up", body: .members(["open": .bool(isOpen)]))
    }
}

struct SignUpStatusCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Say whether sign-up is open.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("GET", "sign-up")
        try show(response, SignUpCommand.text(response))
    }
}

struct SignUpOpenCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Let anybody who reaches the sign-in page make an account.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await SignUpCommand.set(isOpen: true, on: connection)
        try show(response, SignUpCommand.text(response))
    }
}

struct SignUpCloseCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "close", abstract: "Let nobody make an account; those that are there stay.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await SignUpCommand.set(isOpen: false, on: connection)
        try show(response, SignUpCommand.text(response))
    }
}
