import RecordModel
import Synchronization
import TestSupport
import Testing
import WebServices

// A user's preferences.
extension Space {
    func preferencesCall(_ action: String, _ body: JSONValue, method: String = "POST") -> Call {
        var call = request("", method == "POST" ? body : nil, method: method)
        call.path = "/kv/1/\(container)/\(environment)/\(action)"
        return call
    }

    func preferences(_ action: String, _ body: JSONValue = [:]) async throws -> Answer {
        try await send(preferencesCall(action, body))
    }

    /// Sets keys, and deletes those whose value is null.
    func set(_ values: [(String, JSONValue)]) async throws -> Answer {
        try await preferences(
            "set", ["writes": .array(values.map { ["key": .string($0.0), "value": $0.1] })])
    }

    /// The token after everything that the store holds now.
    func preferencesToken() async throws -> String {
        let answer = try await preferences("changes")
        try #require(answer.json["moreComing"] == false, "\(answer)")
        return try #require(answer.json["syncToken"]?.string)
    }
}

/// The stream of a watch in this process.
final class MemoryStream: Sendable {
    /// What was answered at first; and then the events, in order.
    let answer: Answer
    private let events: AsyncStream<StreamEvent>
    private let task: Task<Void, Never>

    struct Gone: Error {}

    /// Returns when the answer has begun.
    init(_ call: Call, of service: any ConformanceService) async throws {
        let memory = try #require(service as? MemoryService)
        var request = InProcessService.Request(method: call.method, target: call.target)
        request.headers = call.headers.map { (name: $0.0, value: $0.1) }
        let (events, continuation) = AsyncStream.makeStream(of: StreamEvent.self)
        let (heads, headContinuation) = AsyncStream.makeStream(of: Answer.self)
        let parser = Mutex(EventParser())
        let bytes = Mutex<[UInt8]>([])
        task = Task {
            do {
                try await memory.node.service.answer(request) { head in
                    let answer = Answer(
                        status: head.status, headers: head.headers.map { ($0.name, $0.value) }, body: [])
                    if head.status == 200 { headContinuation.yield(answer) } else { bytes.withLock { $0 = [] } }
                } part: { part in
                    if Task.isCancelled { throw Gone() }
                    bytes.withLock { $0 += part }
                    for event in parser.withLock({ $0.take(part) }) { continuation.yield(event) }
                }
            } catch {}
            headContinuation.yield(Answer(status: 0, headers: [], body: bytes.withLock { $0 }))
            headContinuation.finish()
            continuation.finish()
        }
        self.events = events
        var first: Answer?
        for await answer in heads {
            first = answer
            break
        }
        answer = try #require(first)
    }

    /// The next event; nil when the stream has ended.
    func next() async -> StreamEvent? {
        for await event in events { return event }
        return nil
    }

    func close() { task.cancel() }
}
