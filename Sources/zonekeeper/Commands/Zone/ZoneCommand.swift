import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper zone`
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

    /// Creates or deletes zones, safely repeatable, and returns what the server says of each.
    /// - Throws: `CommandFailure` naming each zone that failed, once the others' outcome is known.
    static func modify(_ operation: String, _ names: [String], on connection: Connection) async throws
        -> ServiceResponse
    {
        let operations = names.map { name in
            JSONValue.members([
                "operationType": .string(operation), "zone": .members(["zoneID": id(name)]),
            ])
        }
        var request = try connection.request(
            "private", "zones/modify", .members(["operations": .array(operations)]))
        request.idempotencyKey = IdempotencyKeys.make()
        return try await connection.send(request).checked()
    }

    /// Says which zones failed, after the others.
    static func report(_ zones: [JSONValue], done: String) throws {
        for zone in zones where zone["serverErrorCode"] == nil {
            print("\(done) zone \(zone["zoneID"]?.text("zoneName") ?? "")")
        }
        try failures(in: zones)
    }

    /// - Throws: `ExitCode` after each failure has been said.
    static func failures(in zones: [JSONValue]) throws {
        var hasFailed = false
        for zone in zones {
            guard let code = zone["serverErrorCode"]?.string else { continue }
            Console.error("\(code): zone \(zone["zoneID"]?.text("zoneName") ?? ""): \(zone.text("reason"))")
            hasFailed = true
        }
        if hasFailed { throw ExitCode.failure }
    }
}
