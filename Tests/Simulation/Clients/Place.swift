import Admission
import Directory
import KeyValueStore
import RaftCore
import RecordModel

/// Where the clients of a simulation keep what they keep, and as whom.
enum Place {
    static let container = "iCloud.simulation"
    static let target = Target(container: container, environment: .development, needsUser: true)
    static let schemaKey = SchemaKey(container: container, environment: .development)
    static let type = "Item"
    /// Few values, by which records are looked for.
    static let kindField = "kind"
    /// Another value for every write.
    static let valueField = "value"
    /// Has a file.
    static let photoField = "photo"
    /// Has several files.
    static let albumField = "album"
    /// What else records of types have that are watched.
    static let (numberField, textField, labelsField, placeField) = ("number", "text", "labels", "place")
    /// Types that are watched beside `type`: one that everybody may read, one whose records only their creators may
    /// read and everybody may change, one that a role may read, and one whose records nobody may read.
    static let (memo, diary, report, closed) = ("Memo", "Diary", "Report", "Closed")
    static let reviewer = "reviewer"
    /// - Parameter withFiles: whether records have photos.
    static func schema(withFiles: Bool) -> Schema {
        var schema = plainSchema
        guard withFiles, let place = schema.types.firstIndex(where: { $0.name == type }) else { return schema }
        schema.types[place].fields.append(FieldDefinition(name: photoField, type: FieldType(.asset)))
        schema.types[place].fields.append(FieldDefinition(name: albumField, type: FieldType(.asset, isList: true)))
        return schema
    }

    private static func watched(_ name: String, _ grants: [Grant]) -> RecordType {
        RecordType(
            name: name,
            fields: [
                FieldDefinition(name: kindField, type: FieldType(.string), indexes: [.queryable, .sortable]),
                FieldDefinition(name: valueField, type: FieldType(.string)),
                FieldDefinition(name: numberField, type: FieldType(.int64), indexes: [.queryable, .sortable]),
                FieldDefinition(name: textField, type: FieldType(.string), indexes: [.searchable]),
                FieldDefinition(
                    name: labelsField, type: FieldType(.string, isList: true), indexes: [.queryable]),
                FieldDefinition(name: placeField, type: FieldType(.location), indexes: [.queryable]),
                FieldDefinition(
                    name: SystemField.recordID.rawValue, type: FieldType(.reference), indexes: [.queryable]),
            ], grants: grants)
    }

    private static let plainSchema = Schema(
        roles: [reviewer],
        types: [
            watched(memo, RecordType.defaultGrants),
            watched(
                diary,
                [Grant(role: "_creator", permissions: .read), Grant(role: "_icloud", permissions: [.create, .write])]),
            watched(
                report,
                [
                    Grant(role: "_creator", permissions: [.read, .write]), Grant(role: "_icloud", permissions: .create),
                    Grant(role: reviewer, permissions: .read),
                ]),
            watched(closed, [Grant(role: "_icloud", permissions: .create)]),
            .users,
            RecordType(
                name: type,
                fields: [
                    FieldDefinition(name: kindField, type: FieldType(.string), indexes: [.queryable]),
                    FieldDefinition(name: valueField, type: FieldType(.string), indexes: [.queryable, .sortable]),
                    FieldDefinition(
                        name: SystemField.recordID.rawValue, type: FieldType(.reference), indexes: [.queryable]),
                ], grants: RecordType.defaultGrants),
        ])
    static let apiSecret = "the page's"
    /// The accounts, each with preferences of its own; the first one's records are everybody's work.
    static let accounts = ["ada", "grace"]

    static func user(_ account: String) -> String {
        Account.userRecordName(accountID: account, container: container)
    }

    static let database = DatabaseKey(
        container: container, environment: .development, scope: .private, owner: user(accounts[0]))

    static func zone(_ name: String) -> ZoneKey { ZoneKey(database: database, name: name) }

    static func store(_ account: String) -> StoreKey {
        StoreKey(container: container, environment: .development, user: user(account))
    }

    static func sessionID(of account: String, client: Int) -> String { "\(account)-\(client)" }

    /// What has to be in the directory before clients can ask for anything.
    static func directoryCommands(clients: Int, _ limits: ContainerLimits) -> [DirectoryCommand] {
        let time = SimulatedClock.wallOrigin
        var commands: [DirectoryCommand] = [
            .createContainer(name: container, time: time),
            .createToken(
                Token(
                    id: "page", secretHash: Token.hash(ofSecret: apiSecret),
                    kind: .api(container: container, environment: .development, origins: [], callbackURL: nil),
                    label: "page", created: time)),
        ]
        let changed = ContainerLimit.allCases.filter { limits[$0] != $0.standard }
        if !changed.isEmpty {
            commands.append(.setLimits(container: container, changed.map { LimitChange($0, limits[$0]) }))
        }
        for account in accounts {
            commands.append(.createAccount(Account(id: account, name: account, created: time)))
            for client in 0...clients {
                commands.append(.createToken(session(sessionID(of: account, client: client), account)))
            }
        }
        if let serverKey { commands.append(.createServerKey(serverKey)) }
        commands.append(.createContainer(name: Hoard.container, time: time))
        commands.append(.setLimits(container: Hoard.container, [LimitChange(.userRecords, Hoard.limitMax)]))
        return commands
    }

    /// A session that lasts longer than any simulation.
    static func session(_ id: String, _ account: String) -> Token {
        Token(
            sessionID: id, container: container, accountID: account,
            expires: SimulatedClock.wallOrigin + 30 * 86_400_000, label: "sign-in", created: SimulatedClock.wallOrigin)
    }
}

/// A client's session with an account: the web auth token that the last answer brought.
final class UserSession: @unchecked Sendable {
    // Touched on the simulation's thread only.
    private(set) var token: String?
    let id: String

    init(_ id: String) { self.id = id }

    /// What the next request shows.
    func credentials(_ signer: SessionSigner?) -> Credentials {
        Credentials(apiToken: Place.apiSecret, webAuthToken: token ?? signer?.token(sessionID: id, issued: 1))
    }

    /// An answer arrived.
    func take(_ token: String?) { if let token { self.token = token } }
}
