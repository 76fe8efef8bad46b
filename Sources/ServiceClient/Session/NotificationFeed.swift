package import RecordModel
import Synchronization

/// A page of a user's log of notifications.
package struct NotificationPage: Sendable {
    /// A notification in the log.
    package struct Entry: Sendable {
        /// Its number in the user's log.
        package let sequence: Int64
        /// When it came into the log, in milliseconds since 1970.
        package let time: Int64
        /// What a device is sent: `aps` and `ck`.
        package let payload: JSONValue
    }

    /// In the order of the log; empty where only the position moved.
    package fileprivate(set) var entries: [Entry]
    /// The position after the page.
    package let token: String?
    /// Whether the log has more after it.
    package let hasMore: Bool

    init(_ json: JSONValue) throws(ServiceClientError) {
        guard let members = json["notifications"]?.array else {
            throw ServiceClientError("the answer has no notifications in it. Is this a Zonekeeper node?")
        }
        entries = members.compactMap { json in
            guard let payload = json["payload"], case .integer(let sequence)? = json["seq"],
                case .integer(let time)? = json["time"]
            else { return nil }
            return Entry(sequence: sequence, time: time, payload: payload)
        }
        token = json["syncToken"]?.string
        hasMore = json["moreComing"] == .bool(true)
    }
}

/// One reader of the user's notifications, from a token on.
///
/// All readers of a session share one connection. A reader that begins in the past, or that is slower than the
/// connection, fetches pages by itself until it has caught up. What it is given is in order, without gaps and doubles.
package final class NotificationReader: Sendable {
    /// What a reader hears of.
    package enum News: Sendable {
        case page(NotificationPage)
        /// Another reader of the session said that it changed something: the server does not tell a client of its own
        /// changes.
        case changedHere
    }

    private struct Position: Sendable {
        var token: String?
        /// Of the last notification that was given.
        var sequence: Int64 = 0
        /// Whether what the connection brings follows what was given.
        var isCaughtUp: Bool
    }

    private let session: ServiceSession
    private let seat: Int
    private let bell: AsyncStream<Void>
    private let position: Mutex<Position>

    /// - Parameter token: where to begin; nil begins with the first notification that the server keeps.
    package init(_ session: ServiceSession, since token: String?) {
        self.session = session
        let (bell, ringer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.bell = bell
        seat = session.notifications.join(ringer)
        position = Mutex(Position(token: token, isCaughtUp: session.notifications.follow(session, since: token, seat)))
    }

    deinit { session.notifications.leave(seat) }

    /// Tells the session's other readers that something was changed here.
    package func tellOthers() { session.notifications.changedHere(butFor: seat) }

    /// What comes next; nil once the task is cancelled. Calls must not overlap.
    /// - Throws: `ServiceFailure` where the token has expired or the user may not read; `ServiceClientError`. The
    ///   reader is of no use afterwards.
    package func next() async throws -> News? {
        var rings = bell.makeAsyncIterator()
        while !Task.isCancelled {
            let position = position.withLock { $0 }
            if !position.isCaughtUp {
                if let page = try await catchUp(from: position) { return .page(page) }
                continue
            }
            switch try session.notifications.take(seat) {
            case .changedHere: return .changedHere
            case .page(let page): if let page = take(page) { return .page(page) }
            case .behind: self.position.withLock { $0.isCaughtUp = false }
            case .nothing:
                // There is no connection any more where its token expired.
                _ = session.notifications.follow(session, since: position.token, seat)
                _ = await rings.next(isolation: nil)
            }
        }
        return nil
    }

    private func catchUp(from position: Position) async throws -> NotificationPage? {
        let page: NotificationPage
        do {
            page = try await session.notificationPage("changes", since: position.token)
        } catch let error where NotificationFeed.isTransient(error) {
            try? await Task.sleep(for: NotificationFeed.pause(after: 1))
            return nil
        }
        if !page.hasMore { self.position.withLock { $0.isCaughtUp = true } }
        return take(page)
    }

    /// The page without what was given before; nil if nothing new is in it.
    private func take(_ page: NotificationPage) -> NotificationPage? {
        position.withLock { position in
            var page = page
            page.entries.removeAll { $0.sequence <= position.sequence }
            position.sequence = page.entries.last?.sequence ?? position.sequence
            let hasMoved = page.token != position.token
            position.token = page.token ?? position.token
            return page.entries.isEmpty && !hasMoved ? nil : page
        }
    }
}

/// The connection over which a session's readers hear of notifications, for as long as there are any.
final class NotificationFeed: Sendable {
    enum Waiting: Sendable {
        case page(NotificationPage)
        case changedHere
        /// Pages were dropped, as too many waited: the reader has to fetch them.
        case behind
        case nothing
    }

    private struct Seat: Sendable {
        let ringer: AsyncStream<Void>.Continuation
        var pages: [NotificationPage] = []
        var hasChangeHere = false
        var isBehind = false
        var failure: (any Error)?
    }

    private struct State: Sendable {
        var seats: [Int: Seat] = [:]
        var lastSeat = 0
        var follower: Task<Void, Never>?
        /// The number of the follower, which is not that of one before.
        var followers = 0
    }

    /// How many pages may wait for a slow reader. A page has at most 200 notifications.
    private static let pagesMax = 16
    private static let pauseMax: Duration = .seconds(30)

    private let state = Mutex(State())

    // MARK: Readers

    func join(_ ringer: AsyncStream<Void>.Continuation) -> Int {
        state.withLock { state in
            state.lastSeat += 1
            state.seats[state.lastSeat] = Seat(ringer: ringer)
            return state.lastSeat
        }
    }

    func leave(_ seat: Int) {
        state.withLock { state in
            state.seats[seat] = nil
            guard state.seats.isEmpty else { return }
            state.follower?.cancel()
            (state.follower, state.followers) = (nil, state.followers + 1)
        }
    }

    func take(_ seat: Int) throws -> Waiting {
        try state.withLock { state throws in
            guard var place = state.seats[seat] else { return .nothing }
            defer { state.seats[seat] = place }
            if let failure = place.failure { throw failure }
            if place.hasChangeHere {
                place.hasChangeHere = false
                return .changedHere
            }
            if place.isBehind {
                place.isBehind = false
                return .behind
            }
            return place.pages.isEmpty ? .nothing : .page(place.pages.removeFirst())
        }
    }

    func changedHere(butFor seat: Int) { tell { if $0 != seat { $1.hasChangeHere = true } } }

    private func tell(_ body: (Int, inout Seat) -> Void) {
        state.withLock { state in
            for seat in state.seats.keys {
                body(seat, &state.seats[seat]!)
                state.seats[seat]!.ringer.yield()
            }
        }
    }

    // MARK: The connection

    /// Connects where there is no connection. The other readers have to fetch what lies between their positions and
    /// that of the connection.
    /// - Parameters:
    ///   - token: the position of the reader on `seat`, which has everything before.
    /// - Returns: whether the connection begins with this token.
    func follow(_ session: ServiceSession, since token: String?, _ seat: Int) -> Bool {
        state.withLock { state in
            guard state.follower == nil else { return false }
            for other in state.seats.keys where other != seat {
                state.seats[other]!.isBehind = true
                state.seats[other]!.ringer.yield()
            }
            state.followers += 1
            let number = state.followers
            state.follower = Task { [self] in
                let failure = await run(session, since: token)
                end(number, failure)
            }
            return true
        }
    }

    private func end(_ number: Int, _ failure: any Error) {
        let isCurrent = state.withLock { state in
            guard state.followers == number else { return false }
            state.follower = nil
            return true
        }
        guard isCurrent else { return }
        tell { _, seat in
            // Each reader finds out by itself whether its own token can be followed.
            if Self.isExpired(failure) { seat.isBehind = true } else { seat.failure = failure }
        }
    }

    /// Follows the log until the task is cancelled.
    /// - Returns: why the log cannot be followed any more.
    private func run(_ session: ServiceSession, since token: String?) async -> any Error {
        var token = token
        var transport = NotificationTransport()
        while !Task.isCancelled {
            do {
                if transport.isPolling {
                    let page = try await session.notificationPage("watch", since: token)
                    token = page.token ?? token
                    transport.polled()
                    give(page)
                    continue
                }
                for try await event in session.watchNotifications(syncToken: token) {
                    transport.received()
                    guard let json = try? JSONParser.parse(Array(event.data.utf8)) else { continue }
                    if event.name == "notifications" {
                        let page = try NotificationPage(json)
                        token = page.token ?? token
                        give(page)
                    } else if event.name == "expired" || event.name == "end" {
                        throw Self.failure(event, json)
                    }
                }
            } catch let error where !Self.isTransient(error) {
                return error
            } catch {
                // Another connection follows.
            }
            transport.broke()
            try? await Task.sleep(for: Self.pause(after: transport.failures))
        }
        return CancellationError()
    }

    private func give(_ page: NotificationPage) {
        tell { _, seat in
            guard !seat.isBehind else { return }
            seat.pages.append(page)
            if seat.pages.count > Self.pagesMax { (seat.pages, seat.isBehind) = ([], true) }
        }
    }

    // MARK: Failures

    /// The failure of a request for what the event that ended a stream says.
    private static func failure(_ event: ServerSentEvent, _ json: JSONValue) -> ServiceFailure {
        let isSignedOut = json["serverErrorCode"]?.string?.hasPrefix("AUTHENTICATION") == true
        let status = event.name == "expired" ? 400 : isSignedOut ? 421 : 503
        return ServiceFailure(ServiceResponse(status: status, body: json.serialized()))
    }

    /// Whether the log may be followed again after a pause: the connection was lost, or no node has room.
    static func isTransient(_ error: any Error) -> Bool {
        switch error {
        case let failure as ServiceFailure: failure.status == 429 || failure.status >= 500
        case is ServiceClientError, is CancellationError: false
        default: true
        }
    }

    private static func isExpired(_ error: any Error) -> Bool {
        (error as? ServiceFailure)?.isExpiredToken == true
    }

    /// A pause that grows with the failures in a row, and is not the same for all that lost a node together.
    static func pause(after failures: Int) -> Duration {
        let pause = min(Duration.milliseconds(500) * (1 << min(max(failures - 1, 0), 10)), pauseMax)
        return pause * Double.random(in: 0.5...1.5)
    }
}

extension ServiceFailure {
    /// Whether a token was refused because what comes after it is not kept any more.
    package var isExpiredToken: Bool { json["syncTokenExpired"] != nil }
}

/// How notifications come: as a stream of events, or by long polls where streams break before they bring anything, as
/// behind a proxy that holds answers back.
struct NotificationTransport: Hashable, Sendable {
    /// Streams in a row that brought nothing.
    private(set) var failures = 0
    /// Long polls since the last stream.
    private var polls = 0

    private static let failuresMax = 3
    /// So many polls later a stream is tried again.
    private static let pollsMax = 20

    var isPolling: Bool { failures >= Self.failuresMax }

    /// A stream brought something.
    mutating func received() { failures = 0 }

    /// A stream or a poll failed.
    mutating func broke() { failures += 1 }

    /// A long poll was answered.
    mutating func polled() {
        polls += 1
        if polls == Self.pollsMax { (polls, failures) = (0, Self.failuresMax - 1) }
    }
}
