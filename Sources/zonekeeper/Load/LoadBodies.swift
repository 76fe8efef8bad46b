/// The requests of a run, made before the clock starts: a ring of bodies for one path.
struct LoadBodies: Sendable {
    /// The path after `/database/1/...` or `/kv/1/...`, such as `records/modify`.
    let action: String
    /// What an answer must hold to count as right; nil where the status says all.
    let proof: BytePattern?
    /// To be sent one after the other, and again from the start.
    let ring: [[UInt8]]

    /// Keys of preferences; a store has at most 1,024.
    static let keys = 1_000
    /// Enough that no cache of answers would pay, few enough to be made in a moment.
    private static let ringMax = 8_192

    init(_ settings: LoadSettings) {
        let records = LoadRecords(type: settings.recordType, place: settings.place)
        var random = LoadRandom(seed: settings.seed &+ 0x0B0D_1E5)
        switch settings.operation {
        case .create:
            action = "records/modify"
            proof = BytePattern("\"recordChangeTag\"")
            ring = (0..<1_024).map { records.create($0) }
        case .read:
            action = "records/lookup"
            proof = BytePattern("\"recordChangeTag\"")
            ring = (0..<Self.ringMax).map { _ in records.lookup([random.below(settings.records)]) }
        case .query:
            action = "records/query"
            proof = BytePattern("\"recordChangeTag\"")
            let window = max(2, settings.records / 10)
            ring = (0..<Self.ringMax).map { _ in
                let first = random.below(max(1, settings.records - window + 1))
                return records.query(from: first, count: window)
            }
        case .kvSet:
            action = "set"
            proof = nil
            ring = (0..<Self.ringMax).map { number in
                Array(#"{"writes":[{"key":"load-\#(random.below(Self.keys))","value":"value \#(number)"}]}"#.utf8)
            }
        case .kvGet:
            action = "get"
            proof = BytePattern("\"value\":")
            ring = (0..<Self.ringMax).map { _ in
                Array(#"{"keys":["load-\#(random.below(Self.keys))"]}"#.utf8)
            }
        }
    }

    /// `set` that writes every key that `get` asks for.
    static var allKeys: [UInt8] {
        let writes = (0..<keys).map { #"{"key":"load-\#($0)","value":"value"}"# }
        return Array(#"{"writes":[\#(writes.joined(separator: ","))]}"#.utf8)
    }

    /// The path of the requests, with the caller's tokens.
    static func path(_ action: String, for settings: LoadSettings, tokens: LoadTokens) -> String {
        let place = settings.place
        let isKeyValue = settings.operation.isKeyValue
        let root = isKeyValue ? "/kv/1" : "/database/1"
        let database = isKeyValue ? "" : "/\(place.database)"
        return
            "\(root)/\(PercentCoding.encode(place.container))/\(place.environment)\(database)/\(action)\(tokens.query)"
    }
}
