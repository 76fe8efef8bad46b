import Foundation
import HeapModule
import RecordModel

enum LoadPace: Hashable, Sendable {
    /// Each of `concurrency` clients sends its next request when the last one was answered.
    case closed(concurrency: Int)
    /// Requests are due by a schedule, whether others were answered or not.
    case open(profile: LoadProfile, spacing: ArrivalSchedule.Spacing, outstandingMax: Int)

    static func open(rate: Double, spacing: ArrivalSchedule.Spacing, outstandingMax: Int) -> LoadPace {
        .open(profile: .constant(rate), spacing: spacing, outstandingMax: outstandingMax)
    }
}

struct LoadPlace: Hashable, Sendable {
    var container: String
    var environment: String
    /// `public` or `private`.
    var database: String
    /// At least one.
    var zones: [String]

    static let defaultZone = ZoneKey.defaultZoneName
}

struct LoadSettings: Sendable {
    var mix: LoadMix
    var pace: LoadPace
    var bound: LoadBound
    var place: LoadPlace
    var recordType = "Load"
    /// Records in each zone that reads, updates and queries choose from.
    var records = 10_000
    var connections: Int
    var seed: UInt64 = 1
    /// Seconds after which a request counts as unanswered.
    var timeoutSeconds = 10
    var nodes = NodePattern.even
    var behaviours = WeightedChoice<ThrottleBehaviour>([(.ignore, 1)])
    var users = 1
    var assetBytes = Self.assetBytesStandard

    static let assetBytesStandard = 1_000_000
}

/// When the requests of an open loop are due: a sequence of offsets from the start that does not wait for answers.
///
/// Even arrivals are computed from their number, so rounding does not add up. Poisson arrivals (independent clients)
/// come from a seed: the same seed gives the same load. Where the rate changes, both are stretched by it.
struct ArrivalSchedule: Sendable {
    enum Spacing: String, Sendable, CaseIterable {
        case poisson, even
    }

    let profile: LoadProfile
    let spacing: Spacing
    let bound: LoadBound
    private var random: LoadRandom
    private var issued = 0
    /// The sum of the gaps so far, in mean gaps.
    private var gaps = 0.0

    init(profile: LoadProfile, spacing: Spacing, bound: LoadBound, seed: UInt64) {
        self.profile = profile
        self.spacing = spacing
        self.bound = bound
        random = LoadRandom(seed: seed)
    }

    /// The next arrival, in nanoseconds after the start and never before the last one; nil after the last one.
    mutating func next() -> UInt64? {
        if let count = bound.count, issued >= count { return nil }
        let seconds: Double
        switch spacing {
        case .even: seconds = profile.time(ofArrivals: Double(issued))
        case .poisson:
            // 1 - u is in (0, 1], so the logarithm is finite.
            gaps += -log(1 - random.unit())
            seconds = profile.time(ofArrivals: gaps)
        }
        if let end = bound.seconds, seconds >= end { return nil }
        issued += 1
        return UInt64(seconds * 1_000_000_000)
    }
}

/// Where a run ends: after a time, after a number of requests, or at whichever comes first. Every run has a bound.
struct LoadBound: Hashable, Sendable {
    let seconds: Double?
    let count: Int?

    /// Ten seconds where nothing was said.
    init(seconds: Double? = nil, count: Int? = nil) {
        self.seconds = seconds == nil && count == nil ? 10 : seconds
        self.count = count
    }
}

enum NodePattern: Hashable, Sendable {
    case even
    case one
    /// All to one node, which is the next one every so many seconds.
    case moving(seconds: Double)

    /// Reads `even`, `one` or `moving:5`; nil for anything else.
    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("even", 1): self = .even
        case ("one", 1): self = .one
        case ("moving", 2):
            guard let seconds = Double(parts[1]), seconds >= 0.001, seconds <= 86_400 else { return nil }
            self = .moving(seconds: seconds)
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .even: "even"
        case .one: "one"
        case .moving(let seconds): "moving:\(seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)")"
        }
    }

    /// - Parameters:
    ///   - turn: number of the request, or of the worker in a closed loop, which stays with its node.
    ///   - nanoseconds: since the start.
    /// - Returns: an index below `count`.
    func target(turn: Int, nanoseconds: UInt64, count: Int) -> Int {
        switch self {
        case .even: turn % count
        case .one: 0
        case .moving(let seconds): Int((Double(nanoseconds) / 1_000_000_000 / seconds).rounded(.down)) % count
        }
    }
}

/// What a client does when it is told to slow down (`THROTTLED`).
enum ThrottleBehaviour: String, Hashable, Sendable, CaseIterable {
    /// Gives this request up and sends the next one as if nothing had been said.
    case ignore
    /// Sends it again exactly when `retryAfter` says.
    case honour
    /// Sends it again after a time of its own that doubles, whatever `retryAfter` says.
    case backOff = "back-off"

    /// The first pause of a client that backs off, and the longest, in nanoseconds.
    static let firstPause: UInt64 = 100_000_000
    static let pauseMax: UInt64 = 10_000_000_000

    /// How long the client waits before it sends a refused request again.
    /// - Parameters:
    ///   - attempt: how often the request was refused before, from 0.
    ///   - retryAfter: nanoseconds, as the refusal said; nil where it said nothing.
    ///   - unit: a random number from 0 to 1: clients that back off wait between half and all of their pause.
    /// - Returns: nil where it is not sent again.
    func pause(attempt: Int, retryAfter: UInt64?, unit: Double) -> UInt64? {
        switch self {
        case .ignore: return nil
        case .honour: return retryAfter
        case .backOff:
            let whole = min(Self.pauseMax, Self.firstPause << UInt64(min(attempt, 10)))
            return whole / 2 + UInt64(Double(whole / 2) * unit)
        }
    }
}

struct DueQueue<Item: Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let due: UInt64
        let order: UInt64
        let item: Item

        static func < (left: Self, right: Self) -> Bool { (left.due, left.order) < (right.due, right.order) }
        static func == (left: Self, right: Self) -> Bool { (left.due, left.order) == (right.due, right.order) }
    }

    private var heap = Heap<Entry>()
    private var added: UInt64 = 0

    var count: Int { heap.count }
    var nextDue: UInt64? { heap.min?.due }

    /// Items of one due time come out as they went in.
    mutating func add(_ item: Item, due: UInt64) {
        heap.insert(Entry(due: due, order: added, item: item))
        added += 1
    }

    /// The earliest item that is due by now; nil when there is none.
    mutating func pop(by now: UInt64) -> (due: UInt64, item: Item)? {
        guard let first = heap.min, first.due <= now else { return nil }
        heap.removeMin()
        return (first.due, first.item)
    }
}
