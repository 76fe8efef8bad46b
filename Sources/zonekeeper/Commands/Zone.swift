import ArgumentParser
import RecordModel
import ServiceClient

struct ZoneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "zone", abstract: "Create, list and delete zones of a user's private database, and follow it.",
        subcommands: [
            ZoneListCommand.self, ZoneCreateCommand.self, ZoneDeleteCommand.self, ZoneChangesCommand.self,
        ])
}

/// Requests about zones, which only private databases have.
enum ZoneRequests {
    static func id(_ name: String) -> JSONValue { .members(["zoneName": .string(name)]) }

    /// Creates or deletes zones, safely repeatable, and says what became of each.
    static func modify(
        _ operation: String, _ names: [String], on connection: Connection, asJSON: Bool, done: String
    ) async throws {
        let operations = names.map { name in
            JSONValue.members(["operationType": .string(operation), "zone": .members(["zoneID": id(name)])])
        }
        var request = try connection.request("private", "zones/modify", .members(["operations": .array(operations)]))
        request.idempotencyKey = IdempotencyKeys.make()
        let response = try await connection.send(request).checked()
        try ItemFailures.report(response, asJSON: asJSON, try response.entries("zones")) {
            "\(done) zone \(name(of: $0))"
        }
    }

    static func name(of zone: JSONValue) -> String { zone["zoneID"]?.text("zoneName") ?? "" }
}

struct ZoneListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the zones of the user's private database.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let request = try connection.request("private", "zones/list", .object([]))
        let response = try await connection.send(request).checked()
        let zones = try response.entries("zones")
        let table = Table(
            zones.filter { $0["serverErrorCode"] == nil },
            [
                .init("ZONE", ZoneRequests.name), .flag("ATOMIC", "atomic"), .text("SYNC TOKEN", "syncToken"),
            ])
        try show(response, table.text)
        if !options.json { try ItemFailures.tell(in: zones) }
    }
}

struct ZoneCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create zones in the user's private database; one that is there stays as it is.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The zones' names, at most 200.")
    var names: [String]

    func run(on connection: Connection) async throws {
        try await ZoneRequests.modify("create", names, on: connection, asJSON: options.json, done: "created")
    }
}

struct ZoneDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete zones of the user's private database with every record in them.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The zones' names, at most 200.")
    var names: [String]

    func run(on connection: Connection) async throws {
        try await ZoneRequests.modify("delete", names, on: connection, asJSON: options.json, done: "deleted")
    }
}

struct ZoneChangesCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List the zones that changed or were deleted since a token, and the token to go on from.",
        discussion: "What changed in a zone is told by `record changes --zone NAME`.")

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("The token of the last time; without one, everything.", valueName: "token"))
    var token: String?

    func run(on connection: Connection) async throws {
        let (zones, token) = try await connection.feed("zones", since: token) { json in
            try await connection.send(try connection.request("private", "changes/database", json)).checked()
        }
        let table = Table(
            zones,
            [
                .init("CHANGE", { $0["deleted"] == .bool(true) ? "deleted" : "changed" }),
                .init("ZONE", ZoneRequests.name),
            ])
        try show(
            .members(["zones": .array(zones), "syncToken": .given(token)]),
            "\(zones.isEmpty ? "no changes" : table.text)\ntoken \(token ?? "")")
    }
}
