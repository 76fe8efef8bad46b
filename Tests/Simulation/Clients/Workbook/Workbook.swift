import Authorization
import Directory
import RecordModel

/// Records that one client alone changes, as several users: zones of a private database, and records of a type of its
/// own in the public one. It says of each request what must come of it, and of each read what it must find.
struct Workbook: Sendable {
    static let container = "iCloud.workbook"
    static let schemaKey = SchemaKey(container: container, environment: .development)
    /// Of one client, one after the other, where it loses sight of what there is.
    static let serialsMax = 2
    static let editor = "editor"

    /// A record, or an earlier version of one.
    struct Entry: Hashable, Sendable {
        var name: String
        var fields: [String: FieldValue]
        var tag: ChangeTag
        var created: Stamp
        var modified: Stamp
    }

    struct Earlier: Hashable, Sendable {
        var entry: Entry
        var isDeletion: Bool
        var replacedBy: String
    }

    /// Who asks.
    struct Person: Hashable, Sendable {
        var caller: Caller
        init(_ user: String?, roles: [String] = []) { caller = Caller(user: user, customRoles: roles) }
        private init(_ caller: Caller) { self.caller = caller }
        static let administrator = Person(.administrator)
    }

    struct Zone: Sendable {
        let key: ZoneKey
        /// What names of records begin with; none is in two zones.
        let prefix: String
        var isThere = false
        var incarnation: UInt64 = 0
        /// How many changes there were; known of custom zones.
        var sequence: UInt64 = 0
        var entries: [String: Entry] = [:]
        /// When records were deleted that were not made again since. Which of those comes first that went together is
        /// not known before the feed told.
        var tombstones: [String: ClosedRange<UInt64>] = [:]
        /// What each record was before, the newest first.
        var earlier: [String: [Earlier]] = [:]
        /// Deleted records with what referred to them then, which a job takes away.
        var jobs: [(target: String, sources: Set<String>)] = []
        /// Records that go in a while, with those that were deleted.
        var doomed: Set<String> = []
        /// Records that did not go with deleted ones, as others relied on them.
        var spared: Set<String> = []
        var feed = Feed()
        /// A token of an earlier life.
        var tokenBefore: String?
        /// Whether it changed since the feed of its database was last followed to its end.
        var hasNews = false
        /// Whether the feed of the database told of it.
        var wasTold = false

        var isCustom: Bool { key.isAtomic }
        var isPublic: Bool { key.database.scope == .public }
        var names: [String] { (0..<Workbook.namesMax).map { "\(prefix)\($0)" } }
    }

    /// Where the feed of a zone goes on.
    struct Feed: Sendable {
        var token: String?
        /// What is at or before this is known; in a walk backwards what is at or after it.
        var position: UInt64 = 0
        var isReverse = false
        /// What the zone had come to when a walk backwards began.
        var high: UInt64?
        /// Whether the walk began without a token: then tombstones may have gone before.
        var isFirst = true
    }

    static let namesMax = 7

    let type: String
    /// As what a record is not; it has the same fields and grants.
    let otherType: String
    let owner: Person
    let grants: [Grant]
    /// Who uses the public database.
    let people: [Person]
    /// Two custom ones, and the default zones of the private and of the public database.
    var zones: [Zone]
    /// The tags of users' own records, by user.
    var profiles: [String: ChangeTag] = [:]
    /// Of the private database.
    var databaseToken: String?
    /// Whether its feed is followed from the beginning: then it may tell of zones that were deleted before.
    var isDatabaseNew = true
    let versionsKept: Int

    init(client: Int, serial: Int, versionsKept: Int) {
        type = Self.type(client, serial)
        otherType = Self.otherType(client)
        grants = Self.grants[client % Self.grants.count]
        let user = "_worker\(client)x\(serial)"
        owner = Person(user)
        people = [
            Person(user), Person("\(user)b", roles: [Self.editor]), Person("\(user)c"), Person(nil), .administrator,
        ]
        self.versionsKept = versionsKept
        let mine = DatabaseKey(
            container: Self.container, environment: .development, scope: .private, owner: user)
        let all = DatabaseKey(
            container: Self.container, environment: .development, scope: .public, owner: DatabaseKey.publicOwner)
        zones = [
            Zone(key: ZoneKey(database: mine, name: "pages\(client)"), prefix: "a"),
            Zone(key: ZoneKey(database: mine, name: "leaves\(client)"), prefix: "b"),
            Zone(key: ZoneKey(database: mine, name: ZoneKey.defaultZoneName), prefix: "c", isThere: true),
            Zone(
                key: ZoneKey(database: all, name: ZoneKey.defaultZoneName), prefix: "w\(client)x\(serial)n",
                isThere: true),
        ]
    }

    private static func type(_ client: Int, _ serial: Int) -> String { "Page\(client)x\(serial)" }
    private static func otherType(_ client: Int) -> String { "Other\(client % grants.count)" }

    /// What a type grants; each client has one of these.
    private static let grants: [[Grant]] = [
        [
            Grant(role: "_world", permissions: .read), Grant(role: "_icloud", permissions: .create),
            Grant(role: "_creator", permissions: .write), Grant(role: editor, permissions: .write),
        ],
        [
            Grant(role: "_icloud", permissions: .create), Grant(role: "_creator", permissions: [.read, .write]),
            Grant(role: editor, permissions: .read),
        ],
        [
            Grant(role: "_icloud", permissions: [.create, .read]), Grant(role: "_creator", permissions: .write),
            Grant(role: editor, permissions: [.create, .read, .write]),
        ],
    ]

    static func schema(clients: Int) -> Schema {
        var types = grants.indices.map {
            RecordType(name: otherType($0), fields: fieldDefinitions, grants: grants[$0])
        }
        for client in 1...max(clients, 1) {
            for serial in 0..<serialsMax {
                types.append(
                    RecordType(
                        name: type(client, serial), fields: fieldDefinitions, grants: grants[client % grants.count]))
            }
        }
        return Schema(roles: [editor], types: [.users] + types)
    }

    static func directoryCommands(_ limits: ContainerLimits) -> [DirectoryCommand] {
        var commands: [DirectoryCommand] = [.createContainer(name: container, time: SimulatedClock.wallOrigin)]
        let kept = [ContainerLimit.recordVersionDays, .recordVersionsMax].filter { limits[$0] != $0.standard }
        if !kept.isEmpty { commands.append(.setLimits(container: container, kept.map { LimitChange($0, limits[$0]) })) }
        return commands
    }

    // MARK: Rights

    /// What somebody may do with records of a zone.
    func permissions(_ person: Person, in zone: Zone, isCreator: Bool) -> Permissions {
        guard zone.isPublic else { return person == owner ? [.create, .read, .write] : [] }
        if person == .administrator { return [.create, .read, .write] }
        return grants.reduce(into: []) { sum, grant in
            let isHeld =
                switch grant.role {
                case "_world": true
                case "_icloud": person.caller.user != nil
                case "_creator": isCreator && person.caller.user != nil
                default: person.caller.roles.contains(grant.role)
                }
            if isHeld { sum.formUnion(grant.permissions) }
        }
    }

    func permissions(_ person: Person, _ entry: Entry, in zone: Zone) -> Permissions {
        permissions(person, in: zone, isCreator: entry.created.user == person.caller.stampName)
    }

    func mayRead(_ person: Person, _ entry: Entry, in zone: Zone) -> Bool {
        permissions(person, entry, in: zone).contains(.read)
    }
}
