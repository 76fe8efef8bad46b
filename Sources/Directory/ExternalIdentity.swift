package import RecordModel
package import Wire

/// Who an account is at an OpenID Connect issuer; belongs to one account at most.
package struct ExternalIdentity: Hashable, Sendable {
    /// The issuer's URL, as its tokens have it.
    @Bytewise package var issuer: String
    /// The issuer's name for the user; never given to another one.
    @Bytewise package var subject: String

    package init(issuer: String, subject: String) {
        self.issuer = issuer
        self.subject = subject
    }

    /// Whether a text may be a subject: 1 to 255 ASCII characters, as OpenID Connect Core 1.0 says in section 2.
    package static func isSubject(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { $0 < 0x80 }
    }

    /// In changes of an account: that it shall have no identity any more.
    package static let none = ExternalIdentity(issuer: "", subject: "")
}

extension ExternalIdentity: WireCodable {
    /// 1 issuer, 2 subject.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, issuer)
        writer.field(2, subject)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self = .none
        while let field = try reader.nextField() {
            switch field {
            case 1: issuer = try reader.string()
            case 2: subject = try reader.string()
            default: try reader.skip()
            }
        }
    }
}
