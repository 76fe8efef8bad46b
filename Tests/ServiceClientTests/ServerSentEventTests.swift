import Testing

@testable import ServiceClient

@Suite("Server-sent events")
struct ServerSentEventTests {
    private let stream = """
        : a comment\r
        id: 1\r
        event: changes\r
        data: {"a":\r
        data:1}\r
        \r
        data: second

        event: lost
        id: 2

        retry: 5
        data
        data:  two spaces\r\n\r\n
        """

    private let expected = [
        ServerSentEvent(id: "1", name: "changes", data: "{\"a\":\n1}"), ServerSentEvent(id: "1", data: "second"),
        ServerSentEvent(id: "2", data: "\n two spaces"),
    ]

    @Test("Events come out whole, in whatever pieces the stream comes", arguments: [1, 2, 3, 7, 1_000])
    func pieces(size: Int) throws {
        var parser = ServerSentEventParser(eventBytesMax: 100)
        var events: [ServerSentEvent] = []
        var rest = Array(stream.utf8)[...]
        while !rest.isEmpty {
            events += try parser.received(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        #expect(events == expected)
    }

    @Test("An event that never ends is given up, as a line and as data")
    func bounded() throws {
        var line = ServerSentEventParser(eventBytesMax: 10)
        #expect(throws: ServiceClientError.self) { try line.received(Array("data: 123456789".utf8)) }
        var data = ServerSentEventParser(eventBytesMax: 10)
        #expect(throws: ServiceClientError.self) {
            for _ in 0..<10 { _ = try data.received(Array("data:1234\n".utf8)) }
        }
        var comments = ServerSentEventParser(eventBytesMax: 10)
        for _ in 0..<100 { #expect(try comments.received(Array(": alive\n".utf8)).isEmpty) }
    }
}
