import ArgumentParser
import RecordModel
import ServiceClient

struct SubscriptionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscription",
        abstract: "Say what a user is to be told of: list, create, delete and test subscriptions.",
        subcommands: [
            SubscriptionListCommand.self, SubscriptionCreateCommand.self, SubscriptionDeleteCommand.self,
            SubscriptionTestCommand.self,
        ])
}

struct SubscriptionDatabase: ParsableArguments {
    @Flag(name: .customLong("public"), help: "In the public database; without it, in the user's private one.")
    var isPublic = false

    var name: String { isPublic ? "public" : "private" }

    func modify(
        _ operation: String, _ subscription: JSONValue, on connection: Connection
    ) async throws -> (response: ServiceResponse, subscription: JSONValue) {
        let json = JSONValue.members([
            "operations": .array([
                .members(["operationType": .string(operation), "subscription": subscription])
            ])
        ])
        var request = try connection.request(name, "subscriptions/modify", json)
        request.isRepeatable = operation != "delete"
        let response = try await connection.send(request).checked()
        let item = try needed(response.entries("subscriptions").first, "subscription")
        if let code = item["serverErrorCode"]?.string { throw CommandFailure("\(code): \(item.text("reason"))") }
        return (response, item)
    }
}

struct SubscriptionListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the user's subscriptions to a database.",
        discussion: """
            An administrator lists with --user what another user is told of, in all databases, with --all what all \
            users are told of, and counts that with --types; the values that queries compare with are not shown.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var database: SubscriptionDatabase

    @Option(help: ArgumentHelp("List this user's, as an administrator.", valueName: "name"))
    var user: String?

    @Flag(help: "List those of all users, as an administrator.")
    var all = false

    @Flag(help: "Count those of all users by type, as an administrator.")
    var types = false

    func validate() throws {
        guard [user != nil, all, types, database.isPublic].count(where: \.self) > 1 else { return }
        throw ValidationError("only one of --user, --all, --types and --public is expected")
    }

    func run(on connection: Connection) async throws {
        if let user { return try await list(of: user, on: connection) }
        if all { return try await listAll(on: connection) }
        if types { return try await countAll(on: connection) }
        let request = try connection.request(database.name, "subscriptions/list", .object([]))
        try list(
            try await connection.send(request).checked(), "subscriptions",
            [
                .text("ID", "subscriptionID"), .text("TYPE", "subscriptionType"),
                .init("ZONE", { $0["zoneID"]?.text("zoneName") ?? "all" }),
                .init("RECORD TYPE", { $0["query"]?["recordType"]?.string ?? $0["recordType"]?.string ?? "all" }),
                .words("FIRES ON", "firesOn"),
            ])
    }

    /// As an administrator sees them.
    private static var columns: [Table.Column] {
        [
            .text("ID", "subscriptionID"), .text("TYPE", "subscriptionType"), .text("DATABASE", "database"),
            .init("ZONE", { $0["zone"]?.string ?? "all" }), .init("RECORD TYPE", { $0["recordType"]?.string ?? "all" }),
            .words("FILTERS", "fields"), .words("FIRES ON", "firesOn"),
        ]
    }

    private func list(of user: String, on connection: Connection) async throws {
        try list(
            try await connection.administerPlace("GET", "subscriptions", parameters: ["user": user]), "subscriptions",
            Self.columns)
    }

    private func listAll(on connection: Connection) async throws {
        let found = try await connection.administerList(
            "subscriptions",
            parameters: ["container": try connection.container(), "environment": connection.settings.environment])
        let user: Table.Column = .init("USER", { $0["user"]?.string ?? $0.text("userRecordName") })
        try show(.members(["subscriptions": .array(found)]), Table(found, [user] + Self.columns).text)
    }

    private func countAll(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "subscriptions",
            parameters: [
                "container": try connection.container(), "environment": connection.settings.environment,
                "types": "true", "seconds": "60",
            ], isSlow: true)
        try list(
            response, "types",
            [
                .text("TYPE", "subscriptionType"), .text("DATABASE", "database"),
                .init("RECORD TYPE", { $0["recordType"]?.string ?? "all" }), .text("SUBSCRIPTIONS", "subscriptions"),
                .text("USERS", "users"),
            ])
        if try response.json()["next"] != nil { Console.note("not all users could be counted within a minute") }
    }
}

struct SubscriptionCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a subscription, or replace the one of the same ID.",
        discussion: """
            With --type-of-record and --fires-on it is one to the records of a type; with --zone to a zone; else to all \
            zones of the private database. A query with filters is given as JSON with --query.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var database: SubscriptionDatabase

    @Argument(help: "Its ID.")
    var id: String

    @Option(help: "The zone; without it, all of them.")
    var zone: String?

    @Option(name: .customLong("type-of-record"), help: "Tell only of records of this type.")
    var recordType: String?

    @Option(help: ArgumentHelp("A query such as records/query takes it.", valueName: "json"))
    var query: String?

    @Option(
        name: .customLong("fires-on"), parsing: .upToNextOption,
        help: "create, update or delete, one or more of them: makes it a subscription to a query.")
    var firesOn: [String] = []

    @Flag(name: .customLong("once"), help: "Tell once; then the subscription is gone.")
    var firesOnce = false

    func run(on connection: Connection) async throws {
        let isQuery = query != nil || !firesOn.isEmpty
        if firesOnce, !isQuery { throw ValidationError("--once: only a subscription to a query tells once") }
        var form: JSONValue?
        if isQuery { form = try queryForm() }
        let zoneID = zone.map { ZoneRequests.id($0) }
        let (response, saved) = try await database.modify(
            "create",
            .members([
                "subscriptionID": .string(id),
                "subscriptionType": .string(isQuery ? "query" : zone == nil ? "database" : "zone"), "zoneID": zoneID,
                "recordType": isQuery ? nil : .given(recordType), "query": form,
                "firesOn": isQuery ? .strings(events) : nil, "firesOnce": isQuery ? .bool(firesOnce) : nil,
            ]), on: connection)
        try show(response, "saved subscription \(saved.text("subscriptionID")) in the \(database.name) database")
    }

    private var events: [String] { firesOn.isEmpty ? ["create", "update", "delete"] : firesOn }

    private func queryForm() throws -> JSONValue {
        guard let query else {
            guard let recordType else { throw ValidationError("--fires-on: --type-of-record or --query is needed") }
            return .members(["recordType": .string(recordType)])
        }
        do { return try JSONParser.parse(Array(query.utf8)) } catch { throw ValidationError("--query: \(error)") }
    }
}

struct SubscriptionDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Delete a subscription.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var database: SubscriptionDatabase

    @Argument(help: "Its ID.")
    var id: String

    @Option(help: ArgumentHelp("Delete this user's, as an administrator.", valueName: "name"))
    var user: String?

    func run(on connection: Connection) async throws {
        if let user {
            let response = try await connection.administerPlace(
                "DELETE", "subscriptions", parameters: ["user": user, "database": database.name, "id": id])
            return try show(response, "deleted subscription \(id) of \(user)")
        }
        let (response, _) = try await database.modify(
            "delete", .members(["subscriptionID": .string(id)]), on: connection)
        try show(response, "deleted subscription \(id)")
    }
}

struct SubscriptionTestCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Have a user told by one of their subscriptions, as an administrator.",
        discussion: """
            Nothing has happened then: the notification has "zonekeeperTest": true beside "aps" and "ck", and one of a \
            query names the record test, which need not be there. A subscription that fires once is not used up.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var database: SubscriptionDatabase

    @Argument(help: "Its ID.")
    var id: String

    @Option(help: ArgumentHelp("Whose it is.", valueName: "name"))
    var user: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace(
            "POST", "subscriptions/test", parameters: ["user": user, "database": database.name, "id": id])
        try show(response, "\(user) is told by \(id)")
    }
}

struct NotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notifications", abstract: "Follow what a user is told of.",
        subcommands: [NotificationsWatchCommand.self])
}

struct NotificationsWatchCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Print notifications as they come, until it is stopped.",
        discussion: """
            Goes on by itself, on another node where one is lost. With --json each page is a line, with the syncToken \
            to go on from. --timeout ends it after so long, --count after so many notifications.
            """)

    @OptionGroup var options: ClientOptions

    @Option(
        help: ArgumentHelp("The token to go on from; without one, what is told from now on.", valueName: "token"))
    var since: String?

    @Option(help: "End after so many notifications.")
    var count: Int?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        var watching = FeedWatching(count: count, seconds: options.timeout?.seconds) { token, wait, left in
            try connection.notificationsRequest(
                "watch",
                .members([
                    "syncToken": .given(token), "timeout": .integer(wait),
                    "resultsLimit": .integer(Int64(min(left ?? .max, 200))),
                ]))
        }
        try await watching.follow("notifications", since: since, on: connection) { body in
            let end = JSONValue.members(["syncToken": body["syncToken"], "fromEnd": .bool(true)])
            return try await connection.send(try connection.notificationsRequest("changes", end)).checked()
        } show: { page, found in
            Console.printPart(options.json ? page.plainText + "\n" : found.map { Self.line($0) + "\n" }.joined())
        }
        if !options.json { print("token \(watching.token ?? "")") }
    }

    static func line(_ entry: JSONValue) -> String {
        let ck = entry["payload"]?["ck"] ?? .null
        let events: [Int64: String] = [1: "created", 2: "updated", 3: "deleted"]
        var what = "changed"
        var change = ck["fet"] ?? ck["met"] ?? .null
        if let query = ck["qry"] {
            change = query
            if case .integer(let event)? = query["fo"] { what = events[event] ?? what }
            what = "\(what) \(query.text("rid"))"
        }
        return "\(entry.time("time"))  \(change.text("sid"))  zone \(change.text("zid"))  \(what)".onOneLine
    }
}
