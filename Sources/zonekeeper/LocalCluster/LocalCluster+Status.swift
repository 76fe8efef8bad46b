import AsyncHTTPClient
import RecordModel
import ServiceClient

extension LocalCluster {
    /// Asks every node of the configuration, all at once.
    func statuses() async throws -> [NodeStatus] {
        guard Paths.exists(layout.clientAuthority) else {
            return layout.file.nodes.map { NodeStatus(node: $0, pid: nil, state: .stopped, leads: []) }
        }
        let secret = try? AdministratorSecret.read(layout.administratorToken)
        let http = try ServiceClient.http(authority: layout.clientAuthority, connectSeconds: 1)
        let statuses = await withTaskGroup(of: NodeStatus.self) { tasks in
            for node in layout.file.nodes {
                tasks.addTask { await status(of: node, http: http, secret: secret) }
            }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        try await http.shutdown()
        return statuses.sorted { $0.node.id < $1.node.id }
    }

    /// What one of these nodes says of the cluster's members; nil where none can be asked.
    func overview(_ urls: [String]) async throws -> ClusterOverview? {
        guard !urls.isEmpty, let secret = try? AdministratorSecret.read(layout.administratorToken) else { return nil }
        let http = try ServiceClient.http(authority: layout.clientAuthority, connectSeconds: 1)
        let client = ServiceClient(http: http, urls: urls, administratorSecret: secret)
        var request = ServiceRequest(.get, "/admin/1/cluster", isAdministrative: true)
        request.patienceSeconds = 0
        request.timeoutSeconds = 5
        let json = try? await client.send(request).json()
        try await http.shutdown()
        return json.flatMap { try? ClusterOverview($0) }
    }

    private func status(of node: ClusterFile.Node, http: HTTPClient, secret: String?) async -> NodeStatus {
        let pid = NodeProcess(node: node, layout: layout).pid
        let client = ServiceClient(http: http, urls: [node.clientURL], administratorSecret: secret)
        let health = await Self.health(of: client)
        let isLocal = ["localhost", "::1"].contains(node.host) || node.host.hasPrefix("127.")
        var status = NodeStatus(
            node: node, pid: pid,
            state: NodeStatus.state(health: health, isRunning: pid != nil, isLocal: isLocal), leads: [])
        if health == .ready || health == .notReady, secret != nil {
            status.leads = await Self.leads(of: client)
        }
        return status
    }

    private static func health(of client: ServiceClient) async -> NodeStatus.Health {
        do {
            var request = ServiceRequest(.get, "/health/ready")
            request.patienceSeconds = 0
            request.timeoutSeconds = 2
            return try await client.send(request).status == 200 ? .ready : .notReady
        } catch let error as ServiceUnreachable {
            return error.isRefused ? .refused : .silent
        } catch {
            return .silent
        }
    }

    private static func leads(of client: ServiceClient) async -> [Int] {
        var request = ServiceRequest(.get, "/admin/1/status", isAdministrative: true)
        request.patienceSeconds = 0
        request.timeoutSeconds = 2
        guard let response = try? await client.send(request), let json = try? response.json() else { return [] }
        return (json["replicas"]?.array ?? []).compactMap { replica in
            // Group 0 is the directory; shard i is group i + 1.
            guard replica["role"]?.string == "leader", case .integer(let group)? = replica["group"], group > 0 else {
                return nil
            }
            return Int(group - 1)
        }.sorted()
    }
}
