import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import RecordModel

extension ServiceSession {
    /// Follows the changes of the user's preferences, from a token on.
    ///
    /// The stream is one connection. It ends when a node closes it, and throws when it breaks or is silent for 40 s.
    /// After a pause, the caller opens another with the newest event's id. A slow reader makes the node wait; nothing
    /// piles up in memory.
    /// - Parameters:
    ///   - syncToken: nil for the start of the feed.
    ///   - user: the record name of the user; nil for the session's user when the stream begins.
    /// - Throws: as `send`, from the first element on.
    package func watchKeyValues(
        syncToken: String?, of user: String? = nil
    ) -> AsyncThrowingStream<ServerSentEvent, any Error> {
        watch(ServiceRequest(.get, keyValuePath + "/watch"), syncToken: syncToken, of: user)
    }

    /// Follows the user's notifications, from a token on, without those of this session's own changes; else as
    /// `watchKeyValues`.
    func watchNotifications(syncToken: String?) -> AsyncThrowingStream<ServerSentEvent, any Error> {
        let request = ServiceRequest(.get, pushPath + "/watch", parameters: [(name: "clientId", value: clientID)])
        return watch(request, syncToken: syncToken, of: nil)
    }

    private func watch(
        _ request: ServiceRequest, syncToken: String?, of user: String?
    ) -> AsyncThrowingStream<ServerSentEvent, any Error> {
        var request = request
        request.expectedUser = user
        if let syncToken { request.parameters.append((name: "syncToken", value: syncToken)) }
        let source = WatchSource(session: self, request: request)
        return AsyncThrowingStream { try await source.next() }
    }

    fileprivate func open(_ watch: ServiceRequest) async throws -> HTTPClientResponse.Body {
        var request = watch
        request.credentials = try userCredentials()
        do {
            return try await openWatch(request)
        } catch let failure as ServiceFailure where failure.isSignedOut && request.userToken?.takeOver() == true {
            return try await openWatch(request)
        } catch is TokenTakenOver {
            return try await openWatch(request)
        }
    }

    private func openWatch(_ request: ServiceRequest) async throws -> HTTPClientResponse.Body {
        var request = request
        try await settle(&request)
        do {
            let body = try await streamingClient.openEvents(of: request)
            note(isRefused: false)
            return body
        } catch let failure as ServiceFailure where failure.isSignedOut {
            note(isRefused: true)
            throw failure
        }
    }
}

/// The events of one connection, pulled by their reader.
private actor WatchSource {
    private let session: ServiceSession
    private let request: ServiceRequest
    private var bytes: HTTPClientResponse.Body.AsyncIterator?
    private var parser: ServerSentEventParser
    private var events: [ServerSentEvent] = []

    init(session: ServiceSession, request: ServiceRequest) {
        self.session = session
        self.request = request
        parser = ServerSentEventParser(eventBytesMax: ServerSentEventParser.pageBytesMax)
    }

    /// The next event; nil at the end. The stream has one reader, so calls do not overlap.
    func next() async throws -> ServerSentEvent? {
        if bytes == nil { bytes = try await session.open(request).makeAsyncIterator() }
        while events.isEmpty {
            guard var iterator = bytes else { return nil }
            let chunk = try await iterator.next(isolation: self)
            bytes = iterator
            guard let chunk else { return nil }
            events = try parser.received(chunk.readableBytesView)
        }
        return events.removeFirst()
    }
}

/// An event of a stream of server-sent events.
package struct ServerSentEvent: Hashable, Sendable {
    /// The latest id in the stream so far.
    package var id: String?
    /// `message` if the stream gives no name.
    package var name = "message"
    /// The lines of the event's data, with line feeds between.
    package var data: String
}

/// Parses a stream of server-sent events, in pieces of any size (WHATWG HTML, section 9.2).
///
/// Comments and unknown fields are skipped. What an event may hold is bounded, so that a broken stream cannot fill the
/// memory.
package struct ServerSentEventParser: Sendable {
    /// The most bytes of an event of a node: a page of changes holds a megabyte of a user, escaped and as base64 at
    /// worst.
    static let pageBytesMax = 16 << 20

    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var name = ""
    private var id: String?
    private var isAfterReturn = false
    private let eventBytesMax: Int

    /// - Parameter eventBytesMax: the longest line, and the most data of an event.
    package init(eventBytesMax: Int) { self.eventBytesMax = eventBytesMax }

    /// Parses bytes that arrived.
    /// - Returns: the events that are complete now.
    /// - Throws: if a line or an event is too long. The stream cannot be read any further.
    package mutating func received(_ bytes: some Sequence<UInt8>) throws(ServiceClientError) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            let isSecondHalf = isAfterReturn && byte == UInt8(ascii: "\n")
            isAfterReturn = byte == UInt8(ascii: "\r")
            if isSecondHalf { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                guard line.count < eventBytesMax else { throw tooLong() }
                line.append(byte)
                continue
            }
            if let event = try ended() { events.append(event) }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func ended() throws(ServiceClientError) -> ServerSentEvent? {
        guard !line.isEmpty else { return dispatched() }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "data":
            if hasData { data.append(UInt8(ascii: "\n")) }
            guard data.count + value.count <= eventBytesMax else { throw tooLong() }
            data.append(contentsOf: value)
            hasData = true
        case "event": name = String(decoding: value, as: UTF8.self)
        case "id": if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        default: break
        }
        return nil
    }

    /// An empty line ends an event. An event without data is dropped.
    private mutating func dispatched() -> ServerSentEvent? {
        defer {
            data.removeAll(keepingCapacity: true)
            hasData = false
            name = ""
        }
        guard hasData else { return nil }
        return ServerSentEvent(
            id: id, name: name.isEmpty ? "message" : name, data: String(decoding: data, as: UTF8.self))
    }

    private func tooLong() -> ServiceClientError {
        ServiceClientError("an event of the stream has more than \(eventBytesMax) bytes. Is this a Zonekeeper node?")
    }
}

extension ServiceClient {
    /// Follows a stream of server-sent events at the first node that serves it, and hands over each event.
    ///
    /// Returns when the node ends the stream, or `take` has enough.
    /// - Parameter take: whether it wants more.
    /// - Throws: `ServiceUnreachable` where no node can be reached; `ServiceFailure` where one refuses; what breaks the
    ///   connection.
    package func events(of request: ServiceRequest, _ take: (ServerSentEvent) async throws -> Bool) async throws {
        var parser = ServerSentEventParser(eventBytesMax: ServerSentEventParser.pageBytesMax)
        for try await part in try await openEvents(of: request) {
            for event in try parser.received(part.readableBytesView) {
                guard try await take(event) else { return }
            }
        }
    }

    /// Opens a stream of server-sent events at the first node that serves it.
    /// - Throws: `ServiceFailure` where a node refuses, or all that answer have no room; `ServiceUnreachable`.
    fileprivate func openEvents(of request: ServiceRequest) async throws -> HTTPClientResponse.Body {
        var unreachable = ServiceUnreachable()
        var busy: ServiceFailure?
        for url in urls {
            do {
                return try await openEvents(of: request, at: url)
            } catch let failure as ServiceFailure where failure.status == 429 || failure.status == 503 {
                busy = failure
            } catch let error where error is ServiceFailure || error is TokenTakenOver {
                throw error
            } catch {
                if Task.isCancelled { throw CancellationError() }
                unreachable.note(error, at: url)
            }
        }
        if let busy { throw busy }
        throw unreachable
    }

    private func openEvents(of request: ServiceRequest, at url: String) async throws -> HTTPClientResponse.Body {
        let token = try request.presentToken()
        var message = try message(request, to: url, showing: token)
        message.headers.add(name: "Accept", value: "text/event-stream")
        let answer = try await http.execute(message, timeout: .seconds(30))
        var head = ServiceResponse(status: Int(answer.status.code), headers: answer.headers, body: [])
        head.renew(request.userToken, after: token)
        if head.status == 200, answer.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") == true {
            return answer.body
        }
        head.body = Array(try await answer.body.collect(upTo: Self.responseBytesMax).readableBytesView)
        throw ServiceFailure(head)
    }
}
