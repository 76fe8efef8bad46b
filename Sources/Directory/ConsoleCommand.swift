package import Wire

/// A change of who may use the console, or of a session there. Comes with `FeatureLevel.console`.
package enum ConsoleCommand: Hashable, Sendable, WireUnion {
    /// A new administrator; below `FeatureLevel.partialChanges` also another role for one that there is, whose password
    /// and times stay.
    case save(Administrator, isNew: Bool)
    /// Removes an administrator with their token, links and sessions.
    case remove(name: String)
    /// Nil takes the password away. Ends a lock-out and all sessions but the one of the id.
    case setPassword(name: String, PasswordHash?, keepingSession: String, time: Int64)
    /// The holder of a session without a name becomes this administrator, and the session theirs.
    case found(Administrator, session: String)
    /// A link that opens the console once.
    case makeLink(Token)
    /// Begins a session where what it rests on still holds, and ends the one that it takes the place of.
    case beginSession(Token, ConsoleProof, replacing: String)
    /// That somebody did not know an administrator's password; enough of that locks it (`Lockout`).
    case noteFailure(name: String, time: Int64)

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .save(let administrator, let isNew): writer.parts(1, administrator, isNew)
        case .remove(let name): writer.field(2, name)
        case .setPassword(let name, let password, let session, let time):
            writer.parts(3, name, password, session, time)
        case .found(let administrator, let session): writer.parts(4, administrator, session)
        case .makeLink(let token): token.write(5, to: &writer)
        case .beginSession(let token, let proof, let replaced): writer.parts(6, token, proof, replaced)
        case .noteFailure(let name, let time): writer.parts(7, name, time)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = try reader.parts(Self.save)
        case 2: self = .remove(name: try reader.string())
        case 3: self = try reader.parts(Self.setPassword)
        case 4: self = try reader.parts(Self.found)
        case 5: self = .makeLink(try reader.message())
        case 6: self = try reader.parts(Self.beginSession)
        case 7: self = try reader.parts(Self.noteFailure)
        default: return nil
        }
    }

    /// The command in the audit log.
    var auditSummary: (action: String, subject: String) {
        switch self {
        case .save(let administrator, let isNew):
            (isNew ? "administrator.create" : "administrator.update", Self.text(administrator))
        case .remove(let name): ("administrator.delete", Self.text(name))
        case .setPassword(let name, let password, _, _):
            (
                password == nil ? "administrator.password.remove" : "administrator.password.set",
                "\(Self.text(name)), sessions end"
            )
        case .found(let administrator, _): ("administrator.create", Self.text(administrator))
        case .makeLink(let token): ("console.link", Self.text(token))
        case .beginSession(let token, .link, _): ("console.sign-in", "\(Self.text(token)), by a link")
        case .beginSession(let token, .password, _): ("console.sign-in", "\(Self.text(token)), by password")
        case .noteFailure(let name, _): (AuditEvent.signInFailure, Self.text(name))
        }
    }

    private static func text(_ name: String) -> String {
        name.isEmpty ? "whoever has the nodes' token" : "administrator \(AuditText.id(name))"
    }

    private static func text(_ token: Token) -> String {
        "\(text(token.kind.administratorName ?? "")), token \(AuditText.id(token.id))"
    }

    private static func text(_ administrator: Administrator) -> String {
        let place = administrator.containers.map { $0.joined(separator: ", ") } ?? "the cluster"
        return "\(text(administrator.name)), \(administrator.role.rawValue) of \(place)"
    }
}

/// How somebody showed that the console is theirs to use.
package enum ConsoleProof: Hashable, Sendable, WireUnion {
    /// By the secret of a link, whose hash it is; the link is worth nothing afterwards.
    case link(secretHash: [UInt8])
    /// By the password that was right, by its `PasswordHash.fingerprint`.
    case password(fingerprint: [UInt8])

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .link(let hash): writer.field(1, hash)
        case .password(let fingerprint): writer.field(2, fingerprint)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .link(secretHash: try reader.array())
        case 2: self = .password(fingerprint: try reader.array())
        default: return nil
        }
    }
}
