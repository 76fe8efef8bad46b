import Admission
import Cluster
import Foundation
import Logging
import NIOCore
import NIOPosix
import PeerTransport
import Service
import ServiceLifecycle
import Synchronization
import Telemetry
import UnixSignals
import WebServices

/// Runs one node in this process until a signal ends it.
struct NodeRunner {
    /// What the process ends with when the node must not go on: EX_SOFTWARE.
    static let fatalExitCode: Int32 = 70
    /// What it ends with when the cluster wants nothing of the node: EX_CONFIG. Starting it again changes nothing.
    static let excludedExitCode: Int32 = 78
    /// How long requests in flight are waited for, in seconds, when the node is told to stop.
    static let drainSeconds: Int64 = 5

    /// How long a node that the cluster wants nothing of may take to end, in seconds.
    static let endingSeconds = 45

    var plan: NodePlan
    var logger: Logger

    /// Returns after SIGTERM or SIGINT, when everything is closed. A node that the cluster wants nothing of answers
    /// what was asked of it before, and then ends the process.
    func run() async throws {
        let exclusion = ExclusionService()
        let node = try await start(exclusion)
        let context = WebContext(
            service: RecordService(node: node, settings: plan.service, logger: logger),
            administrator: AdministratorToken(secret: plan.administratorSecret), origin: plan.origin,
            consoleFolder: plan.consoleFolder)
        let server: WebServer
        do {
            server = try WebServer(plan.web, context: context, logger: logger) { [plan, logger] in
                logger.info("serving clients on \(plan.web.host) port \(plan.web.port)")
                if let greeting = plan.greeting { print(greeting) }
            }
        } catch {
            await node.stop()
            throw CommandFailure(
                "the client certificate \(plan.web.certificatePath) or its key \(plan.web.keyPath) cannot be used: "
                    + "\(error)")
        }
        var configuration = ServiceGroupConfiguration(
            services: services(
                NodeService(node: node, context: context, traces: traces, logger: logger), server, exclusion),
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        // Also where the services did not end in order.
        defer { if case .excluded = node.ending { exit(Self.excludedExitCode) } }
        configuration.maximumGracefulShutdownDuration = .seconds(Self.drainSeconds + 15)
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch let error as IOError where error.errnoCode == EADDRINUSE {
            throw CommandFailure(
                "port \(plan.web.port) on \(plan.web.host) is in use: stop what uses it, or choose another client port")
        } catch let error as IOError {
            throw CommandFailure(
                "clients cannot be served on \(plan.web.host) port \(plan.web.port): "
                    + String(cString: strerror(error.errnoCode)))
        }
    }

    /// Writes the node's traces; nil where none are recorded.
    private var traces: SpanExport? {
        guard let tracer = plan.settings.tracer, let settings = plan.traces else { return nil }
        return SpanExport(tracer.queue, settings, of: plan.settings, logger: logger)
    }

    /// In the order in which they begin.
    private func services(
        _ node: NodeService, _ server: WebServer, _ exclusion: ExclusionService
    ) -> [ServiceGroupConfiguration.ServiceConfiguration] {
        [
            .init(service: node), .init(service: server),
            .init(service: exclusion, successTerminationBehavior: .gracefullyShutdownGroup),
        ]
    }

    /// A loop with a thread of its own, so that what clients' connections do keeps no message of Raft waiting. They get
    /// as many threads as there are other processors.
    private static func laneLoop() -> any EventLoop {
        NIOSingletons.groupLoopCountSuggestion = max(1, System.coreCount - 1)
        return MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
    }

    private func start(_ exclusion: ExclusionService) async throws -> ClusterNode {
        let node: ClusterNode
        do {
            node = try await ClusterNode.open(
                plan.settings, platform: SystemPlatform(eventLoop: Self.laneLoop()),
                logger: logger)
        } catch let error as NodeStartError {
            throw CommandFailure(error.description)
        } catch let error as PeerTransportError {
            throw CommandFailure(error.description)
        } catch {
            throw CommandFailure("node \(plan.settings.nodeID) cannot be opened in \(plan.settings.dataPath): \(error)")
        }
        do {
            try await node.start { [logger, weak node] reason in
                switch node?.ending {
                case .excluded:
                    logger.critical("this node ends: \(reason)")
                    // Whatever hangs: a disk may be why the node was removed.
                    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Self.endingSeconds)) {
                        exit(Self.excludedExitCode)
                    }
                    return exclusion.exclude()
                case .beginsAnew where exclusion.isStopping:
                    return logger.error("the node begins anew when it is started again: \(reason)")
                case .beginsAnew:
                    logger.error("the node begins anew: \(reason)")
                    Restart.run(logger)
                case nil: logger.critical("the node must not go on: \(reason)")
                }
                exit(Self.fatalExitCode)
            }
        } catch {
            // Nothing was begun that would need a stop in order: the process ends.
            throw CommandFailure("\(error)")
        }
        return node
    }
}

/// A started node, until it is told to stop. It stops after the web server, which is added after it.
struct NodeService: Service {
    var node: ClusterNode
    /// What goes on beside the requests ends with the node.
    var context: WebContext
    /// Nil where no traces are recorded.
    var traces: SpanExport?
    var logger: Logger

    func run() async throws {
        context.start()
        traces?.start(on: node.platform)
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                do {
                    try await node.awaitMap()
                } catch is CancellationError {
                    return
                } catch {
                    logger.critical("the node must not serve: \(error)")
                    exit(NodeRunner.fatalExitCode)
                }
            }
            // Cancellation, when another service failed, ends the node as a signal does.
            try? await gracefulShutdown()
            tasks.cancelAll()
        }
        logger.info("stopping")
        await context.stop()
        await node.stop()
        traces?.stop()
        logger.info("stopped")
    }
}

/// Waits until the cluster wants nothing of the node; then all services are to end in order. It ends before the web
/// server, after which it is added.
final class ExclusionService: Service {
    private let exclusions: AsyncStream<Never>
    private let exclusion: AsyncStream<Never>.Continuation
    private let stopping = Atomic(false)

    /// Whether the services have begun to end, for whatever reason.
    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    init() { (exclusions, exclusion) = AsyncStream.makeStream() }

    func exclude() { exclusion.finish() }

    func run() async throws {
        for await _ in exclusions.cancelOnGracefulShutdown() {}
        stopping.store(true, ordering: .releasing)
    }
}

/// Executes this program again, with the same arguments, environment and process id.
enum Restart {
    /// Returns only if the system refuses.
    static func run(_ logger: Logger) {
        closeFilesOnExec()
        var signals = sigset_t()
        sigemptyset(&signals)
        sigprocmask(SIG_SETMASK, &signals, nil)
        for number in [SIGTERM, SIGINT] { signal(number, SIG_DFL) }
        let words = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", words)
        logger.critical("the process cannot begin anew: \(String(cString: strerror(errno)))")
    }

    /// Sockets and locks of the old program must not stay open in the new one.
    private static func closeFilesOnExec() {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in open.compactMap(Int32.init) where descriptor > STDERR_FILENO {
            let flags = fcntl(descriptor, F_GETFD)
            if flags >= 0 { _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) }
        }
    }
}
