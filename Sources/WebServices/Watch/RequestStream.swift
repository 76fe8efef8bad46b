import Directory
import Hummingbird
import NIOCore
import RecordModel
import Service
import Synchronization

/// The log of requests over HTTP as it grows: server-sent events.
///
/// Events are `requests`, with the place in all nodes' logs as `id`; `nodes`, where a node ceases to answer or does
/// again; `end` with why the node ends the stream; and comments while nothing happens.
struct RequestStream: Sendable {
    let request: AdminRequest
    var following: RequestFollowing

    /// Streams of a node at once: each asks all nodes twice a second.
    private static let streamsMax = 32
    private static let streams = Atomic<Int>(0)
    /// After so many looks without anything to tell a comment is sent, and who asks is looked at again.
    private static let looksPerHeartbeat = 10
    /// Then the client is to come again: what it showed when it began is not trusted for ever.
    private static let looksMax = 7_200

    private var service: RecordService { request.service }

    /// - Throws: `TRY_AGAIN_LATER` where the node has as many streams as it may.
    func events() async throws(RequestFailure) -> Reply {
        let place = try Place()
        var begun = following
        let first = try await begun.next(try request.administration.access)
        return .events { [begun] writer in
            var stream = self
            stream.following = begun
            do throws(RequestFailure) {
                try await stream.follow(first, to: &writer)
            } catch {
                try? await writer.write(ByteBuffer(string: Self.end(of: error)))
            }
            try await writer.finish(nil)
            withExtendedLifetime(place) {}
        }
    }

    /// A place among the streams of this process.
    private final class Place: Sendable {
        init() throws(RequestFailure) {
            guard streams.add(1, ordering: .relaxed).newValue > streamsMax else { return }
            streams.subtract(1, ordering: .relaxed)
            throw .nothingDone("\(streamsMax) others follow the log of requests on this node already")
        }

        deinit { streams.subtract(1, ordering: .relaxed) }
    }

    private mutating func follow(
        _ first: RequestFollowing.Look, to writer: inout any ResponseBodyWriter
    ) async throws(RequestFailure) {
        var look = first
        var problems: [String?]?
        var access = try await request.recheck()
        var version = service.directory.version
        var silent = 0
        for _ in 0..<Self.looksMax {
            silent = try await tell(look, &problems, to: &writer) ? 0 : silent + 1
            let isDue = silent >= Self.looksPerHeartbeat
            if isDue { try await write(":\n\n", to: &writer) }
            if request.call.clientDisconnect?.isOver == true { return }
            try await pause()
            // A session or a role that ended ends the stream.
            if isDue || service.directory.version != version {
                version = service.directory.version
                access = try await request.recheck()
            }
            if isDue { silent = 0 }
            look = try await following.next(access)
        }
        throw .tryAgain("the stream is an hour old; go on with a new one")
    }

    private func pause() async throws(RequestFailure) {
        do { try await following.pause() } catch { throw Self.stopping }
        guard !service.watches.isClosed else { throw Self.stopping }
    }

    private static let stopping = RequestFailure.tryAgain("this node is stopping; watch on another one")

    /// Tells of what a look found.
    /// - Returns: whether there was anything.
    private func tell(
        _ look: RequestFollowing.Look, _ problems: inout [String?]?, to writer: inout any ResponseBodyWriter
    ) async throws(RequestFailure) -> Bool {
        let present = look.nodes.map(\.problem)
        let isNew = present != problems
        if isNew {
            problems = present
            try await send("event: nodes\ndata: ", to: &writer) { json in
                json.list("nodes", look.nodes) { $1.members(of: $0) }
            }
        }
        guard !look.requests.isEmpty || look.skipped > 0 else { return isNew }
        let id = RequestMarks(marks: look.marks).text
        try await send("id: \(id)\nevent: requests\ndata: ", to: &writer) { json in
            json.list("requests", look.requests) { $1.members(of: $0) }
            json.member("skipped", count: look.skipped)
        }
        return true
    }

    private func send(
        _ head: String, to writer: inout any ResponseBodyWriter, _ members: (inout JSONWriter) -> Void
    ) async throws(RequestFailure) {
        var json = JSONWriter()
        json.object(members)
        try await write(head + String(decoding: json.bytes, as: UTF8.self) + "\n\n", to: &writer)
    }

    private func write(_ text: String, to writer: inout any ResponseBodyWriter) async throws(RequestFailure) {
        // The client is gone: nobody reads why the stream ended.
        do { try await writer.write(ByteBuffer(string: text)) } catch { throw .tryAgain("the client has gone") }
    }

    private static func end(of failure: RequestFailure) -> String {
        var json = JSONWriter()
        json.object { writer in
            writer.member("serverErrorCode", failure.error.code.rawValue)
            writer.member("reason", failure.error.reason)
            writer.retryAfter(failure.error)
        }
        return "event: end\ndata: \(String(decoding: json.bytes, as: UTF8.self))\n\n"
    }
}

/// How far each node's log was followed, as the id of an event: `1-18f3a2-40_2-...`, node, start and count of each.
struct RequestMarks: Hashable {
    var marks: [UInt64: FollowedRequests.Mark]

    init(marks: [UInt64: FollowedRequests.Mark]) { self.marks = marks }

    init?(_ text: String) {
        marks = [:]
        for part in text.split(separator: "_", omittingEmptySubsequences: false) {
            let numbers = part.split(separator: "-", omittingEmptySubsequences: false)
            guard numbers.count == 3, let node = UInt64(numbers[0]), let start = UInt64(numbers[1], radix: 16),
                let count = UInt64(numbers[2])
            else { return nil }
            marks[node] = FollowedRequests.Mark(start: start, count: count)
        }
    }

    var text: String {
        marks.sorted { $0.key < $1.key }.map { "\($0.key)-\(String($0.value.start, radix: 16))-\($0.value.count)" }
            .joined(separator: "_")
    }
}
