import Admission
import Cluster
import HistoryChecks
import KeyValueStore
import RaftCore
import RecordModel
import Service

/// One user of the cluster: asks one thing after the other, on any node, and tells the recorder what it asked and was
/// answered.
///
/// A request whose outcome is unknown is sent again under the same idempotency key, as production's clients do, until
/// there is an answer; some writes go without a key and stay unknown.
final class Client: @unchecked Sendable {
    // Touched on the simulation's thread only.
    let number: Int
    let world: World
    let recorder: Recorder
    let nodes: [SimulatedNode]
    let executor: SimulatedExecutor
    /// By account.
    private let sessions: [UserSession]
    /// Where its next request goes.
    private var home: Int
    /// The last change tag it saw of each record, by zone and name, and of each key, by store and key.
    var known: [String: Version] = [:]
    var feeds: [Int: ZoneFeed] = [:]
    var storeFeeds: [Int: StoreFeed] = [:]
    var notebook: Notebook
    var notebookSerial = 0
    var hoard: Hoard
    var hoardSerial = 0
    var keyring = Keyring(of: "", in: .development, isWide: false)
    var keyringSerial = 0
    var office: Office
    var officeSerial = 0
    var purgedOffices: [Office] = []
    var tokenBook: TokenBook?
    var watchbook: Watchbook
    var watchbookSerial = 0
    /// Nil where it lost sight of too many.
    var workbook: Workbook?
    var workbookSerial = 0
    /// Users who were deleted: nothing is left of what they subscribed to.
    var deletedUsers: [Watchbook] = []
    private var hasFlooded = false
    /// Until when limits may change by what it asked for.
    var limitsDoubtfulUntil: UInt64 = 0
    /// Requests that were answered, and may come again.
    var past: [PastRequest] = []
    /// The first ones of each kind.
    var early: [String: [PastRequest]] = [:]
    private var hasFilledStore = false
    private var hasSigned = false
    /// Where the feed of the database goes on.
    var databaseToken: String?
    private var writes = 0
    /// Of each value that it saves.
    var padding = 0
    private var keys: UInt64 = 0
    /// What it does for a while, one thing right after the other.
    private var rush: Rush?
    /// Before this it begins nothing, unless it is made to hurry.
    private var restsUntil: UInt64 = 0
    private var pause: Sleep?
    /// Why it last got no answer that settles something.
    private(set) var trouble = ""
    /// Whether it stops after what it is at.
    var isEnding = false
    private(set) var hasEnded = true

    /// A time of many requests.
    struct Rush {
        var until: UInt64
        /// Where, and what for; nil for anything anywhere.
        var aim: Aim?
    }

    /// Reading or writing one zone at one node, or asking it as often as can be.
    struct Aim {
        var node: Int
        var zone: Int
        var isReading: Bool
        var isPressing = false
        /// Whether it saves without idempotency keys.
        var isKeyless = false
        /// By how many bytes what it saves is longer.
        var padding = 0
        /// Whether the node led the zone's group and another one does.
        var isDeposed: () -> Bool = { false }
    }

    /// A copy of a zone, and where its feed goes on.
    struct ZoneFeed {
        var copy = FeedCopy<[String: String]>()
        var token: String?
    }

    /// A copy of a store, and where its feed goes on.
    struct StoreFeed {
        var copy = FeedCopy<String>()
        var token: String?
    }

    init(number: Int, world: World, recorder: Recorder, nodes: [SimulatedNode]) {
        self.number = number
        self.world = world
        self.recorder = recorder
        self.nodes = nodes
        executor = SimulatedExecutor(world: world, process: nil)
        sessions = Place.accounts.map { UserSession(Place.sessionID(of: $0, client: number)) }
        home = world.random(0...(nodes.count - 1))
        notebook = Notebook(client: number, serial: 0)
        hoard = Hoard(client: number, serial: 0)
        watchbook = Watchbook(client: number, serial: 0)
        workbook = Workbook(client: number, serial: 0, versionsKept: Int(nodes[0].options.limits.versionsKept))
        office = Office(client: number, serial: 0)
    }

    func start(thinkMillisecondsMax: UInt64) {
        hasEnded = false
        executor.start { [self] in
            while !isEnding {
                await think(thinkMillisecondsMax)
                if isEnding { break }
                if recorder.isSetUp { await act() }
            }
            hasEnded = true
        }
    }

    /// Asks as much as it can for a while, from now on.
    func hurry(for nanoseconds: UInt64, aim: Aim? = nil) {
        rush = Rush(until: world.now + nanoseconds, aim: aim)
        restsUntil = 0
        pause?.end()
    }

    /// Asks nothing for a while.
    func rest(for nanoseconds: UInt64) { restsUntil = world.now + nanoseconds }

    private func think(_ millisecondsMax: UInt64) async {
        if let rush, rush.until <= world.now { self.rush = nil }
        var length = world.milliseconds(1...(rush == nil ? millisecondsMax : 40))
        while length > 0 {
            let pause = Sleep()
            self.pause = pause
            try? await pause.wait { [length] in world.schedule(after: length, .client, for: nil, $0) }
            self.pause = nil
            length = restsUntil > world.now ? restsUntil - world.now : 0
        }
    }

    /// Does something on its own, then calls back.
    func perform(_ body: @escaping @Sendable (Client) async -> Void) {
        hasEnded = false
        executor.start { [self] in
            await body(self)
            hasEnded = true
        }
    }

    func sleep(_ nanoseconds: UInt64) async {
        try? await Sleep().wait { world.schedule(after: nanoseconds, .client, for: nil, $0) }
    }

    private func act() async {
        if let aim = rush?.aim {
            home = aim.node - 1
            if aim.isPressing { return await press() }
            padding = aim.padding
            defer { padding = 0 }
            guard aim.isReading else { return await save(in: aim.zone, isKeyless: aim.isKeyless) }
            let answers = recorder.answers
            await lookUpAll(in: aim.zone)
            // Answered, by the node that was asked first.
            if recorder.answers > answers, home == aim.node - 1, aim.isDeposed() { world.met(.readUnderDeposedLeader) }
            return
        }
        if nodes[0].options.hasFlood, number == 2, !hasFlooded {
            hasFlooded = true
            return await floodNotifications()
        }
        if nodes[0].options.hasFullStore, number == 3, !hasFilledStore {
            hasFilledStore = true
            await wearOutKeyring()
            return await fillStore()
        }
        if number == nodes[0].options.clients, !hasSigned, world.chance(5) {
            hasSigned = true
            return await signForSeveralLeaders()
        }
        if number == 2, let receiver = nodes[0].receiver, world.chance(5) {
            return await changeWebhook(of: receiver)
        }
        if recorder.files.isUsed, world.chance(25) { return await useFiles() }
        switch world.random(0...188) {
        case 0..<34: await save()
        case 34..<44: await saveBatch()
        case 44..<52: await delete()
        case 52..<64: await lookUp()
        case 64..<71: await query()
        case 71..<81: await followFeed()
        case 81..<87: await setKeys()
        case 87..<90: await readKeys()
        case 90..<92: await followStore()
        case 96..<98: await useDirectory()
        case 98: await world.chance(50) ? endSession() : endSessionFarAway()
        case 99: await changeZone()
        case 100..<115: await useNotebook()
        case 115..<118: await tryCredentials()
        case 118..<142: await useWatchbook()
        case 142..<149: await repeatPast()
        case 149..<151: await changeUnheard()
        case 151..<165: await useWorkbook()
        case 92..<96, 165..<172: await useKeyring()
        case 172..<177: await useOffice()
        case 177..<183: await useTokenBook()
        default: await useHoard()
        }
    }

    /// Another value than every other write's.
    func newValue() -> String {
        writes += 1
        return "c\(number)-\(writes)" + String(repeating: "x", count: padding)
    }

    /// An `Idempotency-Key`, dated as clients do it by their own clocks, which are right.
    func newKey() -> String {
        keys += 1
        return UUIDv7(
            milliseconds: world.wallMilliseconds - 60_000, random: (UInt64(number), keys)
        ).text
    }

    /// Goes to another node, if there is one.
    func moveOn() { home = world.random(0...(nodes.count - 1)) }

    /// Sends the next request to a node.
    func goTo(_ node: Int) { home = node - 1 }

    // MARK: Asking

    /// Asks until there is an answer that settles it, at one node after the other.
    /// - Parameters:
    ///   - repeats: whether the request may be sent again when its outcome is unknown.
    ///   - triesMax: after which nothing was learnt.
    /// - Returns: the answer and whether an earlier try may have been answered, too; nil with whether something may
    ///   have been done.
    func ask<Value: Sendable>(
        repeats: Bool, triesMax: Int = 25, account: Int = 0,
        _ body: @escaping @Sendable (Visit) async throws(RequestFailure) -> Value
    ) async -> Asked<Value> {
        await ask(repeats: repeats, triesMax: triesMax, as: sessions[account], body)
    }

    func ask<Value: Sendable>(
        repeats: Bool, triesMax: Int, as session: UserSession,
        _ body: @escaping @Sendable (Visit) async throws(RequestFailure) -> Value
    ) async -> Asked<Value> {
        var isUncertain = false
        for attempt in 1...triesMax {
            let result = await ServerCall.make(to: nodes[home], as: session, recorder, body)
            if let reason = result.reason {
                trouble = "try \(attempt) of \(triesMax) at node \(home + 1): \(reason)"
                world.note("  client \(number): \(trouble)")
            }
            switch result {
            case .value(let value):
                if isUncertain { world.met(.repeatedRequest) }
                return .answered(value, isFirst: !isUncertain)
            case .refused: break
            case .unknown:
                isUncertain = true
                if !repeats { return .nothing(mayHaveBeenDone: true) }
            case .failed(let failure) where failure.error.detail == .idempotencyKey && recorder.areMostClocksWrong():
                // Where most clocks are wrong, a right date is refused; nothing was done.
                break
            case .failed(let failure): return .failed(failure)
            }
            home = world.random(0...(nodes.count - 1))
            await sleep(world.milliseconds(50...UInt64(min(200 * attempt, 3_000))))
        }
        return .nothing(mayHaveBeenDone: isUncertain)
    }

    /// Asks a node whether the container's rate lets a request in, for as long as it hurries.
    private func press() async {
        while let rush, let aim = rush.aim, aim.isPressing, rush.until > world.now, !isEnding {
            let node = nodes[aim.node - 1]
            _ = await ServerCall.make(to: node, as: sessions[0], recorder) { visit throws(RequestFailure) in
                try await visit.enter { _ in }
            }
            recorder.judgeShares(of: .requests)
            await sleep(world.milliseconds(1...20))
        }
    }

    enum Asked<Value: Sendable>: Sendable {
        case answered(Value, isFirst: Bool)
        /// The request was refused as a whole.
        case failed(RequestFailure)
        case nothing(mayHaveBeenDone: Bool)
    }
}
