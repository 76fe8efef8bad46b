package import RecordModel
package import Wire

/// The public half of a key with which a server signs its requests; it speaks for an account in one container's
/// environment.
package struct ServerKey: Hashable, Sendable {
    /// What requests and administrators name it by: 64 hexadecimal digits, no secret.
    package var id: String
    package var container: String
    package var environment: Environment
    /// A point of the curve P-256 in the form of ANSI X9.63, uncompressed: 65 bytes, the first one is 4.
    package var publicKey: [UInt8]
    package var accountID: String
    package var label: String
    /// Milliseconds since 1970.
    package var created: Int64

    package static let publicKeyBytes = 65

    package init(
        id: String, container: String, environment: Environment, publicKey: [UInt8], accountID: String, label: String,
        created: Int64
    ) {
        self.id = id
        self.container = container
        self.environment = environment
        self.publicKey = publicKey
        self.accountID = accountID
        self.label = label
        self.created = created
    }
}

extension ServerKey: WireCodable {
    /// 1 id, 2 container, 3 environment, 4 public key, 5 account's id, 6 label, 7 created.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, container)
        writer.field(3, environment.rawValue)
        writer.field(4, publicKey)
        writer.field(5, accountID)
        writer.field(6, label)
        writer.field(7, signed: created)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var environment: Environment?
        self.init(
            id: "", container: "", environment: .development, publicKey: [], accountID: "", label: "", created: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.string()
            case 2: container = try reader.string()
            case 3: environment = try reader.choice()
            case 4: publicKey = try reader.array()
            case 5: accountID = try reader.string()
            case 6: label = try reader.string()
            case 7: created = try reader.signed()
            default: try reader.skip()
            }
        }
        guard let environment else { throw .missingField(3) }
        self.environment = environment
    }
}
