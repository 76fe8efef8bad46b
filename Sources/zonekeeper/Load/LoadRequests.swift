import NIOCore
import NIOHTTP1
import ServiceClient

struct LoadBody: Hashable, Sendable {
    var bytes: [UInt8]
    /// An index into the zones of the run.
    var zone: Int
}

/// The bodies of one operation, made before the clock starts: a ring, to be sent one after the other and again from the
/// start.
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
        if operation.isAsset {
            ring = [LoadBody(bytes: [], zone: 0)]
            return
        }
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
            case .assetUpload, .assetDownload: return []
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

struct LoadRequest: Sendable {
    var head: HTTPRequestHead
    var body: ByteBuffer
}

/// All that a run can send, ready as bytes: which request comes next is drawn from a seed, so the same seed sends the
/// same requests.
struct LoadDeck: Sendable {
    /// A request that was drawn; it can be repeated as it is.
    struct Card: Sendable {
        var operation: Int
        var user: Int
        var zone: Int
        var place: Int
    }

    let operations: [LoadOperation]
    let proofs: [BytePattern?]
    private let choice: WeightedChoice<LoadOperation>
    private let users: Int
    private let rings: [[ByteBuffer]]
    private let zonesOfRings: [[Int]]
    private let records: [LoadRecords]
    private let files: LoadFiles
    /// By target, user and operation; what is missing is the length of the body.
    private let heads: [[[HTTPRequestHead]]]
    private var random: LoadRandom
    private var turns: [Int]
    /// By user and zone: where their device stands in the zone's changes.
    private var syncTokens: [String?]

    /// - Parameter sessions: the users whose requests these are, at least one.
    init(_ settings: LoadSettings, targets: [LoadTarget], sessions: [LoadTokens]) {
        precondition(!sessions.isEmpty && !targets.isEmpty, "\(sessions.count) users, \(targets.count) targets")
        let operations = settings.mix.operations
        self.operations = operations
        choice = settings.mix.choice
        proofs = operations.map(\.proof)
        users = sessions.count
        let bodies = operations.map { LoadBodies($0, of: settings) }
        rings = bodies.map { $0.ring.map { ByteBuffer(bytes: $0.bytes) } }
        zonesOfRings = bodies.map { $0.ring.map(\.zone) }
        records = settings.place.zones.map { LoadRecords(type: settings.recordType, zone: $0) }
        files = LoadFiles(settings, sessions)
        heads = targets.map { target in
            sessions.map { tokens in
                operations.map { operation in
                    let path = LoadBodies.path(
                        operation.action, isKeyValue: operation.isKeyValue, in: settings.place, tokens: tokens)
                    return HTTPRequestHead(
                        version: .http1_1, method: .POST, uri: path,
                        headers: ["Host": target.authority, "Content-Type": "application/json"])
                }
            }
        }
        random = LoadRandom(seed: settings.seed &+ 0xDEC_C0DE)
        turns = [Int](repeating: 0, count: operations.count)
        syncTokens = [String?](repeating: nil, count: sessions.count * settings.place.zones.count)
    }

    mutating func draw() -> Card {
        let operation = choice.draw(&random)
        let user = users == 1 ? 0 : random.below(users)
        let turn = turns[operation]
        turns[operation] += 1
        // No two files are the same.
        if operations[operation].isAsset { return Card(operation: operation, user: user, zone: 0, place: turn) }
        let place = turn % rings[operation].count
        return Card(operation: operation, user: user, zone: zonesOfRings[operation][place], place: place)
    }

    func request(_ card: Card, target: Int) -> LoadRequest {
        if operations[card.operation].isAsset {
            return files.request(
                operations[card.operation], head: heads[target][card.user][card.operation], user: card.user,
                number: card.place)
        }
        let body =
            operations[card.operation] == .sync
            ? ByteBuffer(bytes: records[card.zone].sync(since: syncTokens[card.user * records.count + card.zone]))
            : rings[card.operation][card.place]
        var head = heads[target][card.user][card.operation]
        head.headers.add(name: "Content-Length", value: String(body.readableBytes))
        return LoadRequest(head: head, body: body)
    }

    /// Whether an answer that succeeded has as many bytes as it should.
    func isWhole(_ byteCount: Int, for card: Card) -> Bool {
        operations[card.operation] != .assetDownload || byteCount == files.size
    }

    /// Takes over what a good answer says about the next request: where to sync from.
    mutating func take(_ body: UnsafeRawBufferPointer, for card: Card) {
        guard operations[card.operation] == .sync, let token = LoadAnswer.syncToken(in: body) else { return }
        syncTokens[card.user * records.count + card.zone] = token
    }
}

/// The files that a run sends and fetches. No two that it sends are the same: a cluster keeps equal bytes once.
struct LoadFiles: Sendable {
    let size: Int
    private let seed: UInt64
    private let bytes: ByteBuffer
    private let uploadPaths: [[String]]
    private let downloadPaths: [[String]]

    /// What makes files different.
    private static let headBytes = 16

    init(_ settings: LoadSettings, _ sessions: [LoadTokens]) {
        size = settings.assetBytes
        seed = settings.seed
        uploadPaths = sessions.map(\.uploadPaths)
        downloadPaths = sessions.map(\.downloadPaths)
        guard settings.mix.hasAssets else {
            bytes = ByteBuffer()
            return
        }
        var random = LoadRandom(seed: settings.seed)
        var bytes = ByteBufferAllocator().buffer(capacity: size + 8)
        while bytes.readableBytes < size { bytes.writeInteger(random.next()) }
        bytes.moveWriterIndex(to: size)
        self.bytes = bytes
    }

    func file(_ number: Int) -> ByteBuffer {
        guard size >= Self.headBytes else { return bytes }
        var bytes = bytes
        bytes.setInteger(seed, at: 0)
        bytes.setInteger(UInt64(number), at: 8)
        return bytes
    }

    fileprivate func request(_ operation: LoadOperation, head: HTTPRequestHead, user: Int, number: Int) -> LoadRequest {
        var head = head
        let paths = operation == .assetUpload ? uploadPaths[user] : downloadPaths[user]
        head.uri = paths.isEmpty ? head.uri : paths[number % paths.count]
        guard operation == .assetUpload else {
            head.method = .GET
            return LoadRequest(head: head, body: ByteBuffer())
        }
        head.headers.replaceOrAdd(name: "Content-Type", value: "application/octet-stream")
        head.headers.add(name: "Content-Length", value: String(size))
        // Users' files differ too.
        return LoadRequest(head: head, body: file(number &* uploadPaths.count &+ user))
    }
}
