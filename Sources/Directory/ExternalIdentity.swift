package import Wire

/// Who an account is at an OpenID Connect issuer; belongs to one account at most.
package struct ExternalIdentity: Hashable, Sendable {
    /// The issuer's URL, as its tokens have it.
    package var issuer: String
    /// The issuer's name for the user; never given to another one.
    package var subject: String

    package init(issuer: String, subject: String) {
        self.issuer = issuer
        self.subject = subject
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
