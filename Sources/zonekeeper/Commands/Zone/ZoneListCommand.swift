import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper zone list`
struct ZoneListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the zones of the user's private database.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.send(
                try connection.request("private", "zones/list", .object([]))
            ).checked()
            if options.json { return Console.print(response.body) }
            var table = Table("ZONE", "ATOMIC", "SYNC TOKEN")
            let zones = try response.json()["zones"]?.array ?? []
            for zone in zones where zone["serverErrorCode"] == nil {
                table.add([
                    zone["zoneID"]?.text("zoneName") ?? "", zone["atomic"] == .bool(true) ? "yes" : "no",
                    zone.text("syncToken"),
                ])
            }
            print(table.text)
            try ZoneRequests.failures(in: zones)
        }
    }
}
