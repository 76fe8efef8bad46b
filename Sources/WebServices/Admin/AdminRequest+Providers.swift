import Admission
import Directory
import RecordModel
import Service

// Who may sign in besides the users with a password: users of identity providers, and whoever makes an account.
extension AdminRequest {
    func providers() async throws(RequestFailure) -> Reply {
        let providers = try await directory().providers
        return Reply { writer in
            writer.key("providers")
            writer.array { writer in
                for provider in providers { writer.object { Self.write(provider, to: &$0) } }
            }
        }
    }

    private static func write(_ provider: IdentityProvider, to writer: inout JSONWriter) {
        writer.member("name", provider.name)
        writer.member("issuer", provider.issuer)
        writer.member("clientID", provider.clientID)
        writer.member("hasSecret", !provider.sealedSecret.isEmpty)
        writer.member("allowsSignUp", provider.allowsSignUp)
    }

    /// Adds a provider, or gives the one of that name new values. A secret, and whether it may make accounts, stay as
    /// they are where they are left out.
    func setProvider() async throws(RequestFailure) -> Reply {
        let json = try json
        let name = try text("name")
        guard Self.line(name) != nil, name.count <= 64 else {
            throw RequestFailure(.badRequest, "name: 1 to 64 characters on one line are expected")
        }
        let issuer = try text("issuer")
        do throws(ServiceError) {
            _ = try ProviderDocument.address(ofIssuer: issuer)
        } catch {
            throw RequestFailure(error.code, "issuer: \(error.reason)")
        }
        let old = try await directory().providers.first { $0.$name == Bytewise(name) }
        var provider = IdentityProvider(
            name: name, issuer: issuer, clientID: try text("clientID"), sealedSecret: [],
            allowsSignUp: old?.allowsSignUp ?? false)
        switch json["allowsSignUp"] {
        case nil, .null?: break
        case .bool(let flag)?: provider.allowsSignUp = flag
        default: throw RequestFailure(.badRequest, "allowsSignUp: true or false is expected")
        }
        provider.sealedSecret = try sealedSecret(json, of: provider, old)
        try await change(.setIdentityProvider(provider))
        return Reply { Self.write(provider, to: &$0) }
    }

    /// What is kept of `clientSecret`: null takes it away; where it is missing, the old one stays for the same issuer
    /// and client.
    private func sealedSecret(
        _ json: JSONValue, of provider: IdentityProvider, _ old: IdentityProvider?
    ) throws(RequestFailure) -> [UInt8] {
        guard let given = json["clientSecret"] else {
            let isSame = old?.issuer == provider.issuer && old?.clientID == provider.clientID
            return isSame ? old?.sealedSecret ?? [] : []
        }
        if given.isNull { return [] }
        guard let secret = given.string, !secret.isEmpty, secret.utf8.count <= 4_096 else {
            throw RequestFailure(.badRequest, "clientSecret: a text of 1 to 4,096 bytes, or null, is expected")
        }
        return try context.sealed(secret, of: provider)
    }

    func removeProvider() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        try await change(.removeIdentityProvider(name: name))
        return Reply { writer in
            writer.member("name", name)
            writer.member("deleted", true)
        }
    }

    func signUp() async throws(RequestFailure) -> Reply {
        let isOpen = try await directory().isSignUpOpen
        return Reply { $0.member("open", isOpen) }
    }

    func setSignUp() async throws(RequestFailure) -> Reply {
        guard case .bool(let isOpen)? = try json["open"] else {
            throw RequestFailure(.badRequest, "open: true or false is expected")
        }
        try await change(.setSignUp(isOpen: isOpen))
        return Reply { $0.member("open", isOpen) }
    }
}
