import Directory
import RecordModel

extension AdminRequest {
    func users() async throws(RequestFailure) -> Reply {
        let accounts = try await directory().accountsByName
        return Reply { writer in
            writer.key("users")
            writer.array { writer in
                for name in accounts.keys.sorted() {
                    guard let account = accounts[name] else { continue }
                    writer.object { Self.write(account, to: &$0) }
                }
            }
        }
    }

    private static func write(_ account: Account, to writer: inout JSONWriter) {
        writer.member("name", account.name)
        writer.member("created", integer: account.created)
        if let email = account.email { writer.member("email", email) }
        if let givenName = account.givenName { writer.member("givenName", givenName) }
        if let familyName = account.familyName { writer.member("familyName", familyName) }
        writer.member("discoverable", account.isDiscoverable)
    }

    func createUser() async throws(RequestFailure) -> Reply {
        let name = try text("name")
        guard name.count <= Limits.nameLengthMax, !name.contains(where: \.isNewline) else {
            throw RequestFailure(
                .badRequest, "name: at most \(Limits.nameLengthMax) characters on one line are expected")
        }
        let given = try accountChanges()
        func unlessEmpty(_ text: String?) -> String? { text?.isEmpty == false ? text : nil }
        let account = Account(
            id: Self.randomHex(bytes: 16), name: name, created: context.now, email: unlessEmpty(given.email),
            givenName: unlessEmpty(given.givenName), familyName: unlessEmpty(given.familyName),
            isDiscoverable: given.isDiscoverable ?? false)
        try await change(.createAccount(account))
        return Reply { Self.write(account, to: &$0) }
    }

    /// Changes what the body names; null and the empty string clear.
    func updateUser() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        let changes = try accountChanges()
        guard !changes.isEmpty else {
            throw RequestFailure(
                .badRequest, "nothing to change: email, givenName, familyName or discoverable is expected in the body")
        }
        try await change(.updateAccount(name: name, changes))
        guard let account = try await directory().accountsByName[name] else {
            throw RequestFailure(.notFound, "the user '\(name)' was deleted meanwhile")
        }
        return Reply { Self.write(account, to: &$0) }
    }

    func deleteUser() async throws(RequestFailure) -> Reply {
        let name = try parameter("name")
        try await change(.deleteAccount(name: name))
        return Reply { writer in
            writer.member("name", name)
            writer.member("deleted", true)
        }
    }

    /// The body's members about an account; what is missing is nil, null is the empty string.
    private func accountChanges() throws(RequestFailure) -> AccountChanges {
        let json = try json
        func member(_ key: String) throws(RequestFailure) -> String? {
            guard let value = json[key] else { return nil }
            if value.isNull { return "" }
            guard let text = value.string, text.count <= Limits.nameLengthMax, !text.contains(where: \.isNewline) else {
                throw RequestFailure(
                    .badRequest, "\(key): at most \(Limits.nameLengthMax) characters on one line are expected")
            }
            return text
        }
        var changes = AccountChanges(
            email: try member("email"), givenName: try member("givenName"), familyName: try member("familyName"))
        if let email = changes.email, !email.isEmpty, !Self.isEmail(email) {
            throw RequestFailure(.badRequest, "email: an address such as ada@example.com is expected, not '\(email)'")
        }
        switch json["discoverable"] {
        case nil: break
        case .bool(let value)?: changes.isDiscoverable = value
        default: throw RequestFailure(.badRequest, "discoverable: true or false is expected")
        }
        return changes
    }

    private static func isEmail(_ text: String) -> Bool {
        let sides = text.split(separator: "@", omittingEmptySubsequences: false)
        return sides.count == 2 && sides.allSatisfy { !$0.isEmpty } && text.utf8.count <= 254
            && !text.contains { $0.isWhitespace || $0 == "," || $0 == "<" || $0 == ">" }
    }
}
