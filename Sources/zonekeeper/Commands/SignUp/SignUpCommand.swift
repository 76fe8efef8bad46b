import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper sign-up`
struct SignUpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign-up", abstract: "Say whether people may make accounts for themselves; closed at first.",
        subcommands: [SignUpStatusCommand.self, SignUpOpenCommand.self, SignUpCloseCommand.self],
        defaultSubcommand: SignUpStatusCommand.self)

    /// Says what an answer says.
    static func report(_ response: ServiceResponse, asJSON: Bool) throws {
        if asJSON { return Console.print(response.body) }
        switch try response.json()["open"] {
        case .bool(true)?: print("sign-up is open: the sign-in page lets anybody make an account")
        case .bool(false)?: print("sign-up is closed: administrators make accounts, and providers that may")
        default: throw CommandFailure("the answer does not say whether sign-up is open. Is this a Zonekeeper node?")
        }
    }

    /// Opens or closes, and says how it is then.
    static func set(isOpen: Bool, _ options: ClientOptions) async throws {
        try await options.withConnection { connection in
            let body = JSONValue.members(["open": .bool(isOpen)])
            let response = try await connection.administer("PATCH", "sign-up", body: body.serialized())
            try report(response, asJSON: options.json)
        }
    }
}

/// `zonekeeper sign-up status`
struct SignUpStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Say whether sign-up is open.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            try SignUpCommand.report(try await connection.administer("GET", "sign-up"), asJSON: options.json)
        }
    }
}

/// `zonekeeper sign-up open`
struct SignUpOpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Let anybody who reaches the sign-in page make an account.")

    @OptionGroup var options: ClientOptions

    func run() async throws { try await SignUpCommand.set(isOpen: true, options) }
}

/// `zonekeeper sign-up close`
struct SignUpCloseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "close", abstract: "Let nobody make an account; those that are there stay.")

    @OptionGroup var options: ClientOptions

    func run() async throws { try await SignUpCommand.set(isOpen: false, options) }
}
