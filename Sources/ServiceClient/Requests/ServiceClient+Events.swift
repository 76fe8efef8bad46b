import AsyncHTTPClient
import NIOCore
import NIOHTTP1

extension ServiceClient {
    /// Follows a stream of server-sent events at the first node that serves it, and hands over each event.
    ///
    /// Returns when the node ends the stream, or `take` has enough.
    /// - Parameter take: whether it wants more.
    /// - Throws: `ServiceUnreachable` where no node can be reached; `ServiceFailure` where one refuses; what breaks the
    ///   connection.
    package func events(
        of request: ServiceRequest, _ take: (ServerSentEvent) async throws -> Bool
    ) async throws {
        var unreachable = ServiceUnreachable()
        for url in urls {
            var message = try message(request, to: url, showing: nil)
            message.headers.add(name: "Accept", value: "text/event-stream")
            let answer: HTTPClientResponse
            do {
                answer = try await http.execute(message, deadline: .distantFuture)
            } catch {
                unreachable.note(error, at: url)
                continue
            }
            guard answer.status == .ok else {
                let body = try await answer.body.collect(upTo: Self.responseBytesMax)
                throw ServiceFailure(
                    ServiceResponse(
                        status: Int(answer.status.code), headers: answer.headers, body: Array(body.readableBytesView)))
            }
            var parser = ServerSentEventParser(eventBytesMax: 16 << 20)
            for try await part in answer.body {
                for event in try parser.received(part.readableBytesView) {
                    guard try await take(event) else { return }
                }
            }
            return
        }
        throw unreachable
    }
}
