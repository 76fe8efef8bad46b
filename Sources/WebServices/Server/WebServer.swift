import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
import Service
import ServiceLifecycle

/// Where clients are served, with what certificate, and within what limits.
package struct WebServerSettings: Sendable {
    /// The name or address to listen on.
    package var host: String
    /// 0 takes a free port.
    package var port: Int
    /// PEM files; when they change, new connections use what they say, without restart.
    package var certificatePath: String
    /// The certificate's private key, read together with it.
    package var keyPath: String
    /// What clients may hold, and how long they may take.
    package var limits = EdgeLimits()
    /// How long the certificate files are not looked at again after a look.
    package var certificateCheckInterval: TimeAmount = .seconds(1)

    package init(host: String, port: Int, certificatePath: String, keyPath: String) {
        self.host = host
        self.port = port
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// The HTTPS edge of a node.
package struct WebServer: Service {
    /// What the edge did.
    package let counters = EdgeCounters()
    private let serve: @Sendable () async throws -> Void
    /// Ends what would keep its connection for as long as the client likes.
    private var onStop: @Sendable () -> Void = {}
    /// Connections that are taken at once.
    private let connectionsMax: Int

    /// - Parameter onListening: called once the port takes connections.
    /// - Throws: when the certificate or its key cannot be read.
    package init(
        _ settings: WebServerSettings, context: WebContext, logger: Logger,
        onListening: @escaping @Sendable () async -> Void
    ) throws {
        try self.init(
            settings, responder: WebResponder(context: context), logger: logger,
            pass: { [context] in context.isPassed($0, authorization: $1) },
            onRefusal: { [journal = context.service.requests] refusal, id, address in
                journal.take(RequestEntry(refusal, id: id, address: address), isKnown: true)
            }
        ) { _ in await onListening() }
        context.metrics.follow(counters)
        context.service.watches.fit(toConnections: connectionsMax)
        onStop = { [watches = context.service.watches] in watches.close() }
    }

    /// Serves what any responder answers.
    /// - Parameters:
    ///   - pass: which requests are served though their connection is beyond a limit.
    ///   - onRefusal: hears of what the edge answers in its place.
    ///   - onListening: called with the port once it takes connections.
    init<Responder: HTTPResponder>(
        _ settings: WebServerSettings, responder: Responder, logger: Logger,
        pass: @escaping EdgePass = { _, _ in false },
        onRefusal: @escaping EdgeRefusal.Listener = { _, _, _ in },
        onListening: @escaping @Sendable (Int) async -> Void
    ) throws where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
        let limits = settings.limits.fitted(toDescriptors: OpenFiles.raiseLimit())
        connectionsMax = limits.connectionsMax
        if limits.connectionsMax < settings.limits.connectionsMax {
            logger.warning(
                "only \(limits.connectionsMax) connections of clients are taken: the process may not open more files; raise its limit (ulimit -n) for \(settings.limits.connectionsMax)"
            )
        }
        let edge = Edge(
            limits: limits, certificates: try ServerCertificates(settings, counters: counters, logger: logger),
            counters: counters, logger: logger, pass: pass, onRefusal: onRefusal)
        let application = Application(
            responder: LargeRequestsElsewhere(responder: responder),
            server: HTTPServerBuilder { EdgeChannel(responder: $0, edge: edge) },
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), serverName: "zonekeeper", backlog: 1_024),
            onServerRunning: { await onListening($0.localAddress?.port ?? settings.port) },
            logger: logger)
        serve = { try await application.run() }
    }

    /// Serves clients until a graceful shutdown or cancellation. A shutdown ends open watches too.
    /// - Throws: `IOError` where the port is in use; a retry helps once it is free.
    package func run() async throws {
        try await withGracefulShutdownHandler {
            try await serve()
        } onGracefulShutdown: {
            onStop()
        }
    }
}
