import NIOCore

/// How long a client's connection has been in what it does, and when that is too long. Pure: events and the time go in,
/// and a verdict comes out when the clock is looked at.
///
/// A connection is held against one rule for what comes in (handshake, head, body or nothing) and one for what goes
/// out. Nothing is held against a client while it is the node's turn.
struct ConnectionTimeouts: Sendable, Equatable {
    /// What comes in.
    enum Input: Sendable, Equatable {
        case handshake
        /// Between requests.
        case idle
        case head
        /// The bytes that came in the window at hand, which began at `since`.
        case body(bytes: Int)
        /// Requests side by side, each of which is watched by itself (HTTP/2).
        case streams
        /// Nothing that comes in matters any more.
        case over
    }

    enum Verdict: Sendable, Equatable {
        /// The connection ends without a word.
        case drop(EdgeEnd)
        /// The client is told why the connection ends.
        case refuse(EdgeEnd)
    }

    /// What is seen when the clock is looked at.
    struct Sight: Sendable {
        var now: NIODeadline
        /// Whether the node takes what comes; otherwise a body cannot come.
        var isReading: Bool
        /// Bytes that wait for the socket to take them.
        var unsentBytes: Int
        /// Bytes that the socket has taken since the connection began.
        var sentBytes: Int
    }

    private let limits: EdgeLimits
    private(set) var input = Input.handshake
    /// When the input began to be what it is.
    private var since: NIODeadline
    /// Requests whose heads came and whose answers have not ended.
    private(set) var requestsOpen = 0
    /// When the window of the output began and what had been sent then; nil while nothing waits.
    private var output: (began: NIODeadline, sentBytes: Int)?

    init(limits: EdgeLimits, now: NIODeadline) {
        self.limits = limits
        since = now
    }

    static func == (left: Self, right: Self) -> Bool {
        left.input == right.input && left.since == right.since && left.requestsOpen == right.requestsOpen
            && left.output?.began == right.output?.began && left.output?.sentBytes == right.output?.sentBytes
    }

    // MARK: Events

    mutating func handshakeCompleted(now: NIODeadline) {
        guard input == .handshake else { return }
        enter(.idle, now)
    }

    mutating func bytesArrived(_ count: Int, now: NIODeadline) {
        switch input {
        case .idle: enter(.head, now)
        case .body(let bytes): input = .body(bytes: bytes + count)
        case .handshake, .head, .streams, .over: break
        }
    }

    /// Both sides speak HTTP/2 from here on.
    mutating func multiplexed(now: NIODeadline) {
        if input != .over { enter(.streams, now) }
    }

    mutating func streamBegan() { requestsOpen += 1 }

    mutating func streamEnded(now: NIODeadline) {
        requestsOpen -= 1
        if input == .streams { since = now }
    }

    mutating func headEnded(now: NIODeadline) {
        requestsOpen += 1
        if input != .over { enter(.body(bytes: 0), now) }
    }

    mutating func requestEnded(now: NIODeadline) {
        if input != .over { enter(.idle, now) }
    }

    mutating func responseEnded(now: NIODeadline) {
        requestsOpen -= 1
        if input == .idle { since = now }
    }

    mutating func inputEnded() { input = .over }

    // MARK: The clock

    mutating func looked(_ sight: Sight) -> Verdict? {
        if isTakenTooSlowly(sight) { return .drop(.slowReader) }
        let elapsed = sight.now - since
        switch input {
        case .handshake: return elapsed >= limits.handshakeTimeout ? .drop(.handshakeTimeout) : nil
        case .head: return elapsed >= limits.headersTimeout ? .refuse(.headersTimeout) : nil
        case .idle, .streams:
            let isQuiet = requestsOpen == 0 && sight.unsentBytes == 0
            return isQuiet && elapsed >= limits.idleTimeout ? .drop(.idle) : nil
        case .body(let bytes):
            guard sight.isReading else {
                enter(.body(bytes: 0), sight.now)
                return nil
            }
            guard elapsed >= limits.bodyWindow else { return nil }
            if bytes < bytesMin(in: elapsed) { return .refuse(.slowBody) }
            enter(.body(bytes: 0), sight.now)
            return nil
        case .over: return nil
        }
    }

    private mutating func isTakenTooSlowly(_ sight: Sight) -> Bool {
        guard sight.unsentBytes > 0 else {
            output = nil
            return false
        }
        guard let window = output else {
            output = (sight.now, sight.sentBytes)
            return false
        }
        let elapsed = sight.now - window.began
        guard elapsed >= limits.writeWindow else { return false }
        if sight.sentBytes - window.sentBytes < bytesMin(in: elapsed) { return true }
        output = (sight.now, sight.sentBytes)
        return false
    }

    private func bytesMin(in time: TimeAmount) -> Int {
        max(1, Int(Double(limits.bytesPerSecondMin) * Double(time.nanoseconds) / 1e9))
    }

    private mutating func enter(_ input: Input, _ now: NIODeadline) {
        self.input = input
        since = now
    }
}
