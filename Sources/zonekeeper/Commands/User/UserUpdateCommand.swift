import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user update`
struct UserUpdateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "update", abstract: "Change what is known of a user; what is not named stays.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    @Option(help: "By which other users may look the user up; '' removes it.")
    var email: String?

    @Option(help: "Shown to others if the user is discoverable; '' removes it.")
    var givenName: String?

    @Option(help: "Shown to others if the user is discoverable; '' removes it.")
    var familyName: String?

    @Flag(inversion: .prefixedNo, help: "Let other users learn the names, or not.")
    var discoverable: Bool?

    @OptionGroup var identity: IdentityOptions

    @Flag(help: "Take away who the user is at an identity provider.")
    var noIdentity = false

    func validate() throws {
        if noIdentity, identity.json != nil {
            throw ValidationError("either --no-identity or --identity-issuer is expected, not both")
        }
        if email == nil, givenName == nil, familyName == nil, discoverable == nil, identity.json == nil, !noIdentity {
            throw ValidationError(
                "nothing to change: --email, --given-name, --family-name, --discoverable, --no-discoverable, "
                    + "--identity-issuer with --identity-subject, or --no-identity is expected")
        }
    }

    func run() async throws {
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "email": email.map { .string($0) }, "givenName": givenName.map { .string($0) },
                "familyName": familyName.map { .string($0) }, "discoverable": discoverable.map { .bool($0) },
                "identity": noIdentity ? .null : identity.json,
            ])
            let response = try await connection.administer(
                "PATCH", "users", parameters: [("name", name)], body: body.serialized())
            if options.json { return Console.print(response.body) }
            print("updated user \(name)")
        }
    }
}
