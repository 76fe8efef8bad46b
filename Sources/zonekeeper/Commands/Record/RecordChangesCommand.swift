import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record changes`
struct RecordChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List what changed in a zone since a token, and the token to go on from.",
        discussion: """
            Pages are followed to the end. Each record stands once, as it is now, in the order of its latest \
            change; deleted ones too. The zone is a custom one of the user's private database: the default zone \
            has no change feed.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "The zone.")
    var zone: String

    @Option(help: ArgumentHelp("The token of the last time.", valueName: "token"))
    var token: String?

    @Flag(help: "Everything from the zone's beginning, as without --token.")
    var fromStart = false

    @Flag(help: "The newest change first.")
    var reverse = false

    @Option(parsing: .singleValue, help: "Only records of this type; may be repeated.")
    var type: [String] = []

    @Option(help: ArgumentHelp("The fields to print, with commas between them.", valueName: "fields"))
    var desiredKeys: String?

    func validate() throws {
        if fromStart, token != nil { throw ValidationError("either --from-start or --token is expected, not both") }
    }

    func run() async throws {
        try await options.withConnection { connection in
            let (records, token) = try await changes(on: connection)
            if options.json {
                return Console.print(
                    JSONValue.members(["records": .array(records), "syncToken": .string(token)]).serialized())
            }
            print(records.isEmpty ? "no changes" : ChangesTable.text(records))
            print("token \(token)")
        }
    }

    /// Page after page, to the end.
    private func changes(on connection: Connection) async throws -> (records: [JSONValue], token: String) {
        let keys = desiredKeys.map { $0.split(separator: ",").map { JSONValue.string(String($0)) } }
        var records: [JSONValue] = []
        var token = token
        while true {
            let request = JSONValue.members([
                "zoneID": ZoneRequests.id(zone), "syncToken": token.map { .string($0) },
                "reverse": reverse ? .bool(true) : nil, "desiredKeys": keys.map { .array($0) },
                "desiredRecordTypes": type.isEmpty ? nil : .array(type.map { .string($0) }),
            ])
            let response = try await connection.send(
                try connection.request("private", "changes/zone", .members(["zones": .array([request])]))
            ).checked()
            guard let page = try response.json()["zones"]?.array?.first else {
                throw CommandFailure("the answer has no zone in it. Is this a Zonekeeper node?")
            }
            if let code = page["serverErrorCode"]?.string { throw CommandFailure("\(code): \(page.text("reason"))") }
            guard let next = page["syncToken"]?.string else {
                throw CommandFailure("the answer has no sync token in it. Is this a Zonekeeper node?")
            }
            records += page["records"]?.array ?? []
            token = next
            if page["moreComing"] != .bool(true) { return (records, next) }
        }
    }
}

/// Entries of a change feed as people read them.
enum ChangesTable {
    static func text(_ records: [JSONValue]) -> String {
        var table = Table("CHANGE", "RECORD NAME", "TYPE", "TAG", "MODIFIED", "FIELDS")
        for record in records {
            let isDeleted = record["deleted"] == .bool(true)
            table.add([
                isDeleted ? "deleted" : "saved", record.text("recordName"), record.text("recordType"),
                record.text("recordChangeTag"), record["modified"]?.time("timestamp") ?? "",
                fields(of: record).shortened(to: 80),
            ])
        }
        return table.text
    }

    private static func fields(of record: JSONValue) -> String {
        guard case .object(let members)? = record["fields"] else { return "" }
        return members.map { "\($0.key)=\(RecordTable.value($0.value))" }.joined(separator: " ")
    }
}
