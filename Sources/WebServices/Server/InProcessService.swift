import HTTPTypes
import Hummingbird
import NIOCore

/// The HTTP API without HTTP: the same responder that the server runs, called in the process.
package struct InProcessService: Sendable {
    /// A request as it would come over the wire.
    package struct Request: Sendable {
        package var method: String
        /// Path and query, such as `/database/1/...?ckAPIToken=...`.
        package var target: String
        package var headers: [(name: String, value: String)] = []
        package var body: [UInt8] = []

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

    package init(context: WebContext) { responder = WebResponder(context: context) }

    package func answer(_ request: Request) async throws -> Answer {
        var head = HTTPRequest(
            method: HTTPRequest.Method(request.method) ?? .get, scheme: "https", authority: "localhost",
            path: request.target)
        for (name, value) in request.headers {
            if let name = HTTPField.Name(name) { head.headerFields.append(HTTPField(name: name, value: value)) }
        }
        let body = RequestBody(buffer: ByteBuffer(bytes: request.body))
        let response = await responder.answer(Hummingbird.Request(head: head, body: body), address: nil)
        let writer = Collector()
        try await response.body.write(writer)
        return Answer(
            status: Int(response.status.code),
            headers: response.headers.map { ($0.name.rawName, $0.value) }, body: await writer.bytes.value)
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
