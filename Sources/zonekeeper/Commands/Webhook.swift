import ArgumentParser
import RecordModel
import ServiceClient

struct WebhookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webhook",
        abstract: "Have an address outside the cluster told of changes: make, list, change, test and delete webhooks.",
        subcommands: [
            WebhookCreateCommand.self, WebhookListCommand.self, WebhookUpdateCommand.self, WebhookTestCommand.self,
            WebhookDeleteCommand.self, WebhookDeliveriesCommand.self,
        ])
}

struct WebhookName: ParsableArguments {
    @Argument(help: "Its name.")
    var name: String

    func parameters(_ connection: Connection) throws -> KeyValuePairs<String, String?> {
        ["container": try connection.container(), "environment": connection.settings.environment, "name": name]
    }

    func body(_ connection: Connection, _ members: [JSONValue.Member] = []) throws -> JSONValue {
        .object(
            [
                .init("container", .string(try connection.container())),
                .init("environment", .string(connection.settings.environment)), .init("name", .string(name)),
            ] + members)
    }
}

/// What a webhook is told of; what is left out stays, or is nothing.
struct WebhookScope: ParsableArguments {
    @Option(
        name: .customLong("type-of-record"), parsing: .upToNextOption,
        help: "Tell of records of these types in the public database.")
    var recordTypes: [String] = []

    @Option(name: .customLong("field"), parsing: .upToNextOption, help: "Show these fields of the records, at most 3.")
    var fields: [String] = []

    @Flag(
        name: .customLong("private"), inversion: .prefixedNo,
        help: "Tell that custom zones in private databases have changed, but not of what is in them.")
    var watchesPrivate: Bool?

    var members: [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        for (key, names) in [("recordTypes", recordTypes), ("fields", fields)] where !names.isEmpty {
            members.append(.init(key, .strings(names)))
        }
        if let watchesPrivate { members.append(.init("private", .bool(watchesPrivate))) }
        return members
    }
}

struct WebhookCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Make a webhook, and print the secret that its deliveries are signed with.",
        discussion: "The secret is not shown again. docs/webhooks.md has code that verifies deliveries.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var webhook: WebhookName
    @OptionGroup var scope: WebhookScope

    @Option(name: .customLong("receiver"), help: ArgumentHelp("Where deliveries are sent.", valueName: "url"))
    var url: String

    func run(on connection: Connection) async throws {
        let body = try webhook.body(connection, [.init("url", .string(url))] + scope.members)
        let response = try await connection.administer("POST", "webhooks", body: body)
        let secret = try response.json().text("secret")
        try show(response, "made webhook \(webhook.name)\nsecret  \(secret)")
    }
}

struct WebhookListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the webhooks of the container's environment, without their secrets.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        try list(
            try await connection.administerPlace("GET", "webhooks"), "webhooks", nothing: "no webhooks",
            [
                .text("WEBHOOK", "name"), .text("URL", "url"), .words("RECORD TYPES", "recordTypes"),
                .flag("PRIVATE", "private"), .text("STATE", "state"), .text("REASON", "reason"),
            ])
    }
}

struct WebhookUpdateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Change a webhook, its secret, or whether it is enabled.",
        discussion: """
            To change the secret without losing a delivery: --rotate-secret, which has deliveries signed with both; give \
            the receiver the new secret; then --drop-former-secret. Where the new secret was lost, \
            --drop-newest-secret, and begin again.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var webhook: WebhookName
    @OptionGroup var scope: WebhookScope

    @Option(name: .customLong("receiver"), help: ArgumentHelp("Where deliveries are sent.", valueName: "url"))
    var url: String?

    @Flag(inversion: .prefixedEnableDisable, help: "Deliver, or stop delivering.")
    var deliveries: Bool?

    @Flag(help: "Make a new secret, and sign with the present one, too.")
    var rotateSecret = false

    @Flag(help: "Sign with the newest secret only.")
    var dropFormerSecret = false

    @Flag(help: "Sign with the former secret only, where nobody has the newest.")
    var dropNewestSecret = false

    private var secretChanges: [String] {
        (rotateSecret ? ["rotate"] : []) + (dropFormerSecret ? ["dropFormer"] : [])
            + (dropNewestSecret ? ["dropNewest"] : [])
    }

    func validate() throws {
        if secretChanges.count > 1 {
            throw ValidationError(
                "one of --rotate-secret, --drop-former-secret and --drop-newest-secret is expected, not several")
        }
        if url == nil, deliveries == nil, secretChanges.isEmpty, scope.members.isEmpty {
            throw ValidationError("something to change is expected")
        }
    }

    func run(on connection: Connection) async throws {
        var members = scope.members
        if let url { members.append(.init("url", .string(url))) }
        if let deliveries { members.append(.init("enabled", .bool(deliveries))) }
        members += secretChanges.map { .init("secret", .string($0)) }
        let response = try await connection.administer("PATCH", "webhooks", body: try webhook.body(connection, members))
        let secret = try response.json()["secret"]?.string.map { "\nsecret  \($0)" } ?? ""
        try show(response, "changed webhook \(webhook.name)\(secret)")
    }
}

struct WebhookTestCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Send a delivery that tells of nothing, once, and show what was answered.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var webhook: WebhookName

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "POST", "webhooks/test", body: try webhook.body(connection), isSlow: true)
        let json = try response.json()
        let time = "\(json.text("milliseconds")) ms"
        if let reason = json["reason"]?.string {
            throw CommandFailure("webhook \(webhook.name) did not take the delivery after \(time): \(reason)")
        }
        try show(response, "webhook \(webhook.name) took the delivery: HTTP \(json.text("status")), \(time)")
    }
}

struct WebhookDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Remove a webhook, with what waits to be delivered.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var webhook: WebhookName

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "DELETE", "webhooks", parameters: try webhook.parameters(connection))
        try show(response, "removed webhook \(webhook.name)")
    }
}

struct WebhookDeliveriesCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "deliveries", abstract: "Show how the last deliveries to a webhook went, the newest first.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var webhook: WebhookName

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "GET", "webhooks/deliveries", parameters: try webhook.parameters(connection))
        let json = try response.json()
        var lines = ["webhook \(webhook.name) is \(json.text("state"))"]
        if let reason = json["reason"]?.string { lines[0] += ": \(reason)" }
        if let current = json["current"] {
            var line = "delivering \(current.text("id")), \(current.text("notifications")) notifications"
            if let failures = current.amount("failures"), failures > 0 {
                line +=
                    ", failed \(failures) times since "
                    + current.time("failingSince")
            }
            lines.append(line)
        }
        let table = Table(
            try response.entries("deliveries"),
            [
                .text("ID", "id"), .time("TIME", "time"), .text("NOTIFICATIONS", "notifications"),
                .text("MS", "milliseconds"), .init("OUTCOME", { $0["reason"]?.string ?? "HTTP \($0.text("status"))" }),
            ])
        if !table.rows.isEmpty { lines.append(table.text) }
        try show(response, lines.joined(separator: "\n"))
    }
}
