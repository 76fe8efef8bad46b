import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import CloudKit

/// What the framework does against a real node: one process, over HTTPS, started when the first case needs it and
/// stopped after the last. Each case has users or a container of its own on it.
@Suite(.cloud)
enum EndToEnd {}

/// Stops the node once everything ran.
struct CloudTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await finishing(function) { await Cloud.shared.stop() }
    }
}

extension Trait where Self == CloudTrait {
    static var cloud: Self { Self() }
}

/// The node.
final class CloudNode: @unchecked Sendable {
    // The cluster is only touched by `init` and `stop`, before and after everything else; its client is Sendable.
    private let cluster: ProcessCluster
    let client: TestClient
    let container: String
    let configuration: ZonekeeperConfiguration

    init() async throws {
        cluster = try ProcessCluster(nodeCount: 1)
        try await cluster.startAll()
        try await cluster.prepare()
        client = cluster.client
        container = cluster.container
        configuration = try ZonekeeperConfiguration(variables: cluster.environment)
    }

    func stop() { _ = cluster.processes[1]?.stop() }

    private static let counter = Atomic<Int>(0)

    /// A number that no other case of this run has.
    static func unique() -> Int { counter.add(1, ordering: .relaxed).oldValue }

    /// A configuration that speaks for a new user of a container.
    func user(of base: ZonekeeperConfiguration? = nil) async throws -> ZonekeeperConfiguration {
        try await sessions(1, of: base)[0].configuration
    }

    /// Sessions of one new user of a container, with the ids to revoke them by.
    func sessions(
        _ count: Int, of base: ZonekeeperConfiguration? = nil
    ) async throws -> [(configuration: ZonekeeperConfiguration, id: String)] {
        var configuration = base ?? self.configuration
        let name = "user\(Self.unique())"
        _ = try await client.admin("POST", "users", #"{"name": "\#(name)"}"#)
        var sessions: [(configuration: ZonekeeperConfiguration, id: String)] = []
        for _ in 0..<count {
            let body = #"{"kind": "session", "container": "\#(configuration.container)", "user": "\#(name)"}"#
            let token = try await client.admin("POST", "tokens", body)
            configuration.webAuthToken = try #require(token["secret"]?.string)
            sessions.append((configuration, try #require(token["id"]?.string)))
        }
        return sessions
    }

    /// A configuration for a container of its own, without a user.
    func newContainer() async throws -> ZonekeeperConfiguration {
        var configuration = configuration
        configuration.container = "iCloud.com.example.case\(Self.unique())"
        configuration.webAuthToken = nil
        _ = try await client.admin("POST", "containers", #"{"name": "\#(configuration.container)"}"#)
        let token = try await client.admin(
            "POST", "tokens",
            #"{"kind": "api", "container": "\#(configuration.container)", "environment": "development"}"#)
        configuration.apiToken = try #require(token["secret"]?.string)
        return configuration
    }
}

/// The node of this run.
actor Cloud {
    static let shared = Cloud()
    private var starting: Task<CloudNode, any Error>?

    func node() async throws -> CloudNode {
        let task = starting ?? Task { try await CloudNode() }
        starting = task
        return try await task.value
    }

    func stop() async {
        if let starting, let node = try? await starting.value { node.stop() }
        starting = nil
    }

    /// The container as a new user reaches it.
    static func container() async throws -> CKContainer {
        CKContainer(configuration: try await shared.node().user())
    }

    /// A new user's container as two devices reach it, each with a session of its own.
    static func devices() async throws -> (CKContainer, CKContainer) {
        let sessions = try await shared.node().sessions(2)
        return (
            CKContainer(configuration: sessions[0].configuration), CKContainer(configuration: sessions[1].configuration)
        )
    }

    /// The same, where the other device reaches the node by a relay.
    static func devicesWithRelay() async throws -> (CKContainer, CKContainer, Relay) {
        let sessions = try await shared.node().sessions(2)
        let one = sessions[0].configuration
        var other = sessions[1].configuration
        let relay = try await Relay(to: one.urls.compactMap { URL(string: $0)?.port })
        other.urls = ["https://127.0.0.1:\(relay.port)"]
        return (CKContainer(configuration: one), CKContainer(configuration: other), relay)
    }

    /// A new user's private database with a zone in it.
    static func zone() async throws -> (database: CKDatabase, zone: CKRecordZone.ID) {
        let database = try await container().privateCloudDatabase
        return (database, try await database.save(CKRecordZone(zoneName: "zone")).zoneID)
    }
}

/// A record of the type that the node's schema has.
func note(_ number: Int, in zone: CKRecordZone.ID = .default, text: String = "") -> CKRecord {
    let record = CKRecord(
        recordType: "Note",
        recordID: CKRecord.ID(recordName: "note-\(number)", zoneID: zone))
    record["number"] = number
    record["text"] = text
    return record
}

/// Runs an operation and comes back when it has ended.
func run(_ operation: CKDatabaseOperation, on database: CKDatabase) async {
    await withCheckedContinuation { continuation in
        operation.completionBlock = { continuation.resume() }
        database.add(operation)
    }
}

/// What blocks were called with, in order.
final class Log<Entry: Sendable>: Sendable {
    private let list = Mutex<[Entry]>([])
    var all: [Entry] { list.withLock { $0 } }
    func add(_ entry: Entry) { list.withLock { $0.append(entry) } }
}

/// The error that `body` throws.
func failure(_ body: () async throws -> some Any) async -> CKError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? CKError
    }
}

extension Result where Failure == any Error {
    /// The code of the error, where it is one of CloudKit's.
    var code: CKError.Code? {
        if case .failure(let error) = self { (error as? CKError)?.code } else { nil }
    }
}
