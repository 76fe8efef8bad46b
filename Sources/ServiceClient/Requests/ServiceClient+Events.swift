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
            let body: HTTPClientResponse.Body
            do {
                body = try await openEvents(of: request, at: url, showing: nil)
            } catch let refusal as ServiceFailure {
                throw refusal
            } catch {
                unreachable.note(error, at: url)
                continue
            }
            var parser = ServerSentEventParser(eventBytesMax: ServerSentEventParser.pageBytesMax)
            for try await part in body {
                for event in try parser.received(part.readableBytesView) {
                    guard try await take(event) else { return }
                }
            }
            return
        }
        throw unreachable
    }

    /// Opens a stream of server-sent events at one node.
    /// - Parameter heard: is given the head of the answer, also of a refusal.
    /// - Throws: `ServiceFailure` where the node refuses.
    func openEvents(
        of request: ServiceRequest, at url: String, showing token: String?, heard: (ServiceResponse) -> Void = { _ in }
    ) async throws -> HTTPClientResponse.Body {
        var message = try message(request, to: url, showing: token)
        message.headers.add(name: "Accept", value: "text/event-stream")
        let answer = try await http.execute(message, timeout: .seconds(30))
        var head = ServiceResponse(status: Int(answer.status.code), headers: answer.headers, body: [])
        heard(head)
        if head.status == 200, answer.headers.first(name: "Content-Type")?.hasPrefix("text/event-stream") == true {
            return answer.body
        }
        head.body = Array(try await answer.body.collect(upTo: Self.responseBytesMax).readableBytesView)
        throw ServiceFailure(head)
    }
}
