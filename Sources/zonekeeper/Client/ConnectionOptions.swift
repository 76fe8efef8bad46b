import ArgumentParser
import Foundation
import ServiceClient

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

    @Option(help: ArgumentHelp("Names the container to the server. [ZONEKEEPER_API_TOKEN]", valueName: "token"))
    var apiToken: String?

    @Option(help: ArgumentHelp("A user's session. [ZONEKEEPER_WEB_AUTH_TOKEN]", valueName: "token"))
    var webAuthToken: String?

    @Option(help: ArgumentHelp("The administrator's token. [ZONEKEEPER_ADMIN_TOKEN_FILE]", valueName: "file"))
    var adminTokenFile: String?

    @Flag(help: "Print the server's JSON.")
    var json = false

    /// The folder of a node started without any option, whose files are found by themselves.
    private static let defaultFolder = "zonekeeper-data"

    /// What the options and the environment's variables come to.
    func resolved(
        _ variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> ConnectionSettings {
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
            container: value(container, "CONTAINER"), environment: environment, apiToken: value(apiToken, "API_TOKEN"),
            webAuthToken: value(webAuthToken, "WEB_AUTH_TOKEN"),
            environmentNamed: value(self.environment, "ENVIRONMENT"),
            administratorTokenFile: file(
                adminTokenFile, "ADMIN_TOKEN_FILE", default: Self.defaultFolder + "/admin.token"))
    }
}

/// Where a cluster is, and who asks.
struct ConnectionSettings: Sendable {
    var urls: [String]
    var authority: String?
    var container: String?
    var environment: String
    var apiToken: String?
    var webAuthToken: String?
    /// The environment, where one was named.
    var environmentNamed: String?
    var administratorTokenFile: String?
    /// Signs requests for public data instead of tokens.
    var serverKey: ServerKeySource?
    /// Where the user's token of the moment comes from, which answers replace.
    var session: WebAuthTokenSource?
    /// How long to go on while the cluster says to come back later; nil where nobody said.
    var patienceSeconds: Double?
}
