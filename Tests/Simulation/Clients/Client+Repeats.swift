import KeyValueStore
import RecordModel
import Service

/// A request under an idempotency key that was answered. A copy of it may come at any time, and must do nothing and
/// get the same answer.
struct PastRequest: Sendable {
    typealias Body<Value> = @Sendable (Visit) async throws(RequestFailure) -> Value

    /// Sends the copy. Nil where nothing was learnt.
    let repeats: @Sendable (Client) async -> Copy?
    let what: String
    /// What tells its answer from others.
    let mark: String

    /// What a copy was answered.
    enum Copy: Sendable {
        case answered(String)
        /// The key is too old.
        case tooOld
    }
}

// What becomes of a request's copy that comes late.
extension Client {
    private static let pastMax = 8
    private static let earlyMax = 3

    /// Keeps a request that was answered.
    /// - Parameter mark: what is the same in each answer to it.
    func remember<Value: Sendable>(
        _ what: String, _ answer: Asked<Value>, account: Int = 0, _ body: @escaping PastRequest.Body<Value>,
        mark: @escaping @Sendable (Value) -> String?
    ) {
        guard let first = Self.mark(answer, mark) else { return }
        let repeats: @Sendable (Client) async -> PastRequest.Copy? = { client in
            let answer = await client.ask(repeats: true, triesMax: 4, account: account, body)
            if case .failed(let failure) = answer, failure.error.detail == .idempotencyKey { return .tooOld }
            return Self.mark(answer, mark).map { .answered($0) }
        }
        let request = PastRequest(repeats: repeats, what: what, mark: first)
        if early[what, default: []].count < Self.earlyMax { early[what, default: []].append(request) }
        past.append(request)
        if past.count > Self.pastMax { past.remove(at: world.random(0...(Self.pastMax - 1))) }
    }

    private static func mark<Value>(_ answer: Asked<Value>, _ mark: (Value) -> String?) -> String? {
        switch answer {
        case .answered(let value, _): mark(value)
        case .failed(let failure): "refused: \(failure.error.code)"
        case .nothing: nil
        }
    }

    /// Has a copy of an earlier request come to some node.
    func repeatPast() async {
        guard let request = past.randomElement(using: &world.generator) else { return await save() }
        moveOn()
        await repeatPast(request)
    }

    /// Has copies of the first requests come, whatever happened to clocks since.
    func repeatEarly() async {
        for what in early.keys.sorted() {
            for request in early[what] ?? [] { await repeatPast(request) }
        }
    }

    /// - Returns: whether the copy was answered as the request was.
    @discardableResult
    func repeatPast(_ request: PastRequest) async -> Bool {
        switch await request.repeats(self) {
        case nil: return false
        case .answered(let mark):
            if mark == request.mark { return true }
            recorder.violated(
                "client \(number): \(request.what) is answered \(mark) when it comes again, and was \(request.mark)")
        case .tooOld:
            if recorder.mayForgetKeys() { return false }
            recorder.violated("client \(number): the key of \(request.what) is too old within minutes")
        }
        return false
    }
}

extension Preferences.Written {
    /// What is the same each time that it is told.
    var mark: String {
        switch self {
        case .applied(let versions, _): "applied as \(versions.map { $0?.description ?? "nothing" })"
        case .conflict(let conflicts): "conflicting in \(conflicts.map(\.key))"
        }
    }
}
