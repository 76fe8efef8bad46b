import Directory
import HistoryChecks
import KeyValueStore
import RecordModel

/// A user who subscribes to changes and follows the log of notifications, with what the user's one client knows of it.
final class Watchbook: @unchecked Sendable {
    // Touched on the simulation's thread only.
    typealias Zone = WatchedHistory.Zone

    static let zoneNames = ["watched0", "watched1", "watched2"]
    /// Comes and goes.
    static let passingName = "watchedNow"
    /// The same for all users: one user's devices are not another's.
    static let devices = ["phone", "laptop"]

    let accountID: String
    let user: String
    /// Whether it is known what was done: if not, the client goes on as another user.
    var isUsed = true
    /// Whether its zones are there.
    var isMade = false
    var isPassingThere = false
    var twin: NotificationTwin
    /// Subscriptions that are there, as far as is known.
    var live: [String: NotificationTwin.Subscription] = [:]
    /// Those of whose requests one may be done later.
    var doubtful: Set<String> = []
    /// Deleted ones whose names may be used again.
    var free: [String] = []
    private var serial = 0
    /// What the records hold that are there.
    var records: [Zone: [String: Note]] = [:]
    /// Names of deleted records, which may be used once more.
    var gone: [Zone: [String]] = [:]
    /// Names that are used for the second time.
    var reborn: Set<String> = []
    /// By device; the empty one reads everything.
    var readers: [String: Reader] = [:]
    /// What was shown under each number.
    private var shown: [Int64: [UInt8]] = [:]

    /// Subscriptions that end with their zone, some time after its deletion was answered.
    var ending: Set<String> = []
    /// Whether the user may read what others made of the type that a role may read; nil where nobody knows.
    var isReviewer: Bool? = false
    /// Whether the log may have entries that the user may not read.
    var mayHaveHidden = false
    /// Whether a reader may be shown less than the whole log.
    var mayMiss: Bool { mayHaveHidden && isReviewer != true }
    var courier: Courier?

    struct Note: Sendable {
        var kind: String?
        var value: String
        var type = Place.type
        var content = WatchedContent()
        var version: Version?
        /// Nil is the user.
        var creator: String?
    }

    /// A copy of the log, and where it goes on.
    struct Reader: Sendable {
        var token: String?
        var last: Int64 = 0
        var notices: [NotificationTwin.Notice] = []
        /// Where it was before, to go back to.
        var earlier: (token: String, last: Int64)?
    }

    init(client: Int, serial: Int) {
        accountID = "watcher\(client)x\(serial)"
        user = Place.user(accountID)
        twin = NotificationTwin(user: user)
    }

    var privateDatabase: DatabaseKey {
        DatabaseKey(container: Place.container, environment: .development, scope: .private, owner: user)
    }

    static let publicDatabase = DatabaseKey(
        container: Place.container, environment: .development, scope: .public, owner: DatabaseKey.publicOwner)

    static let publicZone = Zone(owner: nil, name: ZoneKey.defaultZoneName)

    var store: StoreKey { StoreKey(container: Place.container, environment: .development, user: user) }

    func zone(_ name: String) -> Zone { Zone(owner: user, name: name) }

    /// A name that was not used before.
    func newName(_ prefix: String) -> String {
        serial += 1
        return "\(prefix)\(serial)"
    }

    /// Something was shown under a number.
    /// - Returns: whether it is what was shown there before.
    func see(_ payload: [UInt8], at sequence: Int64) -> Bool {
        if let before = shown[sequence] { return before == payload }
        shown[sequence] = payload
        return true
    }
}

/// A page of the log of notifications.
struct NotificationPage {
    var entries: [(notice: NotificationTwin.Notice, payload: [UInt8])] = []
    var token: String
    var hasMore: Bool

    /// - Parameter user: whose log it is.
    init(json bytes: [UInt8], of user: String) throws(UnexpectedAnswer) {
        guard let json = try? JSONParser.parse(bytes), let list = json["notifications"]?.array,
            let token = json["syncToken"]?.string
        else { throw UnexpectedAnswer("no page of notifications: \(String(decoding: bytes, as: UTF8.self))") }
        self.token = token
        hasMore = json["moreComing"] == .bool(true)
        for element in list {
            guard case .integer(let sequence)? = element["seq"], let payload = element["payload"] else {
                throw UnexpectedAnswer("no notification: \(element)")
            }
            var writer = JSONWriter()
            writer.value(payload)
            entries.append((try NotificationTwin.Notice(sequence, payload, of: user), writer.bytes))
        }
    }
}

extension NotificationTwin.Notice {
    /// A notification as readers get it.
    /// - Parameter user: whose log it is.
    init(_ sequence: Int64, _ payload: JSONValue, of user: String) throws(UnexpectedAnswer) {
        let kinds: [NotificationTwin.Subscription.Kind] = [.query, .zone, .database]
        guard let ck = payload["ck"], ck["ckuserid"]?.string == user,
            ck["cid"]?.string == Place.container || ck["p"] == .integer(1),
            let kind = kinds.first(where: { ck[$0.rawValue] != nil }), let told = ck[kind.rawValue],
            let id = told["sid"]?.string, case .integer(let database)? = told["dbs"],
            let zone = told["zid"]?.string, told["zoid"]?.string == user
        else { throw UnexpectedAnswer("notification \(sequence) of \(user) is \(payload)") }
        self.init(
            sequence: sequence, id: id, kind: kind,
            zone: WatchedHistory.Zone(owner: database == 2 ? nil : user, name: zone))
        changeID = ck["nid"]?.string ?? ""
        self.payload = payload.without("nid", in: "ck").inOrder
        guard kind == .query else { return }
        record = told["rid"]?.string
        if case .integer(let number)? = told["fo"] { event = WatchedHistory.Event(rawValue: Int(number)) }
        value = told["af"]?[Place.valueField]?.string
        if told["af"] == nil, event != .delete { value = payload["aps"]?["alert"]?["loc-args"]?.array?.first?.string }
    }
}

extension NotificationTwin.Subscription {
    /// The subscription as a client sends it.
    var form: String {
        let info = #""notificationInfo":\#(looks.json.inOrder)"#
        let place = zone.map { #","zoneID":{"zoneName":"\#($0)"}"# } ?? ""
        let ofType = type.map { #","recordType":"\#($0)""# } ?? ""
        switch kind {
        case .database: return #"{"subscriptionID":"\#(id)","subscriptionType":"database"\#(ofType),\#(info)}"#
        case .zone: return #"{"subscriptionID":"\#(id)","subscriptionType":"zone"\#(place)\#(ofType),\#(info)}"#
        case .query:
            let firing = #""firesOn":[\#(eventNames.joined(separator: ","))],"firesOnce":\#(firesOnce)"#
            return #"{"subscriptionID":"\#(id)","subscriptionType":"query"\#(place),\#(query),\#(firing),\#(info)}"#
        }
    }

    private var query: String {
        let filters = filters.map(\.form).joined(separator: ",")
        return #""query":{"recordType":"\#(type ?? "")","filterBy":[\#(filters)]}"#
    }

    private var eventNames: [String] {
        WatchedHistory.Event.allCases.filter(events.contains).map { #""\#($0)""# }
    }

    /// The subscription as a list has it, in order.
    var listed: String {
        guard var json = try? JSONParser.parse(Array(form.utf8)), case .object(var members) = json else { return form }
        // A list says what was sent, of which kind a zone is, and of a query whether it looks at all zones.
        if kind == .query { members.append(.init("zoneWide", .bool(zone == nil))) }
        for place in members.indices where members[place].key == "zoneID" {
            members[place].value = .object([
                .init("zoneName", .string(zone ?? "")), .init("zoneType", .string("REGULAR_CUSTOM_ZONE")),
            ])
        }
        json = .object(members)
        return json.inOrder
    }
}
