import Admission
import Cluster
import Foundation
import Logging
import NIOCore
import NIOPosix
import PeerTransport
import Service
import ServiceLifecycle
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

    /// Returns after SIGTERM or SIGINT, when everything is closed. A node that the cluster wants nothing of answers what was asked
    /// of it before, and then ends the process.
    /// - Throws: `CommandFailure` with what kept the node from starting.
    func run() async throws {
        let exclusion = ExclusionService()
        let node = try await start(exclusion)
        let context = WebContext(
            service: RecordService(node: node, logger: logger),
            administrator: AdministratorToken(secret: plan.administratorSecret))
        let server: WebServer
        do {
            server = try WebServer(plan.web, context: context, logger: logger) { [plan, logger] in
                logger.info("serving clients on \(plan.web.host) port \(plan.web.port)")
                if let greeting = plan.greeting { print(greeting) }
                fflush(nil)
            }
        } catch {
            await node.stop()
            throw CommandFailure(
                "the client certificate \(plan.web.certificatePath) or its key \(plan.web.keyPath) cannot be used: \(error)"
            )
        }
        var configuration = ServiceGroupConfiguration(
            services: [
                .init(service: NodeService(node: node, context: context, logger: logger)), .init(service: server),
                .init(service: exclusion, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
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

    /// - Parameter exclusion: is told when the cluster wants nothing of the node.
    private func start(_ exclusion: ExclusionService) async throws -> ClusterNode {
        let node: ClusterNode
        do {
            node = try await ClusterNode.open(
                plan.settings, platform: SystemPlatform(eventLoop: MultiThreadedEventLoopGroup.singleton.next()),
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
