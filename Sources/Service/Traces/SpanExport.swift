package import Cluster
package import Logging
import PeerTransport
import Synchronization
package import Telemetry

/// Writes the spans of a node to a file every second, on a thread of its own: no request waits for it, and what it
/// cannot write is dropped and counted.
package final class SpanExport: Sendable {
    /// Where to, and how much.
    package struct Settings: Sendable {
        /// The folder of the files, which is made.
        package var folder: String
        /// What the files may have together.
        package var bytesMax = 64 << 20

        /// - Parameter folder: of the files.
        package init(folder: String) { self.folder = folder }
    }

    /// Spans of one line: a line of them has a few 100 KB.
    private static let spansPerLineMax = 500
    private static let intervalMilliseconds: UInt64 = 1_000

    private let queue: SpanQueue
    private let resource: [(name: String, value: String)]
    private let file: Mutex<SpanFile>
    private let rounds = Mutex<(any Rounds)?>(nil)
    private let quietLog = Mutex(QuietLog())
    private let logger: Logger

    /// - Parameters:
    ///   - queue: where the spans wait.
    ///   - node: whose spans they are.
    package init(_ queue: SpanQueue, _ settings: Settings, of node: NodeSettings, logger: Logger) {
        self.queue = queue
        self.logger = logger
        file = Mutex(SpanFile(folder: settings.folder, bytesMax: settings.bytesMax))
        resource = [
            ("service.name", "zonekeeper"), ("service.namespace", node.clusterID),
            ("service.instance.id", "\(node.nodeID)"), ("service.version", node.version),
        ]
    }

    /// Begins the rounds.
    package func start(on platform: any NodePlatform) {
        let begun = platform.makeRounds(name: "traces", everyMilliseconds: Self.intervalMilliseconds) { [weak self] in
            self?.write()
        }
        rounds.withLock { $0 = begun }
    }

    /// Ends them, and writes what waits. Blocks for as long as that takes.
    package func stop() {
        rounds.withLock { $0.take() }?.stop()
        write()
    }

    /// Writes what waits.
    func write() {
        var spans = queue.takeAll()[...]
        while !spans.isEmpty {
            let some = Array(spans.prefix(Self.spansPerLineMax))
            spans = spans.dropFirst(some.count)
            let line = SpanLine.line(some, resource: resource)
            do {
                try file.withLock { try $0.append(line) }
                queue.count(some.count, isWritten: true)
            } catch {
                queue.count(some.count, isWritten: false)
                quietLog.withLock { $0.log(logger, .warning, "traces cannot be written: \(error)", key: "traces") }
            }
        }
    }
}
