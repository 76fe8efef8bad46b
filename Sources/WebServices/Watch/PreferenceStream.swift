import Hummingbird
import NIOCore
import RecordModel
import Service

/// A watch of preferences or notifications over HTTP: a long poll, or a stream of server-sent events.
///
/// Events are pages of the feed, by the feed's name for them and with their token as `id`; `expired` where the token
/// cannot be followed any more; `end` with why the stream ends where the node ends it; and comments while nothing
/// happens.
///
/// A page is read when the one before was taken by the connection, and counts among the bytes that the node holds until
/// what came after it was taken, too; so a slow reader costs two pages, and none once the edge has dropped it.
struct PreferenceStream: Sendable {
    var watch: PreferenceWatch
    var bodies: BodyBudget
    var holder: ByteHolder
    /// The request's own name, for logs.
    var uuid: String
    /// Tells where the client goes away.
    var clientDisconnect: ClientDisconnect?

    /// How often a comment is sent, by which either side notices that the other is gone.
    static let heartbeatSeconds: UInt64 = 15
    /// A store is looked at after so many heartbeats though nothing rang: this node's replica may stand still.
    static let heartbeatsPerLook = 4
    /// Then the client is to come again: what it showed when it began is not trusted for ever.
    var secondsMax: UInt64 = 3_600

    private var service: RecordService { watch.service }
    private var now: UInt64 { service.watches.now }

    private static func nanoseconds(_ seconds: UInt64) -> UInt64 { seconds * 1_000_000_000 }

    /// Takes a place among those who watch, until the client goes away.
    private func enter() throws(RequestFailure) -> FollowedWatch { FollowedWatch(try watch.enter(), clientDisconnect) }

    /// Answers as `changes` does, once there is something to tell or the time is over.
    ///
    /// The page counts among the bytes that the node holds until the client has taken it: those who wait are woken
    /// together.
    func longPoll(since token: String?, seconds: UInt64) async throws(RequestFailure) -> Reply {
        let followed = try enter()
        let (page, isClosing) = try await watch.page(since: token, within: seconds, followed.ticket)
        withExtendedLifetime(followed) {}
        guard let held = HeldBytes(page.json.count, in: bodies, for: holder) else {
            throw .nothingDone("this node holds as many bytes for clients as it may; watch on another one")
        }
        var reply = Reply(body: [])
        reply.stream = { writer in
            try await writer.write(ByteBuffer(bytes: page.json))
            try await writer.finish(nil)
            withExtendedLifetime(held) {}
        }
        if isClosing { reply.headers.append(("connection", "close")) }
        return reply
    }

    /// Answers with a stream.
    /// - Parameter since: the token to go on from; without one the stream begins with all that the store holds.
    /// - Throws: what keeps the stream from beginning: a limit, or a token that cannot be followed.
    func events(since token: String?) async throws(RequestFailure) -> Reply {
        let followed = try enter()
        // What is wrong with the request is told with a status.
        let first = try await watch.look(since: token)
        return .events { writer in try await run(followed.ticket, from: token, first: first, to: &writer) }
    }

    private func run(
        _ ticket: WatchTicket, from token: String?, first: PreferenceWatch.Page,
        to writer: inout any ResponseBodyWriter
    ) async throws {
        do throws(StreamEnd) {
            try await follow(ticket, from: token, first: first, to: &writer)
        } catch {
            switch error {
            case .gone(let error): throw error
            case .failed(let failure):
                report(failure)
                try await writer.write(ByteBuffer(string: event(of: failure)))
            }
        }
        try await writer.finish(nil)
    }

    /// Why a stream ends.
    private enum StreamEnd: Error {
        /// The client does not take what is sent.
        case gone(any Error)
        /// The client is told why.
        case failed(RequestFailure)

        /// The client is to come again.
        static func later(_ reason: String, seconds: Double) -> StreamEnd {
            .failed(RequestFailure(ServiceError(.tryAgainLater, reason, retryAfterSeconds: seconds)))
        }
    }

    /// What a stream is at.
    private struct Progress {
        /// Of what was written last.
        var held: HeldBytes?
        let end: UInt64
    }

    private func follow(
        _ ticket: WatchTicket, from token: String?, first: PreferenceWatch.Page,
        to writer: inout any ResponseBodyWriter
    ) async throws(StreamEnd) {
        var token = token
        var page = first
        var progress = Progress(end: now + Self.nanoseconds(secondsMax))
        while true {
            // A page that only moves the token keeps a client's place from growing too old.
            if !page.isEmpty || page.token != token {
                try await send(page, to: &writer, &progress)
                token = page.token
            }
            if !page.hasMore { try await waitForChange(ticket, &writer, &progress) }
            guard now < progress.end else {
                throw .later("the stream is \(secondsMax) s old; go on with a new one", seconds: 0)
            }
            page = try await patiently(&writer, &progress) { () throws(RequestFailure) in
                service.watches.begin(ticket)
                return try await watch.look(since: token)
            }
        }
    }

    private func send(
        _ page: PreferenceWatch.Page, to writer: inout any ResponseBodyWriter, _ progress: inout Progress
    ) async throws(StreamEnd) {
        try await requireCaller(&writer, &progress)
        guard let held = HeldBytes(page.json.count, in: bodies, for: holder) else {
            throw .later("this node holds as many bytes for clients as it may; watch on another one", seconds: 1)
        }
        var buffer = ByteBuffer(string: "id: \(page.token)\nevent: \(watch.feed.event)\ndata: ")
        buffer.writeBytes(page.json)
        buffer.writeString("\n\n")
        try await write(buffer, to: &writer)
        progress.held = held
    }

    /// Returns when the store is to be looked at; meanwhile comments are sent.
    private func waitForChange(
        _ ticket: WatchTicket, _ writer: inout any ResponseBodyWriter, _ progress: inout Progress
    ) async throws(StreamEnd) {
        for _ in 0..<Self.heartbeatsPerLook {
            let end = now + Self.nanoseconds(Self.heartbeatSeconds)
            waiting: while true {
                switch await service.watches.wait(ticket, until: end) {
                case .changed: return
                case .due: break waiting
                case .recheck: try await requireCaller(&writer, &progress)
                case .closing: throw .later("this node is stopping; watch on another one", seconds: 0.2)
                }
            }
            try await requireCaller(&writer, &progress)
            try await beat(&writer, &progress)
        }
    }

    private func beat(_ writer: inout any ResponseBodyWriter, _ progress: inout Progress) async throws(StreamEnd) {
        try await write(ByteBuffer(string: ":\n\n"), to: &writer)
        progress.held = nil
    }

    /// Tries again, for a while, what this node cannot do at the moment: the store or the directory has no leader. The
    /// client hears of a node that is alive.
    private func patiently<Value>(
        _ writer: inout any ResponseBodyWriter, _ progress: inout Progress,
        _ work: () async throws(RequestFailure) -> Value
    ) async throws(StreamEnd) -> Value {
        let end = now + Self.nanoseconds(PreferenceWatch.leaderlessSeconds)
        while true {
            do throws(RequestFailure) {
                return try await work()
            } catch {
                guard error.error.code == .tryAgainLater, now < end, !service.watches.isClosed,
                    !Task.isCancelled
                else { throw .failed(error) }
            }
            try await beat(&writer, &progress)
            await watch.pause()
        }
    }

    private func requireCaller(
        _ writer: inout any ResponseBodyWriter, _ progress: inout Progress
    ) async throws(StreamEnd) {
        try await patiently(&writer, &progress) { () throws(RequestFailure) in try await watch.requireCaller() }
    }

    /// Logs what ended a stream, as a request that failed is, and tells the audit log of refusals; not that a node
    /// stops or sends its clients elsewhere.
    private func report(_ failure: RequestFailure) {
        watch.audit(failure)
        guard failure.error.code != .tryAgainLater else { return }
        service.report(
            uuid, "stream of \(watch.feed.name) ended: \(failure.error.code.rawValue): \(failure.error.reason)")
    }

    private func write(_ buffer: ByteBuffer, to writer: inout any ResponseBodyWriter) async throws(StreamEnd) {
        do { try await writer.write(buffer) } catch { throw .gone(error) }
    }

    /// The stream's last event. One about a token makes browsers forget it.
    private func event(of failure: RequestFailure) -> String {
        var json = JSONWriter()
        json.object { writer in
            writer.member("serverErrorCode", failure.error.code.rawValue)
            writer.member("reason", failure.error.reason)
            writer.retryAfter(failure.error)
            if let detail = failure.error.detail { writer.member("detail", detail.rawValue) }
            failure.write(to: &writer)
        }
        let isExpired = if case .expiredToken? = failure.details { true } else { false }
        return
            "\(isExpired ? "id\nevent: expired" : "event: end")\ndata: \(String(decoding: json.bytes, as: UTF8.self))\n\n"
    }
}

/// A watch that ends where its client goes away.
private final class FollowedWatch: Sendable {
    let ticket: WatchTicket
    private let clientDisconnect: ClientDisconnect?
    private let name: String?

    init(_ ticket: WatchTicket, _ clientDisconnect: ClientDisconnect?) {
        self.ticket = ticket
        self.clientDisconnect = clientDisconnect
        name = clientDisconnect?.begin { [weak ticket] in ticket?.leave() }
    }

    deinit { if let name { clientDisconnect?.end(name) } }
}
