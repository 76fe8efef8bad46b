import Foundation

enum LoadOperation: String, Sendable, CaseIterable {
    case create, update, read, query, sync, transaction
    case kvSet = "kv-set"
    case kvGet = "kv-get"
    case assetUpload = "asset-upload"
    case assetDownload = "asset-download"

    var needsRecords: Bool { self == .update || self == .read || self == .query }

    var isKeyValue: Bool { self == .kvSet || self == .kvGet }

    var isAsset: Bool { self == .assetUpload || self == .assetDownload }

    /// The path after `/database/1/...` or `/kv/1/...`; of files, where their URLs come from.
    var action: String {
        switch self {
        case .create, .update, .transaction: "records/modify"
        case .read: "records/lookup"
        case .query: "records/query"
        case .sync: "changes/zone"
        case .kvSet: "set"
        case .kvGet: "get"
        case .assetUpload: "assets/upload"
        case .assetDownload: "records/lookup"
        }
    }

    /// Bytes that a right answer holds: one without them counts as an error, not as a fast success.
    var proof: BytePattern? {
        switch self {
        case .create, .update, .transaction, .read, .query: BytePattern("\"recordChangeTag\"")
        case .sync: BytePattern("\"syncToken\"")
        case .kvGet: BytePattern("\"value\":")
        case .assetUpload: BytePattern("\"receipt\"")
        // Of a file the length is looked at.
        case .kvSet, .assetDownload: nil
        }
    }
}

/// The operations of a run, each as often as its weight says.
struct LoadMix: Hashable, Sendable {
    let name: String
    var choice: WeightedChoice<LoadOperation>

    var operations: [LoadOperation] { choice.values }
    var needsRecords: Bool { operations.contains(where: \.needsRecords) }
    var hasRecords: Bool { operations.contains { !$0.isKeyValue } }
    var hasKeyValues: Bool { operations.contains(where: \.isKeyValue) }
    var hasAssets: Bool { operations.contains(where: \.isAsset) }

    init(_ operation: LoadOperation) {
        name = operation.rawValue
        choice = WeightedChoice([(operation, 1)])
    }

    private init(name: String, choice: WeightedChoice<LoadOperation>) {
        self.name = name
        self.choice = choice
    }

    /// CloudKit as its makers described it in 2019 (the Record Layer paper): transactions of 8.5 records in the mean, 7
    /// KB in the median and 36 KB at the 99th percentile, queries that read about 32 records, single gets. The paper
    /// does not say how often each is; the shares are ours.
    static let cloudKit2019 = LoadMix(
        name: "cloudkit-2019", choice: WeightedChoice([(.transaction, 30), (.read, 50), (.query, 20)]))

    /// Reads `cloudkit-2019`, an operation, or operations with weights such as `create:1,update:2,read:7`; nil for
    /// anything else.
    init?(argument: String) {
        if argument == Self.cloudKit2019.name {
            self = .cloudKit2019
            return
        }
        guard let choice = WeightedChoice<LoadOperation>(argument: argument) else { return nil }
        self.init(name: argument, choice: choice)
    }
}

/// The seeded generator of a run (SplitMix64): the same seed gives the same load on every machine.
struct LoadRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, and without, 1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// A whole number from 0 up to, and without, `bound`; the bias is below one in 2^40 for what a run asks.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// Things to draw from, each as often as its weight says.
struct WeightedChoice<Value: Hashable & Sendable>: Hashable, Sendable {
    let values: [Value]
    let weights: [Double]
    private let total: Double

    /// - Parameter shares: at least one; weights are above 0 and finite.
    init(_ shares: [(Value, Double)]) {
        precondition(!shares.isEmpty && shares.allSatisfy { $0.1 > 0 && $0.1.isFinite }, "weights above 0 are needed")
        values = shares.map(\.0)
        weights = shares.map(\.1)
        total = weights.reduce(0, +)
    }

    func draw(_ random: inout LoadRandom) -> Int {
        guard values.count > 1 else { return 0 }
        var point = random.unit() * total
        for (index, weight) in weights.enumerated() {
            point -= weight
            if point < 0 { return index }
        }
        return values.count - 1
    }
}

extension WeightedChoice where Value: RawRepresentable<String> {
    /// Reads `name` or `name:3,other:1`.
    /// - Returns: nil where a name is unknown or comes twice, or a weight is not a number above 0.
    init?(argument: String) {
        var shares: [(Value, Double)] = []
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ":", omittingEmptySubsequences: false)
            guard (1...2).contains(words.count), let value = Value(rawValue: String(words[0])) else { return nil }
            guard let weight = words.count == 2 ? Double(words[1]) : 1, weight > 0, weight <= 1_000_000 else {
                return nil
            }
            guard !shares.contains(where: { $0.0 == value }) else { return nil }
            shares.append((value, weight))
        }
        self.init(shares)
    }
}

/// How large CloudKit's transactions are, as the Record Layer paper of 2019 has it: 8.5 records in the mean, and bytes
/// with a median of 7 KB and a 99th percentile of 36 KB.
///
/// The paper gives these three figures and no distribution. Ours: 1 to 16 records, each as likely, and log-normal
/// bytes.
enum TransactionSizes {
    static let recordsMax = 16
    static let medianBytes = 7_000.0
    static let p99Bytes = 36_000.0
    /// No more than this in one request, so that the tail stays inside what a request may hold.
    private static let bytesMax = 200_000.0

    static func records(_ random: inout LoadRandom) -> Int { 1 + random.below(recordsMax) }

    static func bytes(_ random: inout LoadRandom) -> Int {
        // The 99th percentile of the normal distribution is at 2.3263 standard deviations.
        let deviation = log(p99Bytes / medianBytes) / 2.3263
        return Int(min(bytesMax, medianBytes * exp(deviation * normal(&random))))
    }

    /// A draw from the normal distribution (Box and Muller 1958).
    private static func normal(_ random: inout LoadRandom) -> Double {
        let radius = (-2 * log(1 - random.unit())).squareRoot()
        return radius * cos(2 * .pi * random.unit())
    }
}
