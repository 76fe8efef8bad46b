import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper token list`
struct TokenListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the tokens, without their secrets.",
        discussion: """
            Sessions that began on the sign-in page, one for each user and device, are listed with --kind sign-in or all. \
            --container, or ZONEKEEPER_CONTAINER, shows those of one container.
            """)

    /// Which tokens.
    enum Kind: String, ExpressibleByArgument, CaseIterable {
        case api, session
        case signIn = "sign-in"
        case all
    }

    @OptionGroup var options: ClientOptions

    @Option(help: "Only these; may be repeated (usually api and session).")
    var kind: [Kind] = []

    /// As the server's parameter has it; nil: all.
    var kinds: String? {
        if kind.contains(.all) { return nil }
        return (kind.isEmpty ? [.api, .session] : kind).map(\.rawValue).joined(separator: ",")
    }

    func run() async throws {
        try await options.withConnection { connection in
            var parameters: [(name: String, value: String)] = []
            if let kinds { parameters.append((name: "kind", value: kinds)) }
            if let container = connection.settings.container {
                parameters.append((name: "container", value: container))
            }
            let tokens = try await connection.administerList("tokens", "tokens", parameters: parameters)
            if options.json { return Console.print(JSONValue.members(["tokens": .array(tokens)]).serialized()) }
            print(Self.table(tokens))
        }
    }

    /// Origins and callback URLs have columns only where some token has them.
    static func table(_ tokens: [JSONValue]) -> String {
        var columns: [(heading: String, cell: (JSONValue) -> String)] = [
            ("ID", { $0.text("id") }), ("KIND", { $0.text("kind") }), ("CONTAINER", { $0.text("container") }),
            ("ENVIRONMENT", { $0.text("environment") }), ("USER", { $0.text("user") }),
            ("CREATED", { $0.time("created") }), ("EXPIRES", { $0.time("expires") }),
        ]
        let web: [(heading: String, cell: (JSONValue) -> String)] = [
            ("ORIGINS", { ($0["origins"]?.array ?? []).map(\.plainText).joined(separator: " ") }),
            ("CALLBACK", { $0.text("callbackURL") }),
        ]
        columns += web.filter { column in tokens.contains { !column.cell($0).isEmpty } }
        columns.append(("LABEL", { $0.text("label") }))
        var table = Table(headings: columns.map(\.heading))
        for token in tokens { table.add(columns.map { $0.cell(token) }) }
        return table.text
    }
}
