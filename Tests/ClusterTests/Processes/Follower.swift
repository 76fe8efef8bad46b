import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import RecordModel
import Synchronization
import TestSupport

/// Follows preferences or notifications by server-sent events, on another node where one is lost.
final class Follower: Sendable {
    private struct State {
        var keys: [String] = []
        var token: String?
        var end: String?
        var heartbeats = 0
    }

    let node: Int
    private let state = Mutex(State())
    private let http: HTTPClient
    private let task = Mutex<Task<Void, Never>?>(nil)

    init(
        _ cluster: ProcessCluster, _ path: String, since token: String, node: Int, comesAgain: Bool = true,
        isHTTP2: Bool = false
    ) throws {
        self.node = node % cluster.ids.count
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(cluster.folder + "/data/certs/client-ca.pem")
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.timeout = .init(connect: .seconds(1))
        configuration.httpVersion = isHTTP2 ? .automatic : .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        state.withLock { $0.token = token }
        let urls = cluster.clientPorts.map { "https://127.0.0.1:\($0)\(path)?\(cluster.client.query)" }
        task.withLock { [self] in
            $0 = Task {
                var node = self.node
                repeat {
                    try? await follow(urls[node])
                    node = (node + 1) % urls.count
                } while comesAgain && !Task.isCancelled
            }
        }
    }

    deinit { try? http.syncShutdown() }

    private func follow(_ url: String) async throws {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "Accept", value: "text/event-stream")
        if let token = token { request.headers.add(name: "Last-Event-ID", value: token) }
        let response = try await http.execute(request, timeout: .minutes(5))
        guard response.status == .ok else { return }
        var parser = EventParser()
        for try await buffer in response.body {
            let events = parser.take(Array(buffer.readableBytesView))
            state.withLock { $0.heartbeats = parser.comments }
            for event in events {
                state.withLock { state in
                    if ["changes", "notifications"].contains(event.name) {
                        state.keys += event.keys
                        state.token = event.id
                    } else {
                        state.end = event.json["serverErrorCode"]?.string ?? event.name
                    }
                }
            }
        }
    }

    var token: String? { state.withLock(\.token) }

    /// Comments that came, by which a node finds out whether its client is there.
    var heartbeats: Int { state.withLock(\.heartbeats) }

    /// The keys, or names of records, in the order in which they came, once there are so many.
    func keys(count: Int) async throws -> [String] {
        try await awaitState("\(count) keys") {
            state.withLock(\.keys)
        } until: {
            $0.count >= count
        }
    }

    /// The code with which the node ended the stream.
    func end() async throws -> String? {
        try await awaitState("the stream's end") {
            state.withLock(\.end)
        } until: {
            $0 != nil
        }
    }

    func stop() { task.withLock { $0?.cancel() } }
}
