import Crypto
package import RecordModel
package import Wire

/// What a token lets its bearer do.
package enum TokenKind: Hashable, Sendable {
    /// Names the container and environment that requests may address.
    case api(container: String, environment: Environment)
    /// Speaks for an account in one container. `expires` in milliseconds since 1970.
    case session(container: String, accountID: String, expires: Int64)
}

/// A token as it is kept: by its hash, never in clear.
package struct Token: Hashable, Sendable {
    /// What administrators name it by: 16 hexadecimal digits, no secret.
    package var id: String
    /// SHA-256 of the secret's UTF-8 bytes.
    package var secretHash: [UInt8]
    package var kind: TokenKind
    package var label: String
    /// Milliseconds since 1970.
    package var created: Int64

    package init(id: String, secretHash: [UInt8], kind: TokenKind, label: String, created: Int64) {
        self.id = id
        self.secretHash = secretHash
        self.kind = kind
        self.label = label
        self.created = created
    }

    /// The hash under which a secret is looked up.
    package static func hash(ofSecret secret: some StringProtocol) -> [UInt8] {
        Array(SHA256.hash(data: Array(secret.utf8)))
    }
}

/// Bytes as lower-case hexadecimal digits.
package enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

extension Token: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, secretHash)
        writer.field(3, label)
        writer.field(4, signed: created)
        switch kind {
        case .api(let container, let environment):
            writer.field(5, container)
            writer.field(6, environment.rawValue)
        case .session(let container, let accountID, let expires):
            writer.field(5, container)
            writer.field(7, accountID)
            writer.field(8, signed: expires)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var container = ""
        var environment: Environment?
        var accountID = ""
        var expires: Int64 = 0
        self.init(
            id: "", secretHash: [], kind: .session(container: "", accountID: "", expires: 0), label: "", created: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.string()
            case 2: secretHash = try reader.array()
            case 3: label = try reader.string()
            case 4: created = try reader.signed()
            case 5: container = try reader.string()
            case 6:
                environment = Environment(rawValue: try reader.string())
                if environment == nil { throw .invalidValue(field: 6) }
            case 7: accountID = try reader.string()
            case 8: expires = try reader.signed()
            default: try reader.skip()
            }
        }
        if let environment {
            kind = .api(container: container, environment: environment)
        } else {
            kind = .session(container: container, accountID: accountID, expires: expires)
        }
    }
}
