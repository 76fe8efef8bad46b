import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
package import RecordModel

/// Speaks HTTPS to the nodes under test and checks their certificates.
package final class TestClient: @unchecked Sendable {
    /// The tokens of requests, as they stand in a URL.
    // It is set once, before the client is used from more than one task.
    package var query = ""
    private let client: HTTPClient
    private let urls: [String]
    /// How many nodes it knows.
    package var nodeCount: Int { urls.count }
    private let administratorToken: String

    /// A client of these nodes; the administrator's token is for `admin`.
    package init(urls: [String], authorityPath: String, administratorToken: String) throws {
        self.urls = urls
        self.administratorToken = administratorToken
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(authorityPath)
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        // Long enough for a machine that has other work.
        configuration.timeout = .init(connect: .seconds(30), read: .seconds(60))
        // A node that was killed is told at once, instead of being dialled again and again.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit { try? client.syncShutdown() }

    /// Where browsers find a node, counted from 0.
    package func origin(of node: Int) -> String { urls[node] }

    /// What came back.
    package typealias Answer = (status: Int, json: JSONValue)

    /// A GET of a node, counted from 0.
    package func get(_ path: String, node: Int) async throws -> Answer {
        try await send("GET", path, body: nil, node: node)
    }

    /// A POST with the tokens of `query`, or others.
    package func post(
        _ path: String, _ body: String, node: Int, headers: [(String, String)] = [], query: String? = nil
    ) async throws -> Answer {
        let parameters = query ?? self.query
        return try await send(
            "POST", parameters.isEmpty ? path : "\(path)?\(parameters)", body: Array(body.utf8), node: node,
            headers: headers)
    }

    /// An administrator's request to the first node; it must succeed.
    package func admin(_ method: String, _ path: String, _ body: String? = nil, node: Int = 0) async throws -> JSONValue
    {
        let answer = try await send(
            method, "/admin/1/\(path)", body: body.map { Array($0.utf8) }, node: node,
            headers: [("Authorization", "Bearer \(administratorToken)")])
        try require(answer.status == 200, "\(method) \(path): \(answer)")
        return answer.json
    }

    /// A request as it stands. What comes back need not be JSON; then it is null here.
    package func send(
        _ method: String, _ path: String, body: [UInt8]?, node: Int, headers: [(String, String)] = []
    ) async throws -> Answer {
        let answer = try await exchange(method, path, body: body, node: node, headers: headers)
        return (answer.status, (try? JSONParser.parse(answer.body)) ?? .null)
    }

    /// A request as it stands, and all that comes back.
    package func exchange(
        _ method: String, _ path: String, body: [UInt8]?, node: Int, headers: [(String, String)] = []
    ) async throws -> (status: Int, headers: [(String, String)], body: [UInt8]) {
        var request = HTTPClientRequest(url: urls[node] + path)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let response = try await client.execute(request, timeout: .minutes(2))
        let bytes = try await response.body.collect(upTo: 64 << 20)
        return (Int(response.status.code), response.headers.map { ($0.name, $0.value) }, Array(bytes.readableBytesView))
    }
}
