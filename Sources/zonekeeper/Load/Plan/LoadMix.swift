/// What one request of a run does.
enum LoadOperation: String, Sendable, CaseIterable {
    case create, update, read, query, sync, transaction
    case kvSet = "kv-set"
    case kvGet = "kv-get"

    /// Whether it works on records that must be there first.
    var needsRecords: Bool { self == .update || self == .read || self == .query }

    /// Whether it works on preferences, which need no record type.
    var isKeyValue: Bool { self == .kvSet || self == .kvGet }

    /// The path after `/database/1/...` or `/kv/1/...`.
    var action: String {
        switch self {
        case .create, .update, .transaction: "records/modify"
        case .read: "records/lookup"
        case .query: "records/query"
        case .sync: "changes/zone"
        case .kvSet: "set"
        case .kvGet: "get"
        }
    }

    /// Bytes that a right answer holds: one without them counts as an error, not as a fast success.
    var proof: BytePattern? {
        switch self {
        case .create, .update, .transaction, .read, .query: BytePattern("\"recordChangeTag\"")
        case .sync: BytePattern("\"syncToken\"")
        case .kvGet: BytePattern("\"value\":")
        case .kvSet: nil
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

    /// One operation only.
    init(_ operation: LoadOperation) {
        name = operation.rawValue
        choice = WeightedChoice([(operation, 1)])
    }

    private init(name: String, choice: WeightedChoice<LoadOperation>) {
        self.name = name
        self.choice = choice
    }

    /// CloudKit as its makers described it in 2019 (the Record Layer paper): transactions of 8.5 records in the mean, 7 KB in the
    /// median and 36 KB at the 99th percentile, queries that read about 32 records, single gets. The paper does not say how often
    /// each is; the shares are ours.
    static let cloudKit2019 = LoadMix(
        name: "cloudkit-2019", choice: WeightedChoice([(.transaction, 30), (.read, 50), (.query, 20)]))

    /// Reads `cloudkit-2019`, an operation, or operations with weights such as `create:1,update:2,read:7`; nil for anything else.
    init?(_ text: String) {
        if text == Self.cloudKit2019.name {
            self = .cloudKit2019
            return
        }
        guard let choice = WeightedChoice.parse(text, value: { LoadOperation(rawValue: $0) }) else { return nil }
        self.init(name: text, choice: choice)
    }
}
