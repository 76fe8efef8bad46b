import Testing

@testable import ServiceClient

@Suite("How notifications come")
struct NotificationTransportTests {
    @Test("By long polls after three streams that brought nothing, and by a stream again after a while")
    func polling() {
        var transport = NotificationTransport()
        for _ in 0..<2 { transport.broke() }
        transport.received()
        for _ in 0..<2 { transport.broke() }
        #expect(!transport.isPolling)
        transport.broke()
        #expect(transport.isPolling)
        for _ in 0..<19 { transport.polled() }
        #expect(transport.isPolling)
        transport.polled()
        #expect(!transport.isPolling)
        transport.broke()
        #expect(transport.isPolling)
    }
}
