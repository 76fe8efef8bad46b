import NIOCore
import NIOPosix
import NIOSSL

/// What a run measured.
struct LoadResult: Sendable {
    var measurement: LoadMeasurement
    /// From the start to the last answer.
    var seconds: Double
    var wasInterrupted: Bool
    /// What the tester's own thread took.
    var testerCPUSeconds: Double
    /// The part of the machine's CPU time that nobody used, 0 to 1; nil where the system does not say.
    var machineIdleShare: Double?
}

/// A run: connections first, then the requests.
struct LoadRun: Sendable {
    let settings: LoadSettings
    let targets: [LoadTarget]
    let sessions: [LoadTokens]
    /// Path of the CA that signed the nodes' certificates; nil for the system's.
    let authority: String?
    let stop: LoadStop
    /// How long one connection may take to be made.
    var handshakeTimeout = LoadConnector.usualHandshakeTimeout

    /// - Parameter watch: looks on while the run goes; it ends when its task is cancelled.
    /// - Throws: `CommandFailure` if the authority's file cannot be used.
    func run(watch: @Sendable @escaping (LoadWatch) async -> Void = { _ in }) async throws -> LoadResult {
        let tls = try NIOSSLContext(configuration: LoadClient.tls(authority: authority))
        let deck = LoadDeck(settings, targets: targets, sessions: sessions)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let result = try await run(
                deck, LoadConnector(loop: group.any(), tls: tls, handshakeTimeout: handshakeTimeout), watch)
            try await group.shutdownGracefully()
            return result
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }

    private func run(
        _ deck: LoadDeck, _ connector: LoadConnector, _ watch: @Sendable @escaping (LoadWatch) async -> Void
    ) async throws -> LoadResult {
        let loop = connector.loop
        var patient = connector
        // All handshakes at once take the nodes longer than one.
        patient.handshakeTimeout = connector.handshakeTimeout + .milliseconds(Int64(settings.connections) * 5)
        let patientConnector = patient
        let warm = try await loop.submit { NIOLoopBound(LoadWarmUp(self, patientConnector), eventLoop: loop) }.get()
        // Handshakes happen before the clock starts; connections that fail will be met again when they are needed.
        try await loop.flatSubmit { warm.value.open() }.get()
        let done = loop.makePromise(of: Void.self)
        let idleBefore = MachineTime.read()
        let engine = try await loop.submit {
            let engine = LoadEngine(
                settings, connector: connector, deck: deck, pools: warm.value.pools, stop: stop, done: done)
            return NIOLoopBound(engine, eventLoop: loop)
        }.get()
        let watching = Task { await watch(LoadWatch(engine: engine, loop: loop)) }
        try await loop.submit { warm.value.handOver(to: engine.value) }.get()
        try await done.futureResult.get()
        watching.cancel()
        await watching.value
        var result = try await loop.submit { engine.value.result }.get()
        result.machineIdleShare = MachineTime.idleShare(from: idleBefore, to: MachineTime.read())
        try await loop.submit { engine.value.close() }.get()
        return result
    }

    fileprivate var connectionsOfTarget: Int { (settings.connections + targets.count - 1) / targets.count }
}

/// Opens the connections of a run, and owns them until its engine takes them over.
private final class LoadWarmUp: LoadConnectionOwner {
    private(set) var pools: [LoadPool]
    private let connector: LoadConnector
    private let stop: LoadStop
    private var connections: [LoadConnection] = []
    private var opening = 0
    private var looking: RepeatedTask?
    private let opened: EventLoopPromise<Void>

    init(_ run: LoadRun, _ connector: LoadConnector) {
        self.connector = connector
        stop = run.stop
        pools = run.targets.map { LoadPool(target: $0, connectionsMax: run.connectionsOfTarget) }
        opened = connector.loop.makePromise()
    }

    func open() -> EventLoopFuture<Void> {
        connections = pools.enumerated().flatMap { index, pool in
            (0..<pool.connectionsMax).map { _ in LoadConnection(target: index, owner: self) }
        }
        opening = connections.count
        let bound = NIOLoopBound(self, eventLoop: connector.loop)
        looking = connector.loop.scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) {
            _ in bound.value.giveUpIfStopped()
        }
        for connection in connections { connector.connect(connection, to: pools[connection.target].target) }
        return opened.futureResult
    }

    /// A run that is to end does not wait for handshakes.
    private func giveUpIfStopped() {
        guard stop.isSet else { return }
        for connection in connections where !connection.isReady { connection.close("stopped") }
    }

    func handOver(to engine: LoadEngine) {
        for connection in pools.flatMap(\.idle) {
            connection.owner = engine
            engine.underWay[ObjectIdentifier(connection)] = connection
        }
        engine.pools = pools
        pools = []
        engine.begin()
    }

    func connectionBecameReady(_ connection: LoadConnection) {
        pools[connection.target].idle.append(connection)
        settled()
    }

    func connection(_ connection: LoadConnection, received answer: HTTPAnswer) {
        connection.close("an answer to no request")
    }

    func connection(_ connection: LoadConnection, wasLost reason: String) {
        guard let index = pools[connection.target].idle.firstIndex(where: { $0 === connection }) else {
            return settled()
        }
        pools[connection.target].idle.remove(at: index)
    }

    private func settled() {
        opening -= 1
        guard opening == 0 else { return }
        looking?.cancel()
        connections = []
        opened.succeed()
    }
}
