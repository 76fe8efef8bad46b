import Synchronization
import TestSupport
import Testing
import WebServices

/// One node in this process.
struct MemoryService: ConformanceService {
    let node: SingleNode
    let administratorToken = SingleNode.administratorToken

    func send(_ call: Call) async throws -> Answer {
        var request = InProcessService.Request(method: call.method, target: call.target)
        request.headers = try call.attemptHeaders().map { (name: $0.0, value: $0.1) }
        request.body = call.body
        let answer = try await node.service.answer(request)
        return Answer(status: answer.status, headers: answer.headers.map { ($0.name, $0.value) }, body: answer.body)
    }
}

/// Three processes.
final class ClusterService: ConformanceService, @unchecked Sendable {
    // The cluster is only touched by `start` and `stop`, before and after everything else; its client is Sendable.
    private let cluster: ProcessCluster
    private let client: TestClient
    private let next = Atomic<Int>(0)
    let administratorToken = ProcessCluster.administratorToken

    init() async throws {
        cluster = try ProcessCluster()
        // Receivers of webhooks are in this process.
        cluster.arguments = ["--webhooks-allow-private-addresses", "--webhooks-allow-http"]
        try await cluster.startAll()
        // Nodes that serve a container have their parts of rates, so no case waits for those.
        try await cluster.prepare()
        client = cluster.client
    }

    func send(_ call: Call) async throws -> Answer {
        let node = next.add(1, ordering: .relaxed).oldValue % 3
        let (status, headers, body) = try await client.exchange(
            call.method, call.target, body: call.method == "GET" && call.body.isEmpty ? nil : call.body, node: node,
            headers: try call.attemptHeaders())
        return Answer(status: status, headers: headers, body: body)
    }

    /// Stops the nodes; one that ended before, or ends badly, is a fault of its own.
    func stop() { for fault in cluster.stop() { Issue.record("\(fault)") } }
}

/// The servers, each started when it is first asked for.
actor Servers {
    static let shared = Servers()

    private var memory: Task<MemoryService, any Error>?
    private var cluster: Task<ClusterService, any Error>?
    private var homes: [Door: Task<Home, any Error>] = [:]
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var running = 0

    /// Requests at a time: cases run all at once, and a node that is given them all at once lets some wait too long.
    private static let runningMax = 6

    func service(for door: Door) async throws -> any ConformanceService {
        switch door {
        case .memory:
            let task = memory ?? Task { MemoryService(node: try await SingleNode.start(service: .reachingThisMachine)) }
            memory = task
            return try await task.value
        case .cluster:
            let task = cluster ?? Task { try await ClusterService() }
            cluster = task
            return try await task.value
        }
    }

    /// The container that cases share; each has a user of its own in it.
    func home(for door: Door) async throws -> Home {
        let task = homes[door] ?? Task { try await Home.make(door, schema: Schemas.standard) }
        homes[door] = task
        return try await task.value
    }

    func send(_ call: Call, to service: any ConformanceService) async throws -> Answer {
        if running >= Self.runningMax {
            await withCheckedContinuation { waiting.append($0) }
        } else {
            running += 1
        }
        defer { if waiting.isEmpty { running -= 1 } else { waiting.removeFirst().resume() } }
        return try await service.send(call)
    }

    func stop() async {
        if let memory, let service = try? await memory.value { try? await service.node.stop() }
        if let cluster, let service = try? await cluster.value { service.stop() }
        memory = nil
        cluster = nil
        homes = [:]
    }
}
