import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper zone changes`
struct ZoneChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List the zones that changed or were deleted since a token, and the token to go on from.",
        discussion: "What changed in a zone is told by `record changes --zone NAME`.")

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("The token of the last time; without one, everything.", valueName: "token"))
    var token: String?

    func run() async throws {
        try await options.withConnection { connection in
            var zones: [JSONValue] = []
            var token = token
            var isMoreComing = true
            while isMoreComing {
                let page = try await connection.send(
                    try connection.request(
                        "private", "changes/database", .members(["syncToken": token.map { .string($0) }]))
                ).checked().json()
                zones += page["zones"]?.array ?? []
                token = page["syncToken"]?.string
                isMoreComing = page["moreComing"] == .bool(true)
            }
            if options.json {
                return Console.print(
                    JSONValue.members(["zones": .array(zones), "syncToken": token.map { .string($0) }]).serialized())
            }
            var table = Table("CHANGE", "ZONE")
            for zone in zones {
                table.add([
                    zone["deleted"] == .bool(true) ? "deleted" : "changed", zone["zoneID"]?.text("zoneName") ?? "",
                ])
            }
            print(zones.isEmpty ? "no changes" : table.text)
            print("token \(token ?? "")")
        }
    }
}
