import Admission
import Certificates
import Cluster
package import Directory
import Foundation
import Logging
import NIOPosix
import PeerTransport
import RaftCore
import RecordModel
package import Service
package import Telemetry
import WebServices
import Wire

/// One node in this process with the HTTP API around it, without HTTP: real log, databases and groups of one voter, in
/// a folder that goes with `stop`.
package final class SingleNode: Sendable {
    /// Where it keeps its data.
    package var dataPath: String { node.settings.dataPath }
    /// What answers requests.
    package let service: InProcessService
    /// The administrator's token.
    package static let administratorToken = String(repeating: "fedcba9876543210", count: 4)

    private let folder: String
    private let node: ClusterNode
    private let context: WebContext
    /// What was used, day by day; it is written when a test asks for it.
    package var history: UsageHistory { context.history }
    /// The operations below the HTTP API.
    package var recordService: RecordService { context.service }

    private init(folder: String, node: ClusterNode, settings: ServiceSettings, logger: Logger) {
        self.folder = folder
        self.node = node
        context = WebContext(
            service: RecordService(node: node, settings: settings, logger: logger),
            // A test that counts entries of logs must not depend on how long it takes.
            administrator: AdministratorToken(secret: Self.administratorToken), usageMilliseconds: 0)
        context.start()
        service = InProcessService(context: context)
    }

    /// Opens and starts a node that is ready to serve.
    /// - Throws: where the folder cannot be made, or no port is free.
    package static func start(
        shards: Int = 4, service: ServiceSettings = ServiceSettings(), tracer: NodeTracer? = nil
    ) async throws -> SingleNode {
        let folder = NSTemporaryDirectory() + "zonekeeper-single-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let certificates = try CertificateFolder.create(path: folder + "/certs", commonName: "test", now: Date())
        try certificates.issueNode(nodeID: 1, hosts: [], now: Date())
        let paths = certificates.node(1)
        let port = try FreePorts.take(1)[0]
        var settings = NodeSettings(
            nodeID: NodeID(1), clusterID: "single", dataPath: folder + "/node-1",
            nodes: [
                ClusterMap.Node(
                    id: 1, peerHost: "127.0.0.1", peerPort: port, clientURL: "https://127.0.0.1:1")
            ], peerListenHost: "127.0.0.1",
            tls: PeerTLS(
                authorityPath: certificates.path + "/peer-ca.pem", certificatePath: paths.peerCertificatePath,
                keyPath: paths.peerKeyPath))
        settings.shardCount = shards
        settings.tracer = tracer
        // What tests on a busy machine wait for is done at last.
        settings.requestDeadlineMilliseconds = 600_000
        settings.encryptionKey = (0..<32).map { UInt8($0) }
        var logger = Logger(label: "single")
        logger.logLevel = ProcessInfo.processInfo.environment["TEST_LOG"] == nil ? .critical : .debug
        let node = try await ClusterNode.open(
            settings, platform: SystemPlatform(eventLoop: MultiThreadedEventLoopGroup.singleton.next()), logger: logger)
        try await node.start { fatalError("the node under test stopped: \($0)") }
        try await node.awaitMap()
        let single = SingleNode(folder: folder, node: node, settings: service, logger: logger)
        try await single.awaitReady()
        try await single.liftRates()
        return single
    }

    /// Tests ask faster than apps.
    private func liftRates() async throws {
        var request = InProcessService.Request(method: "PATCH", target: "/admin/1/limits")
        request.headers = [("Authorization", "Bearer \(Self.administratorToken)")]
        request.body = Array(TestLimits.lifted.utf8)
        let answer = try await service.answer(request)
        guard answer.status == 200 else { throw TestFailure(String(decoding: answer.body, as: UTF8.self)) }
    }

    /// Waits until every group has a leader; each question is followed by a round of the directory's, which takes its
    /// time.
    private func awaitReady() async throws {
        for _ in 0..<5_000 {
            let answer = try await service.answer(InProcessService.Request(method: "GET", target: "/health/ready"))
            if answer.status == 200 { return }
            try? await node.refreshDirectory()
        }
        throw TestFailure("the node never became ready")
    }

    /// The files of the node's certificates, and when these expire, in seconds since 1970.
    package var certificates: [(name: String, expires: Int64?)] {
        node.settings.certificates.map { ($0.name, $0.expires) }
    }

    /// What seals and signs whatever clients carry.
    package var clusterSecret: ClusterSecret? { node.directory.snapshot.secret }

    /// The files of the node's folder of assets, with their sizes.
    package func assetFiles() throws -> [(path: String, size: Int)] {
        let root = URL(filePath: folder + "/node-1/assets", directoryHint: .isDirectory)
        let keys: Set<URLResourceKey> = [.isRegularFileKey, .fileSizeKey]
        let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: Array(keys))
        return try (found?.allObjects ?? []).compactMap {
            try ($0 as? URL).map { ($0.path, try $0.resourceValues(forKeys: keys)) }
        }
        // One of them says which key the others are sealed with.
        .filter { $0.1.isRegularFile == true && !$0.0.hasSuffix("/key-check") }.map { ($0.0, $0.1.fileSize ?? 0) }
    }

    /// A URL of an asset as it would be if its time were over; nil where it is no URL.
    package func expired(_ url: String) -> String? {
        let parts = url.split(separator: "/")
        guard parts.count > 5, let secret = node.directory.snapshot.secret else { return nil }
        let bytes = Base64URL.decode(parts[5])
        if var ticket = secret.ticket(bytes, as: AssetUploadTicket.self) {
            ticket.expires = 1
            return AssetURL.upload(ticket, secret, origin: "")
        }
        guard var ticket = secret.ticket(bytes, as: AssetDownloadTicket.self) else { return nil }
        ticket.expires = 1
        return AssetURL.download(ticket, secret, origin: "", field: "file")
    }

    /// A receipt of an asset as it would be if its time were over, or another zone's; nil where it is no receipt.
    package func receipt(_ text: String, _ change: (inout AssetReceipt) -> Void = { $0.expires = 1 }) -> String? {
        guard let secret = node.directory.snapshot.secret,
            var receipt = secret.ticket(Base64.decode(text), as: AssetReceipt.self)
        else { return nil }
        change(&receipt)
        return Base64.encode(secret.bytes(of: receipt))
    }

    /// Forgets what deleted users have subscribed to.
    /// - Returns: whether everything was looked through.
    package func forgetDeletedSubscribers() async -> Bool {
        // Who is unknown is looked for twice.
        let isWhole = await context.service.deletedSubscribers.forgetAll(in: context.service)
        return await context.service.deletedSubscribers.forgetAll(in: context.service) && isWhole
    }

    /// The users who have subscriptions or notifications in a container's development environment, sorted.
    package func subscribers(of container: String) async throws -> [String] {
        var users: [String] = []
        for group in node.map.groups.dropFirst() {
            let key = SchemaKey(container: container, environment: .development)
            let read = ShardRead.subscribers(.init(in: key, after: "", limit: 1_000))
            let bytes = try await node.router.read(
                read.encoded(), from: group, of: container, by: node.deadline())
            guard case .found(let found) = try ReadAnswer(decoding: bytes) else { continue }
            users += try SubscriberPage(decoding: found.bytes).users
        }
        return users.sorted()
    }

    /// Has every shard begin another incarnation, as after a restore: all tokens end.
    package func beginIncarnation(_ number: UInt64) async throws { try await NewIncarnation(of: node).begin(number) }

    /// What the node is made of, as far as it is still there.
    package struct Remains {
        private weak var node: ClusterNode?
        private weak var service: RecordService?

        init(_ node: ClusterNode, _ service: RecordService) { (self.node, self.service) = (node, service) }

        /// Whether nothing holds it any more.
        package var isGone: Bool { node == nil && service == nil }
    }

    /// For a look at it after its end.
    package var remains: Remains { Remains(node, context.service) }

    /// Stops the node and removes its folder.
    package func stop() async throws {
        await context.stop()
        await node.stop()
        try FileManager.default.removeItem(atPath: folder)
    }
}

/// What tests set of the cluster's limits.
package enum TestLimits {
    /// The body of `PATCH /admin/1/limits` that lets tests ask as fast as they can.
    package static let lifted = #"{"requestsPerSecond": 1000000, "keyValueRequestsPerSecond": 1000000}"#
}
