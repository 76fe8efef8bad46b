import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization
package import WebServices

/// The HTTP API without HTTP: the same responder that the server runs, called in the process.
package struct InProcessService: Sendable {
    /// A request as it would come over the wire.
    package struct Request: Sendable {
        package var method: String
        /// Path and query, such as `/database/1/...?ckAPIToken=...`.
        package var target: String
        package var headers: [(name: String, value: String)] = []
        package var body: [UInt8] = []
        /// Done when the node begins to read the body: what happens elsewhere while the body is on its way.
        package var whileBodyComes: (@Sendable () async -> Void)?

        package init(method: String, target: String) {
            self.method = method
            self.target = target
        }
    }

    /// What the server would send.
    package struct Answer: Sendable {
        package var status: Int
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]
    }

    private let responder: WebResponder

    /// For one node.
    package init(context: WebContext) { responder = WebResponder(context: context) }

    /// The whole answer.
    package func answer(_ request: Request) async throws -> Answer {
        let response = await respond(to: request)
        let writer = Collector()
        try await response.body.write(writer)
        return Answer(
            status: Int(response.status.code),
            headers: response.headers.map { ($0.name.rawName, $0.value) }, body: await writer.bytes.value)
    }

    /// An answer that comes in parts, for as long as it goes on.
    /// - Parameters:
    ///   - head: is given the answer without its body.
    ///   - part: is given each part of the body; what it throws ends the answer, as a client does that goes away.
    package func answer(
        _ request: Request, head: @Sendable (Answer) async -> Void,
        part: @escaping @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        let response = await respond(to: request)
        await head(
            Answer(
                status: Int(response.status.code),
                headers: response.headers.map { ($0.name.rawName, $0.value) }, body: []))
        try await response.body.write(Taker(part: part))
    }

    private func respond(to request: Request) async -> Response {
        var head = HTTPRequest(
            method: HTTPRequest.Method(request.method) ?? .get, scheme: "https", authority: "localhost",
            path: request.target)
        for (name, value) in request.headers {
            if let name = HTTPField.Name(name) { head.headerFields.append(HTTPField(name: name, value: value)) }
        }
        let begun = Atomic(false)
        let parts = AsyncStream<ByteBuffer> { [request] in
            if begun.exchange(true, ordering: .relaxed) { return nil }
            await request.whileBodyComes?()
            return ByteBuffer(bytes: request.body)
        }
        let body = RequestBody(asyncSequence: parts)
        let context = EdgeContext(core: CoreRequestContextStorage(source: Source()))
        return await responder.respond(to: Hummingbird.Request(head: head, body: body), context: context)
    }

    /// Requests that come over no connection.
    private struct Source: RequestContextSource {
        let logger = Logger(label: "in process") { _ in SwiftLogNoOpLogHandler() }
    }

    /// Hands over what the body writes.
    private struct Taker: ResponseBodyWriter {
        let part: @Sendable ([UInt8]) async throws -> Void
        mutating func write(_ buffer: ByteBuffer) async throws { try await part(Array(buffer.readableBytesView)) }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    /// Keeps what the body writes.
    private struct Collector: ResponseBodyWriter {
        actor Bytes {
            var value: [UInt8] = []
            func append(_ buffer: ByteBuffer) { value.append(contentsOf: buffer.readableBytesView) }
        }
        let bytes = Bytes()
        mutating func write(_ buffer: ByteBuffer) async throws { await bytes.append(buffer) }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}
