import NIOCore

/// All that a run can send, ready as bytes: which request comes next is drawn from a seed, so the same seed sends the same requests.
struct LoadDeck: Sendable {
    /// A request that was drawn. It can be sent again as it is.
    struct Card: Sendable {
        /// Indices into the operations of the mix, the users, the zones and the operation's ring.
        var operation: Int
        var user: Int
        var zone: Int
        var place: Int
    }

    let operations: [LoadOperation]
    let proofs: [BytePattern?]
    private let choice: WeightedChoice<LoadOperation>
    private let users: Int
    private let rings: [[[UInt8]]]
    private let zonesOfRings: [[Int]]
    private let records: [LoadRecords]
    /// By target, user and operation: the request up to its body's length.
    private let heads: [[[[UInt8]]]]
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
        rings = bodies.map { $0.ring.map { Self.lengthAndBody($0.bytes) } }
        zonesOfRings = bodies.map { $0.ring.map(\.zone) }
        records = settings.place.zones.map { LoadRecords(type: settings.recordType, zone: $0) }
        heads = targets.map { target in
            sessions.map { tokens in
                operations.map { operation in
                    let path = LoadBodies.path(
                        operation.action, isKeyValue: operation.isKeyValue, in: settings.place, tokens: tokens)
                    let host = "Host: \(target.authority)\r\nContent-Type: application/json\r\nContent-Length: "
                    return Array("POST \(path) HTTP/1.1\r\n\(host)".utf8)
                }
            }
        }
        random = LoadRandom(seed: settings.seed &+ 0xDEC_C0DE)
        turns = [Int](repeating: 0, count: operations.count)
        syncTokens = [String?](repeating: nil, count: sessions.count * settings.place.zones.count)
    }

    /// The next request.
    mutating func draw() -> Card {
        let operation = choice.draw(&random)
        let user = users == 1 ? 0 : random.below(users)
        let place = turns[operation] % rings[operation].count
        turns[operation] += 1
        return Card(operation: operation, user: user, zone: zonesOfRings[operation][place], place: place)
    }

    /// Writes a request as HTTP/1.1.
    func write(_ card: Card, target: Int, to buffer: inout ByteBuffer) {
        buffer.writeBytes(heads[target][card.user][card.operation])
        if operations[card.operation] == .sync {
            let token = syncTokens[card.user * records.count + card.zone]
            buffer.writeBytes(Self.lengthAndBody(records[card.zone].sync(since: token)))
        } else {
            buffer.writeBytes(rings[card.operation][card.place])
        }
    }

    /// Takes over what a good answer says about the next request: where to sync from.
    mutating func take(_ body: UnsafeRawBufferPointer, for card: Card) {
        guard operations[card.operation] == .sync, let token = LoadAnswer.syncToken(in: body) else { return }
        syncTokens[card.user * records.count + card.zone] = token
    }

    private static func lengthAndBody(_ body: [UInt8]) -> [UInt8] { Array("\(body.count)\r\n\r\n".utf8) + body }
}
