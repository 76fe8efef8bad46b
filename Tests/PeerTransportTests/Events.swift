import Logging
import NIOCore
import NIOPosix
import PeerTransport
import Synchronization

/// What a node of a test saw: delegate calls and log lines, in order, with a way to wait for them.
final class Events: Sendable {
    enum Event: Hashable, Sendable {
        case connected(PeerIdentity, PeerChannel)
        case disconnected(NodeID, PeerChannel)
        case introduced(PeerIdentity, PeerChannel)
        case raft([PeerMessage], NodeID)
        case served([UInt8], NodeID, PeerChannel)
        case log(Logger.Level, String)
        case bytes([UInt8])
        case closed
        case clock(NodeID, ahead: ClosedRange<Int64>)
    }

    struct TimedOut: Error, CustomStringConvertible {
        var what: String
        var seen: [Event]
        var description: String { "\(what) did not happen; seen: \(seen)" }
    }

    private struct Waiter: Sendable {
        var id: Int
        var isSatisfied: @Sendable ([Event]) -> Bool
        var promise: EventLoopPromise<Void>
    }

    private struct State: Sendable {
        var events: [Event] = []
        var waiters: [Waiter] = []
        var nextID = 0
    }

    private let state = Mutex(State())
    private let eventLoop = MultiThreadedEventLoopGroup.singleton.next()

    var all: [Event] { state.withLock { $0.events } }

    func record(_ event: Event) {
        let satisfied = state.withLock { state in
            state.events.append(event)
            let events = state.events
            let satisfied = state.waiters.filter { $0.isSatisfied(events) }
            state.waiters.removeAll { waiter in satisfied.contains { $0.id == waiter.id } }
            return satisfied
        }
        for waiter in satisfied { waiter.promise.succeed() }
    }

    /// Waits until the events so far satisfy a condition.
    func wait(for what: String, _ isSatisfied: @escaping @Sendable ([Event]) -> Bool) async throws {
        let promise = eventLoop.makePromise(of: Void.self)
        let id: Int? = state.withLock { state in
            if isSatisfied(state.events) { return nil }
            state.nextID += 1
            state.waiters.append(Waiter(id: state.nextID, isSatisfied: isSatisfied, promise: promise))
            return state.nextID
        }
        guard let id else { return promise.succeed() }
        let deadline = eventLoop.scheduleTask(in: .minutes(5)) {
            let isWaiting = self.state.withLock { state in
                defer { state.waiters.removeAll { $0.id == id } }
                return state.waiters.contains { $0.id == id }
            }
            if isWaiting { promise.fail(TimedOut(what: what, seen: self.all)) }
        }
        defer { deadline.cancel() }
        try await promise.futureResult.get()
    }

    func wait(for event: Event) async throws {
        try await wait(for: "\(event)") { $0.contains(event) }
    }

    /// Waits for a log line of a level that has all the parts.
    func wait(forLog level: Logger.Level, _ parts: String...) async throws {
        try await wait(for: "a \(level) with \(parts)") { events in
            events.contains { event in
                guard case .log(level, let text) = event else { return false }
                return parts.allSatisfy { text.contains($0) }
            }
        }
    }

    /// Raft messages in the order they came.
    var messages: [PeerMessage] {
        all.flatMap { event in
            if case .raft(let messages, _) = event { messages } else { [] as [PeerMessage] }
        }
    }

    var logger: Logger { Logger(label: "test") { _ in RecordingLog(events: self) } }
}

/// Turns log lines into events.
struct RecordingLog: LogHandler {
    let events: Events
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        events.record(.log(event.level, event.message.description))
    }
}
