import Crypto
import Foundation
package import RecordModel
package import Wire

/// One person or program with private data.
package struct Account: Hashable, Sendable {
    /// Random, 32 hexadecimal digits; never shown to clients.
    package var id: String
    /// What an administrator calls it; unique, in Unicode's composed form (NFC).
    @Bytewise package var name: String
    /// Milliseconds since 1970.
    package var created: Int64
    /// By which others may look the account up; unique, capital letters or not.
    package var email: String?
    package var givenName: String?
    package var familyName: String?
    /// Whether other users may learn the names.
    package var isDiscoverable: Bool
    /// Nil: the account cannot sign in by a password.
    package var password: PasswordHash?
    /// Unique.
    package var identity: ExternalIdentity?

    package init(
        id: String, name: String, created: Int64, email: String? = nil, givenName: String? = nil,
        familyName: String? = nil, isDiscoverable: Bool = false, password: PasswordHash? = nil,
        identity: ExternalIdentity? = nil
    ) {
        self.id = id
        self.name = name
        self.created = created
        self.email = email
        self.givenName = givenName
        self.familyName = familyName
        self.isDiscoverable = isDiscoverable
        self.password = password
        self.identity = identity
    }

    /// The account's user record name in a container: opaque, and different in each, so that two containers cannot tell
    /// that they share a user.
    package static func userRecordName(accountID: String, container: String) -> String {
        let digest = SHA256.hash(data: Array("zonekeeper user/\(accountID)/\(container)".utf8))
        return "_" + Hex.encode(Array(digest.prefix(16)))
    }

    /// Whether a text is one line of what can be seen: no control characters, line separators, marks that change the
    /// direction of writing, or characters of no width, by which two names look alike.
    package static func isPlainLine(_ text: some StringProtocol) -> Bool {
        text.unicodeScalars.allSatisfy { !AuditText.isHidden($0) }
    }

    /// The form in which names are compared: Unicode's composed form (NFC).
    package static func comparable(name: String) -> String {
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }

    /// The form in which addresses are compared: ASCII capitals become small letters.
    package static func comparable(email: some StringProtocol) -> String {
        String(
            decoding: email.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self)
    }
}

/// What an administrator changes of an account; what is nil stays as it is, the empty string clears.
package struct AccountChanges: Hashable, Sendable {
    package var email: String?
    package var givenName: String?
    package var familyName: String?
    package var isDiscoverable: Bool?
    /// `ExternalIdentity.none` clears.
    package var identity: ExternalIdentity?

    package init(
        email: String? = nil, givenName: String? = nil, familyName: String? = nil, isDiscoverable: Bool? = nil,
        identity: ExternalIdentity? = nil
    ) {
        self.email = email
        self.givenName = givenName
        self.familyName = familyName
        self.isDiscoverable = isDiscoverable
        self.identity = identity
    }

    /// Whether nothing is to be changed.
    package var isEmpty: Bool { self == AccountChanges() }

    func apply(to account: inout Account) {
        if let email { account.email = email.isEmpty ? nil : email }
        if let givenName { account.givenName = givenName.isEmpty ? nil : givenName }
        if let familyName { account.familyName = familyName.isEmpty ? nil : familyName }
        if let isDiscoverable { account.isDiscoverable = isDiscoverable }
        if let identity { account.identity = identity == .none ? nil : identity }
    }
}

extension Account: WireCodable {
    /// 1 id, 2 name, 3 created, 4 email, 5 given name, 6 family name, 7 whether discoverable (left out when not),
    /// 8 password, 9 identity.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, name)
        writer.field(3, signed: created)
        if let email { writer.field(4, email) }
        if let givenName { writer.field(5, givenName) }
        if let familyName { writer.field(6, familyName) }
        if isDiscoverable { writer.field(7, true) }
        if let password { writer.field(8) { password.encode(to: &$0) } }
        if let identity { writer.field(9) { identity.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(id: "", name: "", created: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.string()
            case 2: name = try reader.string()
            case 3: created = try reader.signed()
            case 4: email = try reader.string()
            case 5: givenName = try reader.string()
            case 6: familyName = try reader.string()
            case 7: isDiscoverable = try reader.bool()
            case 8: password = try reader.message()
            case 9: identity = try reader.message()
            default: try reader.skip()
            }
        }
    }
}

extension AccountChanges: WireCodable {
    /// 1 email, 2 given name, 3 family name, 4 whether discoverable, 5 identity; each left out where it stays.
    package func encode(to writer: inout WireWriter) {
        if let email { writer.field(1, email) }
        if let givenName { writer.field(2, givenName) }
        if let familyName { writer.field(3, familyName) }
        if let isDiscoverable { writer.field(4, isDiscoverable) }
        if let identity { writer.field(5) { identity.encode(to: &$0) } }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init()
        while let field = try reader.nextField() {
            switch field {
            case 1: email = try reader.string()
            case 2: givenName = try reader.string()
            case 3: familyName = try reader.string()
            case 4: isDiscoverable = try reader.bool()
            case 5: identity = try reader.message()
            default: try reader.skip()
            }
        }
    }
}
