import Foundation
package import Logging
package import NIOCore
package import PeerTransport
package import Storage

/// The system's clocks, threads and sockets.
package struct SystemPlatform: NodePlatform {
    package let eventLoop: any EventLoop
    package var clock: any NodeClock { SystemClock() }
    package var logScheduling: LogScheduling { .threads }

    package init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package func random() -> UInt64 { .random(in: 0 ... .max) }

    package func makeWorkPool(threads: Int) -> any WorkPool { SystemThreads(threads) }

    package func makeSerialQueue(name: String) -> any SerialQueue { SerialThread(name: name) }

    package func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds {
        TimedThread(name: name, everyMilliseconds: everyMilliseconds, round)
    }

    package func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork {
        try PeerTransport(configuration: configuration, eventLoop: eventLoop, delegate: delegate, logger: logger)
    }

    package func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { Task { await body() } }
}
