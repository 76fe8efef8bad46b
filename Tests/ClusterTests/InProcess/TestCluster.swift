import Authorization
import Certificates
import Cluster
import Directory
import Foundation
import Logging
import NIOCore
import NIOPosix
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Storage
import Synchronization
import TestSupport
import Testing
import Wire

/// Nodes of a cluster in this process: real logs, databases, TLS and TCP, in a folder that goes with the value.
final class TestCluster {
    let folder: String
    var nodes: [UInt64: ClusterNode] = [:]
    private(set) var settings: [NodeSettings]
    /// The machines' wall clocks, by node less one.
    let clocks: [TestClock]

    /// - Parameter change: adjusts each node's settings.
    init(nodeCount: Int, _ change: (inout NodeSettings) -> Void = { _ in }) async throws {
        folder = NSTemporaryDirectory() + "zonekeeper-cluster-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let certificates = try CertificateFolder.create(path: folder + "/certs", commonName: "test", now: Date())
        let ports = try FreePorts.take(nodeCount)
        let members = ports.enumerated().map { offset, port in
            ClusterMap.Node(
                id: UInt64(offset + 1), peerHost: "127.0.0.1", peerPort: port,
                clientURL: "https://127.0.0.1:\(offset + 1)")
        }
        var settings: [NodeSettings] = []
        for member in members {
            try certificates.issueNode(nodeID: member.id, hosts: [], now: Date())
            let paths = certificates.node(member.id)
            var node = NodeSettings(
                nodeID: NodeID(member.id), clusterID: "test", dataPath: folder + "/node-\(member.id)", nodes: members,
                peerListenHost: "127.0.0.1",
                tls: PeerTLS(
                    authorityPath: certificates.path + "/peer-ca.pem", certificatePath: paths.peerCertificatePath,
                    keyPath: paths.peerKeyPath))
            node.shardCount = 4
            // A busy machine may need longer to elect a leader than a client's request waits.
            node.requestDeadlineMilliseconds = 60_000
            change(&node)
            settings.append(node)
        }
        self.settings = settings
        clocks = settings.map { _ in TestClock() }
    }

    /// A cluster whose nodes all run and know the map.
    static func started(
        nodeCount: Int, _ change: (inout NodeSettings) -> Void = { _ in }
    ) async throws -> TestCluster {
        let cluster = try await TestCluster(nodeCount: nodeCount, change)
        try await cluster.start()
        try await cluster.awaitMaps()
        return cluster
    }

    /// Adjusts what a node is told at its next start.
    func change(_ id: UInt64, _ change: (inout NodeSettings) -> Void) { change(&settings[Int(id) - 1]) }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Opens and starts a node, or all.
    /// - Parameters:
    ///   - onFatalError: what to do where a node says that it must not go on.
    ///   - opened: what to do between the two.
    func start(
        _ ids: [UInt64]? = nil,
        onFatalError: @escaping @Sendable (NodeID, String) -> Void = { Issue.record("node \($0) stopped: \($1)") },
        opened: () throws -> Void = {}
    ) async throws {
        for settings in settings where ids?.contains(settings.nodeID.rawValue) ?? true {
            var logger = Logger(label: "node-\(settings.nodeID)")
            logger.logLevel = ProcessInfo.processInfo.environment["TEST_LOG"] == nil ? .critical : .debug
            let node = try await ClusterNode.open(
                settings,
                platform: TestPlatform(
                    system: SystemPlatform(eventLoop: MultiThreadedEventLoopGroup.singleton.next()),
                    clocks: clocks[Int(settings.nodeID.rawValue) - 1]),
                logger: logger)
            try opened()
            try await node.start { onFatalError(settings.nodeID, $0) }
            nodes[settings.nodeID.rawValue] = node
        }
    }

    /// Stops nodes in order.
    func stop(_ ids: [UInt64]? = nil) async {
        for id in (ids ?? nodes.keys.sorted()) {
            await nodes[id]?.stop()
            nodes[id] = nil
        }
    }

    func node(_ id: UInt64) throws -> ClusterNode { try #require(nodes[id]) }

    /// The folder of a node's data.
    func dataPath(_ id: UInt64) -> String { folder + "/node-\(id)" }

    func awaitMaps() async throws {
        for id in nodes.keys.sorted() { try await node(id).awaitMap() }
    }

    /// Sets the wall clock of every machine, and waits until the nodes have heard of each other's: until then they may
    /// take their own for wrong.
    func setClocks(aheadMilliseconds: Int64) async throws {
        for clock in clocks { clock.set(aheadMilliseconds: aheadMilliseconds) }
        for node in nodes.values {
            try await awaitTrue("the clocks of all nodes agree") { node.clockProblem == nil && node.clockDoubt == nil }
        }
    }
}

/// Lets others work until something is so, or the test is cancelled.
func yieldUntil(_ isSo: () async throws -> Bool) async throws {
    while try await !isSo() {
        try Task.checkCancellation()
        await Task.yield()
    }
}

/// The system's clocks, of which the one on the wall can be set.
final class TestClock: NodeClock {
    private let system = SystemClock()
    private let ahead = Atomic<Int64>(0)
    private let sleeps = Mutex<Set<UInt64>>([])

    var now: MonotonicTime { system.now }
    var wallMilliseconds: Int64 { system.wallMilliseconds + ahead.load(ordering: .relaxed) }
    func sleep(milliseconds: UInt64) async throws { try await system.sleep(milliseconds: noted(milliseconds)) }
    private func noted(_ milliseconds: UInt64) -> UInt64 {
        sleeps.withLock { _ = $0.insert(milliseconds) }
        return milliseconds
    }
    /// Whether somebody slept so long, or does.
    func wasAskedToSleep(milliseconds: UInt64) -> Bool { sleeps.withLock { $0.contains(milliseconds) } }
    func set(aheadMilliseconds: Int64) { ahead.store(aheadMilliseconds, ordering: .relaxed) }
}

/// The system's platform with another clock.
struct TestPlatform: NodePlatform {
    let system: SystemPlatform
    let clocks: TestClock

    var eventLoop: any EventLoop { system.eventLoop }
    var clock: any NodeClock { clocks }
    var logScheduling: LogScheduling { system.logScheduling }
    func random() -> UInt64 { system.random() }
    func makeWorkPool(threads: Int) -> any WorkPool { system.makeWorkPool(threads: threads) }
    func makeSerialQueue(name: String) -> any SerialQueue { system.makeSerialQueue(name: name) }
    func makeRounds(
        name: String, everyMilliseconds: UInt64, _ round: @escaping @Sendable () -> Void
    ) -> any Rounds {
        system.makeRounds(name: name, everyMilliseconds: everyMilliseconds, round)
    }
    func makeNetwork(
        _ configuration: PeerTransportConfiguration, delegate: any PeerTransportDelegate, logger: Logger
    ) throws -> any PeerNetwork {
        try system.makeNetwork(configuration, delegate: delegate, logger: logger)
    }
    func startTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { system.startTask(body) }
}

/// Commands as the edge makes them.
enum Commands {
    static let database = DatabaseKey(
        container: "iCloud.test", environment: .development, scope: .private, owner: "_me")
    static let zone = ZoneKey(database: database, name: ZoneKey.defaultZoneName)
    static let schema = Schema(types: [
        RecordType(
            name: "Note",
            fields: [
                FieldDefinition(name: "___recordID", type: FieldType(.reference), indexes: .queryable),
                FieldDefinition(name: "number", type: FieldType(.int64), indexes: [.queryable, .sortable]),
            ])
    ])

    static func installSchema() -> ShardCommand {
        .record(
            .installSchema(
                InstallSchema(
                    container: database.container, environment: database.environment, version: 1, schema: schema)))
    }

    static func save(_ name: String, number: Int64, zone: ZoneKey = zone) -> ShardCommand {
        .record(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 1_000,
                    operations: [
                        RecordChange(
                            .forceReplace, name, type: "Note",
                            fields: [RecordChange.FieldChange(name: "number", value: .int64(number))])
                    ])))
    }

    static func delete(_ name: String) -> ShardCommand {
        .record(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Caller(user: "_me"), time: 1_000,
                    operations: [RecordChange(.forceDelete, name)])))
    }

    static func submit(_ command: ShardCommand, zone: ZoneKey = zone, to node: ClusterNode) async throws
        -> RecordOutcome
    {
        let bytes = try await node.router.submit(
            GroupCommand(command), to: node.map.group(of: zone), by: node.deadline())
        return try RecordOutcome(decoding: bytes)
    }

    /// The JSON of a record, as a lookup through the node renders it.
    static func lookup(_ name: String, zone: ZoneKey = zone, on node: ClusterNode) async throws -> String {
        let read = ShardRead.lookup(
            ShardRead.RecordLookup(
                zone: zone, schemaVersion: 1, caller: Caller(user: "_me"),
                items: [(name, ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false))]))
        let bytes = try await node.router.read(read.encoded(), from: node.map.group(of: zone), by: node.deadline())
        guard case .found(let answer) = try ReadAnswer(decoding: bytes) else { throw TestFailure("unexpected answer") }
        return String(decoding: answer.bytes, as: UTF8.self)
    }
}
