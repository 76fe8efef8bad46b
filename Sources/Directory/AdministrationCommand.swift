import RecordModel
package import Wire

/// A change that came with `FeatureLevel.administration`, or later.
package enum AdministrationCommand: Hashable, Sendable, WireUnion {
    /// Lets an administrator be a user for a while. It takes the place of their earlier one in the environment.
    case beginActing(Token)
    /// Ends that: the whole token, for the audit log.
    case endActing(Token)
    /// What people are told of a container.
    case describeContainer(ContainerDetails)
    /// New values of an API token; nil leaves one as it is.
    case changeToken(id: String, label: String?, origins: [String]?)
    /// The new label of a server key.
    case changeKey(id: String, label: String)
    /// That tokens of apps and server keys were used, by their ids, at a time in milliseconds since 1970.
    case noteUses(ids: [String], time: Int64)
    /// Forgets the failed sign-ins of an account, by its name; from `FeatureLevel.unlocking` on.
    case unlock(account: String)
    /// The token of an administrator who asks for it in a session of the console, which is there still; from
    /// `FeatureLevel.sessionTokens` on.
    case makeToken(Token, session: String)
    /// Another role of an administrator, or where it holds; nil leaves one as it is, and containers that are nil are
    /// all. From `FeatureLevel.partialChanges` on.
    case changeAdministrator(name: String, role: AdministratorRole?, containers: [String]??)

    package func encode(to writer: inout WireWriter) {
        switch self {
        case .beginActing(let token): token.write(1, to: &writer)
        case .endActing(let token): token.write(2, to: &writer)
        case .describeContainer(let details): details.write(3, to: &writer)
        case .changeToken(let id, let label, let origins): TokenChange(id, label, origins).write(4, to: &writer)
        case .changeKey(let id, let label): writer.parts(5, id, label)
        case .noteUses(let ids, let time): TokenUses(ids: ids, time: time).write(6, to: &writer)
        case .unlock(let account): writer.parts(7, account)
        case .makeToken(let token, let session): writer.parts(8, token, session)
        case .changeAdministrator(let name, let role, let containers):
            AdministratorChange(name, role, containers).write(9, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .beginActing(try reader.message())
        case 2: self = .endActing(try reader.message())
        case 3: self = .describeContainer(try reader.message())
        case 4:
            let change: TokenChange = try reader.message()
            self = .changeToken(
                id: change.id, label: change.label, origins: change.setsOrigins ? change.origins : nil)
        case 5: self = try reader.parts(Self.changeKey)
        case 6:
            let uses: TokenUses = try reader.message()
            self = .noteUses(ids: uses.ids, time: uses.time)
        case 7: self = try reader.parts { .unlock(account: $0) }
        case 8: self = try reader.parts(Self.makeToken)
        case 9:
            let change: AdministratorChange = try reader.message()
            self = .changeAdministrator(
                name: change.name, role: change.role, containers: change.setsContainers ? .some(change.containers) : nil
            )
        default: return nil
        }
    }

    /// With which it came.
    var level: FeatureLevel {
        switch self {
        case .unlock: .unlocking
        case .makeToken: .sessionTokens
        case .changeAdministrator: .partialChanges
        default: .administration
        }
    }

    /// Uses that one command notes.
    package static let usesMax = 500
}

// The binary forms of what has lists.
private struct TokenChange: WireMessage {
    var id = ""
    var label: String?
    var setsOrigins = false
    var origins: [String] = []

    init() {}

    init(_ id: String, _ label: String?, _ origins: [String]?) {
        self.id = id
        self.label = label
        setsOrigins = origins != nil
        self.origins = origins ?? []
    }

    static var blank: Self { TokenChange() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &id)
        try wire.field(2, &label)
        try wire.field(3, &setsOrigins, unless: false)
        try wire.field(4, &origins)
    }
}

private struct AdministratorChange: WireMessage {
    var name = ""
    var role: AdministratorRole?
    var setsContainers = false
    var containers: [String]?

    init() {}

    init(_ name: String, _ role: AdministratorRole?, _ containers: [String]??) {
        self.name = name
        self.role = role
        setsContainers = containers != nil
        self.containers = containers ?? nil
    }

    static var blank: Self { AdministratorChange() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.field(2, &role)
        try wire.field(3, &setsContainers, unless: false)
        try wire.field(4, &containers, members: 5)
    }
}

private struct TokenUses: WireMessage {
    var ids: [String]
    var time: Int64

    static var blank: Self { TokenUses(ids: [], time: 0) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &ids)
        try wire.required(2, &time)
    }
}

/// What people are told of a container; nothing of it changes what its clients may do.
package struct ContainerDetails: Hashable, Sendable, WireMessage {
    /// The container's.
    package var name: String
    /// Whether the console leaves it out, for the whole team.
    package var isHidden = false
    /// In the team's words; one line.
    package var note = ""

    /// Without more arguments: nothing is said of it.
    package init(name: String, isHidden: Bool = false, note: String = "") {
        self.name = name
        self.isHidden = isHidden
        self.note = note
    }

    /// Whether nobody has said anything of the container.
    var isEmpty: Bool { !isHidden && note.isEmpty }

    /// Characters of a note.
    package static let noteLengthMax = 200

    package static var blank: Self { ContainerDetails(name: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.field(2, &isHidden, unless: false)
        try wire.field(3, &note)
    }
}

extension AdministrationCommand {
    /// What the audit log tells of the command.
    var auditSummary: (action: String, subject: String) {
        switch self {
        case .beginActing(let token): ("act-as.begin", Self.text(token))
        case .endActing(let token): ("act-as.end", Self.text(token))
        case .describeContainer(let details):
            (
                "container.describe",
                "container \(details.name): \(details.isHidden ? "hidden" : "shown")"
                    + (details.note.isEmpty ? "" : ", note '\(details.note)'")
            )
        case .changeToken(let id, let label, let origins):
            (
                "token.change",
                "token \(AuditText.id(id))" + (label == nil ? "" : ", label")
                    + (origins.map { ", origins \($0.isEmpty ? "all" : $0.joined(separator: " "))" } ?? "")
            )
        case .changeKey(let id, _): ("key.change", "key \(AuditText.id(id)), label")
        case .noteUses(let ids, _): ("token.use", "\(ids.count) tokens or keys")
        case .unlock(let account): ("user.unlock", "user \(account)")
        case .makeToken(let token, _): DirectoryCommand.createToken(token).auditSummary
        case .changeAdministrator(let name, let role, let containers):
            (
                "administrator.update",
                "administrator \(AuditText.id(name))" + (role.map { ", \($0.rawValue)" } ?? "")
                    + (containers.map { ", of \($0?.joined(separator: ", ") ?? "the cluster")" } ?? "")
            )
        }
    }

    /// A time as a user: with both names.
    private static func text(_ token: Token) -> String {
        guard case .acting(let session) = token.kind else { return "token \(AuditText.id(token.id))" }
        let administrator =
            session.administrator.isEmpty
            ? "whoever has the nodes' token" : "administrator \(AuditText.id(session.administrator))"
        return "\(administrator) as user \(token.label), account \(AuditText.id(session.accountID)), container "
            + "\(session.container) (\(session.environment.rawValue)), \(session.mayWrite ? "read and write" : "read only"): "
            + session.reason
    }
}
