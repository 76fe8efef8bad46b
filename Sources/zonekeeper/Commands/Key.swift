import ArgumentParser
import Crypto
import Foundation
import RecordModel
import ServiceClient

struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Make, list, label and revoke server-to-server keys.",
        discussion: """
            A server key signs requests for a container's public data, as CloudKit Web Services has it (ECDSA, P-256, \
            SHA-256), and acts as the user it belongs to. The cluster knows public keys only.
            """,
        subcommands: [KeyCreateCommand.self, KeyListCommand.self, KeyUpdateCommand.self, KeyRevokeCommand.self])
}

struct KeyCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Make a key pair here, and register its public key.",
        discussion: """
            The private key is written as PEM to a file that only its owner may read, and is sent nowhere. Its id is \
            printed, and written to a file beside it: key.pem.id for key.pem. To register a key that was made with \
            OpenSSL: openssl ecparam -name prime256v1 -genkey -noout -out key.pem; openssl ec -in key.pem -pubout \
            -out public.pem; zonekeeper key create --public-key public.pem --user NAME.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "The user that the key acts as.")
    var user: String

    @Option(
        help: ArgumentHelp("Where the private key goes, as PEM, and with .id its id; new files.", valueName: "file"))
    var output: String?

    @Option(help: ArgumentHelp("Register the public key in this PEM file instead of making a pair.", valueName: "file"))
    var publicKey: String?

    @Option(help: "A note for the list of keys.")
    var label: String?

    func validate() throws {
        if (output == nil) == (publicKey == nil) {
            throw ValidationError(
                "either --output is expected, where the new private key goes, or --public-key, the key to register")
        }
    }

    func run(on connection: Connection) async throws {
        // Before a file is made, so that what is missing leaves nothing behind.
        let container = try connection.container()
        try connection.needAdministrator()
        guard let output else {
            let text = try publicKeyText()
            return try report(try await register(text, in: container, on: connection), container)
        }
        let idPath = ServerKeyFile.idPath(of: output)
        guard !Paths.exists(idPath) else {
            throw CommandFailure("\(idPath) is there already, and would hold the new key's id: name another --output")
        }
        let key = P256.Signing.PrivateKey()
        try PrivateFile.create(output, key.pemRepresentation + "\n")
        let response: ServiceResponse
        do {
            response = try await register(key.publicKey.pemRepresentation, in: container, on: connection)
        } catch let failure as CommandFailure where failure.isOutcomeUnknown {
            throw CommandFailure(
                "\(failure.message). The key may be registered, so its private key stays in \(output): look for it "
                    + "with `zonekeeper key list`, then use it with --key-id, or revoke it and remove the file",
                isOutcomeUnknown: true)
        } catch let failure as CommandFailure {
            unlink(output)
            throw failure
        }
        let id = try response.json().text("id")
        do throws(ServiceClientError) {
            try ServerKeyFile.writeID(id, besideKey: output)
        } catch {
            throw CommandFailure("\(error.message); the key is registered: use it with --key-id \(id)")
        }
        try report(response, container)
    }

    private func register(
        _ publicKey: String, in container: String, on connection: Connection
    ) async throws -> ServiceResponse {
        let response = try await connection.administer(
            "POST", "keys",
            body: .members([
                "container": .string(container), "environment": .string(connection.settings.environment),
                "publicKey": .string(publicKey), "user": .string(user), "label": .given(label),
            ]))
        guard try response.json()["id"]?.string?.isEmpty == false else {
            throw CommandFailure("the answer has no key id in it. Is this a Zonekeeper node?", isOutcomeUnknown: true)
        }
        return response
    }

    private func report(_ response: ServiceResponse, _ container: String) throws {
        if options.json { return Console.print(response.body) }
        print("id      \(try response.json().text("id"))")
        guard let output else { return print("made known for container \(container); sign with its private key") }
        print("file    \(output), with its id in \(ServerKeyFile.idPath(of: output))")
        print("use it  export ZONEKEEPER_KEY_FILE=\(output)")
    }

    /// The PEM of the file, looked at before it is sent: a private key must not leave this machine.
    private func publicKeyText() throws -> String {
        let path = publicKey ?? ""
        let text = try SecretFile.read(path)
        if text.contains("PRIVATE KEY-----") {
            throw CommandFailure("\(path) holds a private key, which was not sent; name the public key's file")
        }
        guard (try? P256.Signing.PublicKey(pemRepresentation: text)) != nil else {
            throw CommandFailure("\(path) holds no public key of the curve P-256 (prime256v1) as PEM")
        }
        return text + "\n"
    }
}

struct KeyListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the server keys.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let columns: [Table.Column] = [
            .text("ID", "id"), .text("CONTAINER", "container"), .text("ENVIRONMENT", "environment"),
            .text("USER", "user"), .time("CREATED", "created"), .time("USED", "lastUsed"), .text("BY", "maker"),
            .text("LABEL", "label"),
        ]
        try list(try await connection.administer("GET", "keys"), "keys", columns)
    }
}

struct KeyUpdateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Change the label of a server key.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The key's id, as `key list` shows it.")
    var id: String

    @Option(help: "A note for the list of keys; '' takes it away.")
    var label: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "PATCH", "keys", parameters: ["id": id], body: .members(["label": .string(label)]))
        try show(response, "changed key \(id)")
    }
}

struct KeyRevokeCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "revoke", abstract: "Make a server key worthless.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The key's id, as `key list` shows it.")
    var id: String

    func run(on connection: Connection) async throws {
        try show(try await connection.administer("DELETE", "keys", parameters: ["id": id]), "revoked key \(id)")
    }
}
