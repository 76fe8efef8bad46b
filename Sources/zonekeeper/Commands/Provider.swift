import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct ProviderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider", abstract: "Add, list and remove OpenID Connect issuers that users may sign in with.",
        subcommands: [ProviderAddCommand.self, ProviderListCommand.self, ProviderRemoveCommand.self])
}

struct ProviderAddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Let users sign in with an OpenID Connect issuer, or change how.",
        discussion: """
            Register with the issuer first; it gives the client id, and wants to know where it may send users back to: \
            /sign-in/callback at the address of your cluster. For a name that is there, the issuer and the client id \
            are replaced; what else is left out stays as it was, the secret only where issuer and client are the same.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "A name, which the sign-in page's button shows.")
    var name: String

    @Option(help: ArgumentHelp("The issuer's URL, exactly as its tokens have it.", valueName: "url"))
    var issuer: String

    @Option(help: ArgumentHelp("What the issuer knows this cluster by.", valueName: "id"))
    var clientID: String

    @Option(
        help: ArgumentHelp(
            "The secret that the issuer gave, in a file; it is kept sealed. A new client without one is public.",
            valueName: "file"))
    var clientSecretFile: String?

    @Flag(help: "The client is public, without a secret; one that was there is removed.")
    var publicClient = false

    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Make an account for whoever the issuer vouches for, or let only known users sign in (usually the latter).",
            discussion: "Users are made known by `user create` or `user update` with --identity-issuer."))
    var allowSignUp: Bool?

    func validate() throws {
        if publicClient, clientSecretFile != nil {
            throw ValidationError("either --public-client or --client-secret-file is expected, not both")
        }
        guard let url = URLComponents(string: issuer), let host = url.host, !host.isEmpty, url.query == nil,
            url.fragment == nil,
            url.scheme == "https" || url.scheme == "http" && ["localhost", "127.0.0.1", "[::1]", "::1"].contains(host)
        else {
            throw ValidationError("--issuer: a URL such as https://accounts.example.com is expected, not '\(issuer)'")
        }
    }

    func run(on connection: Connection) async throws {
        let secret = try clientSecretFile.map { path in
            let secret = try SecretFile.read(path)
            guard !secret.isEmpty else { throw CommandFailure("\(path) holds no secret") }
            return secret
        }
        let body = JSONValue.members([
            "name": .string(name), "issuer": .string(issuer), "clientID": .string(clientID),
            "clientSecret": publicClient ? .null : .given(secret), "allowsSignUp": allowSignUp.map { .bool($0) },
        ])
        let response = try await connection.administer("POST", "providers", body: body)
        try show(response, "users may sign in with \(name) (\(issuer))")
    }
}

struct ProviderListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the identity providers, without their secrets.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        try list(
            try await connection.administer("GET", "providers"), "providers", nothing: "no identity providers",
            [
                .text("PROVIDER", "name"), .text("ISSUER", "issuer"), .text("CLIENT ID", "clientID"),
                .flag("SIGN-UP", "allowsSignUp"),
            ])
    }
}

struct ProviderRemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Let nobody sign in with an identity provider any more; accounts stay.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The provider's name.")
    var name: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("DELETE", "providers", parameters: ["name": name])
        try show(response, "removed the identity provider \(name)")
    }
}
