import ArgumentParser
import RecordModel
import ServiceClient

/// Who a user is at an identity provider: both or none.
struct IdentityOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The user signs in with this OpenID Connect issuer, exactly as its tokens name it; with --identity-subject.",
            valueName: "url"))
    var identityIssuer: String?

    @Option(help: ArgumentHelp("What the issuer calls the user: `sub` in its tokens.", valueName: "id"))
    var identitySubject: String?

    func validate() throws {
        if (identityIssuer == nil) != (identitySubject == nil) {
            throw ValidationError("--identity-issuer and --identity-subject go together")
        }
    }

    /// As a request's body has it; nil where none was named.
    var json: JSONValue? {
        guard let identityIssuer, let identitySubject else { return nil }
        return .members(["issuer": .string(identityIssuer), "subject": .string(identitySubject)])
    }
}
