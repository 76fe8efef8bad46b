import Admission
import HistoryChecks
import RaftCore
import RecordModel

/// What all clients saw, for each zone and store by itself.
final class Recorder: @unchecked Sendable {
    // Touched on the simulation's thread only.
    struct Zone {
        let key: ZoneKey
        let group: GroupID
        var history = History<ZoneModel.Operation, ZoneModel.Outcome>()
    }

    struct Store {
        /// Whose it is.
        let account: String
        var history = History<KeyValueModel.Operation, KeyValueModel.Outcome>()
    }

    private let world: World
    var zones: [Zone]
    var stores: [Store]
    /// Containers that were made, in order.
    var containers: [String] = []
    private var sightings = Sightings<[String: String]>()
    /// Answers that no client may get.
    private(set) var violations: [String] = []
    /// Requests that were answered.
    private(set) var answers = 0
    let files: FileBook
    /// Whether half of the clocks or more are wrong, or were a moment ago: then no node can tell what is the time.
    var areMostClocksWrong: () -> Bool = { false }
    /// Whether at most one clock at a time was set wrong for so long.
    var wereClocksRight: (_ nanoseconds: UInt64) -> Bool = { _ in true }
    /// Whether nothing went wrong for so long by which nodes may not hear each other.
    var wasCalm: (_ nanoseconds: UInt64) -> Bool = { _ in false }
    /// Has one node not hear the directory's leader for a while.
    /// - Returns: a node that hears both; nil where that cannot be done.
    var hideDirectory: () -> Int? = { nil }
    /// Whether the directory has what clients need.
    var isSetUp = false { didSet { setUpSince = world.now } }
    private var setUpSince: UInt64 = 0
    /// Asks for leave to disturb the nodes for a while; refused while nothing may go wrong.
    var mayDisturb: (_ nanoseconds: UInt64) -> Bool = { _ in false }
    /// Has another node lead a group in a moment.
    var depose: (GroupID) -> Void = { _ in }
    /// Whether shards may have forgotten keys of the last 24 hours, as most clocks were wrong by more.
    var mayForgetKeys: () -> Bool = { false }
    /// Whether the ledger of the container's rate came to another leader lately.
    var hasNewLedger: () -> Bool = { false }
    /// The shares of the container's rate in force at all nodes, in requests a second.
    var sharesInForce: (RateKind) -> Double = { _ in 0 }
    /// What the groups that answered said last of their whole states.
    var stateHashes: [GroupID: [UInt8]] = [:]
    /// Tokens that were replaced.
    var keptTokens: [KeptToken] = []
    var reusedSessions: [ReusedSession] = []
    /// By their last tokens.
    var endedSessions: [UserSession] = []
    private var rates: [RateKind: RateWatch] = [:]
    /// What the container may use.
    var limits = ContainerLimits()
    var hoardLimits = HoardLimits()
    var watched = WatchedHistory()
    /// Public records that every client may change, while no other one does, and deleted ones.
    var board: [BoardNote] = []
    /// What all clocks show beyond true time, in milliseconds.
    var commonOffset: Int64 = 0

    init(world: World, zones: [Zone], stores: [Store], files: FileBook) {
        self.files = files
        self.world = world
        self.zones = zones
        self.stores = stores
    }

    /// A request was answered, and what it said was judged.
    func answered() { answers += 1 }

    func met(_ situation: Situation) { world.met(situation) }

    private var time: Int64 { Int64(world.now / World.millisecond) }

    func violated(_ text: String) {
        if violations.count < 20 { violations.append("at \(time) ms \(text)") }
        world.note("VIOLATION \(text)")
    }

    /// A request was let in by a node.
    func wasAccepted(_ kind: RateKind) {
        let limit = RateWatch.limit(of: kind, limits)
        let slack = hasNewLedger() ? max(1, limit * RateWatch.newLedger) : 0
        if let excess = rates[kind, default: RateWatch()].take(at: world.now, limit: limit, slack: slack) {
            violated(excess)
        }
        judgeShares(of: kind)
    }

    /// All nodes together hold no more of a rate than there is.
    func judgeShares(of kind: RateKind) {
        let limit = RateWatch.limit(of: kind, limits)
        // What was lent before the limit was set may be in force for a moment.
        guard isSetUp, world.now > setUpSince + 5 * World.second else { return }
        let shares = sharesInForce(kind)
        if shares > limit * RateWatch.sharesMax {
            violated("nodes hold shares of \(shares) requests a second, and all may have \(limit)")
        }
    }

    /// A request was refused because the container's rate was met.
    func wasThrottled(_ kind: RateKind) { world.met(.throttledRequest) }

    func begin(zone: Int, _ operation: ZoneModel.Operation, by client: Int) -> Call<
        ZoneModel.Operation, ZoneModel.Outcome
    > {
        Call(id: zones[zone].history.begin(operation, client: client, at: time))
    }

    func begin(
        store: Int, _ operation: KeyValueModel.Operation, by client: Int
    ) -> Call<KeyValueModel.Operation, KeyValueModel.Outcome> {
        Call(id: stores[store].history.begin(operation, client: client, at: time))
    }

    /// A call that was begun.
    struct Call<Operation: Sendable, Outcome: Sendable> {
        let id: History<Operation, Outcome>.CallID
    }

    func end(zone: Int, _ call: Call<ZoneModel.Operation, ZoneModel.Outcome>, _ outcome: ZoneModel.Outcome) {
        answers += 1
        zones[zone].history.end(call.id, outcome, at: time)
    }

    func end(store: Int, _ call: Call<KeyValueModel.Operation, KeyValueModel.Outcome>, _ outcome: KeyValueModel.Outcome)
    {
        answers += 1
        stores[store].history.end(call.id, outcome, at: time)
    }

    func withdraw(zone: Int, _ call: Call<ZoneModel.Operation, ZoneModel.Outcome>) {
        zones[zone].history.withdraw(call.id)
    }

    func withdraw(store: Int, _ call: Call<KeyValueModel.Operation, KeyValueModel.Outcome>) {
        stores[store].history.withdraw(call.id)
    }

    /// Zones and stores are as a backup has them, and begin another life.
    func restore(_ zones: [Zone], _ stores: [Store], as incarnation: UInt64) {
        (self.zones, self.stores) = (zones, stores)
        for zone in zones.indices {
            end(zone: zone, begin(zone: zone, .restore(incarnation: incarnation), by: 0), .restored)
        }
        for store in stores.indices {
            end(store: store, begin(store: store, .restore(incarnation: incarnation), by: 0), .restored)
        }
    }

    /// Something was shown under a change tag.
    func saw(_ name: String, in place: String, _ version: Version, _ content: [String: String]?, by witness: String) {
        let time = time
        if let clash = sightings.see("\(place)/\(name)", version, content, by: "\(witness) at \(time)") {
            violated(clash)
        }
    }

    func see(_ records: [String: RecordCopy], in zone: Int, by witness: String) {
        for (name, record) in records {
            saw(name, in: zones[zone].key.name, record.version, record.content, by: witness)
        }
    }
}

/// Holds what all nodes let in against the container's rate: over any T seconds at most limit x (T + 1 s).
struct RateWatch {
    /// What was let in beyond the rate, in requests, and when that was.
    private var level = 0.0
    private var time: UInt64 = 0
    /// What of the level is beyond the bound, as the ledger had come to another leader, who does not know of it: until
    /// the container asked for less for as long as that takes.
    private var excess = 0.0

    /// Clocks run at most a hundredth too fast.
    private static let drift = 1.01
    /// The most that all shares come to, as a part of the limit: a tenth more to repay what is saved, and a little that
    /// a new leader lends without knowing all shares.
    static let sharesMax = 1.2
    /// What may be let in besides where the ledger comes to another leader right after all that was saved was given, in
    /// seconds of the limit; a request where that is more.
    static let newLedger = 0.25

    /// Requests a second.
    static func limit(of kind: RateKind, _ limits: ContainerLimits) -> Double {
        return switch kind {
        case .requests: Double(limits.requestsPerSecond(users: 0))
        case .keyValues: Double(limits.keyValueRequestsPerSecond(users: 0))
        case .acting: Double(limits[.actAsRequestsPerSecond])
        }
    }

    /// Counts a request.
    /// - Returns: what is wrong, where too many were let in.
    mutating func take(at now: UInt64, limit: Double, slack: Double) -> String? {
        level = max(0, level - limit * Self.drift * Double(now - time) / Double(World.second))
        excess = min(excess, level)
        level += 1
        time = now
        if slack > 0 { excess = max(excess, min(level - limit, slack)) }
        guard level > limit + excess else { return nil }
        defer { (level, excess) = (0, 0) }
        return "nodes let in \(level - limit) requests more than \(limit) a second allow"
    }
}
