import ServiceClient

/// The body of one request that can be sent.
struct LoadBody: Hashable, Sendable {
    var bytes: [UInt8]
    /// An index into the zones of the run.
    var zone: Int
}

/// The bodies of one operation, made before the clock starts: a ring, to be sent one after the other and again from the start.
struct LoadBodies: Sendable {
    let operation: LoadOperation
    let ring: [LoadBody]

    /// Keys of preferences; a store has at most 1,024.
    static let keys = 1_000
    /// Enough that no cache of answers would pay, few enough to be made in a moment.
    private static let ringMax = 8_192

    init(_ operation: LoadOperation, of settings: LoadSettings) {
        self.operation = operation
        var maker = Maker(settings)
        let count = operation == .create || operation == .transaction ? 1_024 : Self.ringMax
        ring = (0..<(operation == .sync ? settings.place.zones.count : count)).map { maker.body($0, of: operation) }
    }

    private struct Maker {
        let records: [LoadRecords]
        let count: Int
        var random: LoadRandom

        init(_ settings: LoadSettings) {
            records = settings.place.zones.map { LoadRecords(type: settings.recordType, zone: $0) }
            count = settings.records
            random = LoadRandom(seed: settings.seed &+ 0x0B0D_1E5)
        }

        mutating func body(_ number: Int, of operation: LoadOperation) -> LoadBody {
            let zone = operation == .sync ? number : records.count == 1 ? 0 : random.below(records.count)
            return LoadBody(bytes: bytes(number, of: operation, records[zone]), zone: zone)
        }

        private mutating func bytes(_ number: Int, of operation: LoadOperation, _ records: LoadRecords) -> [UInt8] {
            switch operation {
            case .create: return records.create(number)
            case .update: return records.update(random.below(count), version: number)
            case .read: return records.lookup([random.below(count)])
            case .query:
                let window = max(2, count / 10)
                return records.query(from: random.below(max(1, count - window + 1)), count: window)
            case .sync: return records.sync(since: nil)
            case .transaction:
                let size = TransactionSizes.records(&random)
                return records.transaction(
                    number * TransactionSizes.recordsMax, count: size, bytes: TransactionSizes.bytes(&random))
            case .kvSet:
                let key = random.below(LoadBodies.keys)
                return Array(#"{"writes":[{"key":"load-\#(key)","value":"value \#(number)"}]}"#.utf8)
            case .kvGet: return Array(#"{"keys":["load-\#(random.below(LoadBodies.keys))"]}"#.utf8)
            }
        }
    }

    /// `set` that writes every key that `get` asks for.
    static var allKeys: [UInt8] {
        let writes = (0..<keys).map { #"{"key":"load-\#($0)","value":"value"}"# }
        return Array(#"{"writes":[\#(writes.joined(separator: ","))]}"#.utf8)
    }

    /// The path of an action, with the caller's tokens.
    static func path(_ action: String, isKeyValue: Bool = false, in place: LoadPlace, tokens: LoadTokens) -> String {
        let root = isKeyValue ? "/kv/1" : "/database/1"
        let database = isKeyValue ? "" : "/\(place.database)"
        return
            "\(root)/\(PercentCoding.encode(place.container))/\(place.environment)\(database)/\(action)\(tokens.query)"
    }
}
