import ArgumentParser
import AsyncHTTPClient
import Foundation
import RecordModel
import ServiceClient
import Storage

/// Where a cluster is, and who asks: options, each with an environment variable that counts where it is left out.
struct ConnectionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A node's URL; may be repeated, or hold several with commas between. [ZONEKEEPER_URLS]",
            discussion: "Without one: https://127.0.0.1:24000, as `zonekeeper serve` has it.", valueName: "url"))
    var url: [String] = []

    @Option(
        help: ArgumentHelp("The authority that signs the nodes' certificates, PEM. [ZONEKEEPER_CA]", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("The container. [ZONEKEEPER_CONTAINER]", valueName: "name"))
    var container: String?

    @Option(
        help: ArgumentHelp(
            "development (the default) or production. [ZONEKEEPER_ENVIRONMENT]", valueName: "environment"))
    var environment: String?

    @Option(
        help: ArgumentHelp(
            "A file with the token that names the container to the server. [ZONEKEEPER_API_TOKEN: the token itself]",
            valueName: "file"))
    var apiTokenFile: String?

    @Option(
        help: ArgumentHelp(
            "A file with a user's session, as `user sign-in --token-file` makes it; kept up to date. "
                + "[ZONEKEEPER_WEB_AUTH_TOKEN_FILE, or ZONEKEEPER_WEB_AUTH_TOKEN: the token itself]",
            valueName: "file"))
    var webAuthTokenFile: String?

    @OptionGroup var former: FormerSecretOptions

    @Option(help: ArgumentHelp("The administrator's token. [ZONEKEEPER_ADMIN_TOKEN_FILE]", valueName: "file"))
    var adminTokenFile: String?

    @Flag(help: "Print the server's JSON.")
    var json = false

    /// The folder of a node started without any option, whose files are found by themselves.
    private static let defaultFolder = "zonekeeper-data"

    /// What the options and the environment's variables come to.
    func resolved(_ variables: [String: String] = ProcessInfo.processInfo.environment) throws -> ConnectionSettings {
        func value(_ option: String?, _ name: String) -> String? {
            if let option, !option.isEmpty { return option }
            return variables["ZONEKEEPER_" + name].flatMap { $0.isEmpty ? nil : $0 }
        }
        func file(_ option: String?, _ name: String, default path: String) -> String? {
            value(option, name) ?? (Paths.exists(path) ? path : nil)
        }
        let environment = value(environment, "ENVIRONMENT") ?? "development"
        guard ["development", "production"].contains(environment) else {
            throw ValidationError("--environment: 'development' or 'production' is expected, not '\(environment)'")
        }
        let given = url.isEmpty ? [variables["ZONEKEEPER_URLS"] ?? ""] : url
        let urls = given.flatMap { $0.split(separator: ",") }.map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        return ConnectionSettings(
            urls: urls.isEmpty ? ["https://127.0.0.1:24000"] : urls,
            authority: file(ca, "CA", default: Self.defaultFolder + "/certs/client-ca.pem"),
            container: value(container, "CONTAINER"), environment: environment, apiToken: value(nil, "API_TOKEN"),
            apiTokenFile: apiTokenFile, webAuthToken: value(nil, "WEB_AUTH_TOKEN"),
            environmentNamed: value(self.environment, "ENVIRONMENT"),
            administratorTokenFile: file(
                adminTokenFile, "ADMIN_TOKEN_FILE", default: Self.defaultFolder + "/admin.token"))
    }
}

struct ConnectionSettings: Sendable {
    var urls: [String]
    var authority: String?
    var container: String?
    var environment: String
    /// As a variable has it.
    var apiToken: String?
    /// Counts more than `apiToken`.
    var apiTokenFile: String?
    /// As a variable has it.
    var webAuthToken: String?
    var environmentNamed: String?
    var administratorTokenFile: String?
    /// The time as a user that requests name, beside the administrator's token.
    var actingID: String?
    /// The file of the key that signs requests for public data instead of tokens, and its id where one was named.
    var serverKey: (path: String, id: String?)?
    /// Where the user's token of the moment comes from, which answers replace.
    var session: WebAuthTokenSource?
    /// How long to go on while the cluster says to come back later; nil where nobody said.
    var patienceSeconds: Double?

    /// The API token, from its file where one was named.
    /// - Throws: where no such file is named, or the file cannot be read or is not its owner's alone.
    func requiredAPIToken() throws -> String {
        if let apiTokenFile {
            let token = try SecretFile.read(apiTokenFile)
            guard !token.isEmpty else { throw CommandFailure("\(apiTokenFile) holds no token") }
            return token
        }
        guard let apiToken else {
            throw ValidationError(
                "the API token is missing; make one with `zonekeeper token create --api`, and set ZONEKEEPER_API_TOKEN "
                    + "or name a file that has it with --api-token-file")
        }
        return apiToken
    }
}

/// Options that took secrets, which everybody on the machine could read in the list of processes.
struct FormerSecretOptions: ParsableArguments {
    @Option(help: .hidden) var apiToken: String?
    @Option(help: .hidden) var webAuthToken: String?

    func validate() throws {
        let former = [("--api-token", "API_TOKEN", apiToken), ("--web-auth-token", "WEB_AUTH_TOKEN", webAuthToken)]
        for (option, variable, value) in former where value != nil {
            throw ValidationError(
                "\(option) is not taken any more, as the list of processes shows it to everybody. Put the token into a "
                    + "file and name it with \(option)-file, or set ZONEKEEPER_\(variable)")
        }
    }
}

/// How commands reach a cluster, who speaks, and how long they go on.
struct ClientOptions: ParsableArguments {
    @OptionGroup var connection: ConnectionOptions

    @Option(
        help: ArgumentHelp(
            "Sign requests for public data with this server key, as `key create` makes it. [ZONEKEEPER_KEY_FILE]",
            valueName: "file"))
    var keyFile: String?

    @Option(
        help: ArgumentHelp("The server key's id, where no file FILE.id has it. [ZONEKEEPER_KEY_ID]", valueName: "id"))
    var keyID: String?

    @Option(
        help: ArgumentHelp(
            "Be a user: the id that `act-as start` printed, with the administrator's token. [ZONEKEEPER_ACT_AS]",
            valueName: "id"))
    var actAs: String?

    @Option(
        help: ArgumentHelp(
            "How long to go on while the cluster says to come back later, in seconds, or such as 2m (usually 10).",
            valueName: "time"))
    var timeout: Patience?

    /// How long a connection may be silent while something is to come, in seconds: longer than any request may take.
    private static let silenceSeconds: Int64 = 120

    var json: Bool { connection.json }

    /// What the options and the environment's variables come to. Files of keys and sessions are read when something
    /// needs them: a variable that names one that is gone is no reason for others to fail.
    /// - Throws: `ValidationError` that says which option is at fault.
    func resolved(_ variables: [String: String] = ProcessInfo.processInfo.environment) throws -> ConnectionSettings {
        func variable(_ name: String) -> String? { variables["ZONEKEEPER_" + name].flatMap { $0.isEmpty ? nil : $0 } }
        // A token in an option counts more than a key in a variable.
        let namesTokens = connection.apiTokenFile != nil || connection.webAuthTokenFile != nil
        if keyFile != nil, namesTokens {
            throw ValidationError(
                "either --key-file or tokens are expected, not both: a request is signed or carries tokens")
        }
        var settings = try connection.resolved(variables)
        settings.patienceSeconds = timeout?.seconds
        if actAs != nil, keyFile != nil || namesTokens {
            throw ValidationError("either --act-as, --key-file or tokens are expected: each says who asks")
        }
        if let id = actAs ?? (namesTokens || keyFile != nil ? nil : variable("ACT_AS")) {
            settings.actingID = id
            return settings
        }
        if let path = keyFile ?? (namesTokens ? nil : variable("KEY_FILE")) {
            settings.serverKey = (path, keyID ?? variable("KEY_ID"))
        }
        if let path = connection.webAuthTokenFile ?? variable("WEB_AUTH_TOKEN_FILE") {
            settings.webAuthToken = nil
            settings.session = WebAuthTokenSource(path: path) {
                Console.note("warning: the session's new token is not kept: \($0.message)")
            }
        } else {
            settings.session = settings.webAuthToken.map { WebAuthTokenSource($0) }
        }
        return settings
    }

    func withConnection<Value>(_ body: (Connection) async throws -> Value) async throws -> Value {
        let settings = try resolved()
        let secret = try settings.administratorTokenFile.flatMap { path throws(ServiceClientError) -> String? in
            // A file that is there by default is no reason to fail for a command that does not need it.
            self.connection.adminTokenFile == nil && !Paths.exists(path) ? nil : try SecretFile.read(path)
        }
        let http = try ServiceClient.http(authority: settings.authority, silenceSeconds: Self.silenceSeconds)
        let connection = Connection(
            settings: settings,
            client: ServiceClient(http: http, urls: settings.urls, administratorSecret: secret))
        do {
            let value = try await body(connection)
            try await http.shutdown()
            return value
        } catch {
            try await http.shutdown()
            throw error
        }
    }
}

/// A span of time to go on for: seconds such as `10` or `2.5`, or such as `90s`, `2m`, `1h`; 0 is one attempt.
struct Patience: ExpressibleByArgument, Hashable {
    var seconds: Double

    init?(argument: String) {
        if let seconds = Double(argument), seconds.isFinite, seconds >= 0 {
            self.seconds = seconds
        } else if let lifetime = Lifetime(argument: argument) {
            seconds = Double(lifetime.seconds)
        } else {
            return nil
        }
    }
}

protocol ClientCommand: AsyncParsableCommand {
    var options: ClientOptions { get }

    func run(on connection: Connection) async throws
}

extension ClientCommand {
    func run() async throws {
        do {
            try await options.withConnection(run(on:))
        } catch let failure as CommandFailure {
            if options.json, let answer = failure.answer { Console.print(answer) }
            throw failure
        }
    }

    /// Prints an answer: as the server sent it with `--json`, else as people read it.
    func show(_ response: ServiceResponse, _ text: @autoclosure () throws -> String) throws {
        if options.json { Console.print(response.body) } else { print(try text()) }
    }

    /// The same for what was put together from several answers.
    func show(_ json: @autoclosure () -> JSONValue, _ text: @autoclosure () throws -> String) throws {
        if options.json { Console.print(json().serialized()) } else { print(try text()) }
    }

    /// Prints a list, which an answer holds under `key`, as a table.
    /// - Parameter nothing: what is said of an empty list; nil for the table's headings alone.
    func list(_ response: ServiceResponse, _ key: String, nothing: String? = nil, _ columns: [Table.Column]) throws {
        let table = Table(try response.entries(key), columns)
        try show(response, table.rows.isEmpty ? nothing ?? table.text : table.text)
    }
}

enum InputFile {
    /// - Parameter path: `-` is standard input.
    static func read(_ path: String) throws(CommandFailure) -> String {
        let bytes = try bytes(of: path)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("\(path == "-" ? "standard input" : path) is not UTF-8 text")
        }
        return text
    }

    /// The bytes of a file, as they are.
    /// - Parameter path: `-` is standard input.
    static func bytes(of path: String) throws(CommandFailure) -> [UInt8] {
        if path == "-" {
            do {
                return Array(try FileHandle.standardInput.readToEnd() ?? Data())
            } catch {
                throw CommandFailure("standard input cannot be read: \(error.localizedDescription)")
            }
        }
        do throws(DiskError) { return try readWholeFile(at: path) } catch {
            throw CommandFailure("\(path) cannot be read: \(error.reason)")
        }
    }
}
