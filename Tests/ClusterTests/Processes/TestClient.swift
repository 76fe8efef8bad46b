import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import RecordModel
import Testing

/// Speaks HTTPS to the nodes under test and checks their certificates.
final class TestClient: @unchecked Sendable {
    // `query` is set once, before the client is used from more than one task.
    var query = ""
    private let client: HTTPClient
    private let urls: [String]
    private let administratorToken: String

    init(urls: [String], authorityPath: String, administratorToken: String) throws {
        self.urls = urls
        self.administratorToken = administratorToken
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(authorityPath)
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        configuration.timeout = .init(connect: .seconds(1), read: .seconds(10))
        // A node that was killed is told at once, instead of being dialled again and again.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit { try? client.syncShutdown() }

    /// What came back.
    typealias Answer = (status: Int, json: JSONValue)

    func get(_ path: String, node: Int) async throws -> Answer { try await send("GET", path, body: nil, node: node) }

    func post(
        _ path: String, _ body: String, node: Int, headers: [(String, String)] = [], query: String? = nil
    ) async throws -> Answer {
        let parameters = query ?? self.query
        return try await send(
            "POST", parameters.isEmpty ? path : "\(path)?\(parameters)", body: Array(body.utf8), node: node,
            headers: headers)
    }

    /// An administrator's request to the first node; it must succeed.
    func admin(_ method: String, _ path: String, _ body: String? = nil, node: Int = 0) async throws -> JSONValue {
        let answer = try await send(
            method, "/admin/1/\(path)", body: body.map { Array($0.utf8) }, node: node,
            headers: [("Authorization", "Bearer \(administratorToken)")])
        try #require(answer.status == 200, "\(method) \(path): \(answer)")
        return answer.json
    }

    func send(
        _ method: String, _ path: String, body: [UInt8]?, node: Int, headers: [(String, String)] = []
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: urls[node] + path)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let response = try await client.execute(request, timeout: .seconds(20))
        let bytes = try await response.body.collect(upTo: 64 << 20)
        let json = (try? JSONParser.parse(Array(bytes.readableBytesView))) ?? .null
        return (Int(response.status.code), json)
    }

    /// Gives others a turn before something is asked again.
    func pause() async {
        try? await client.eventLoopGroup.next().scheduleTask(in: .milliseconds(20)) {}.futureResult.get()
    }
}
