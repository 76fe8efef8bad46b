import AsyncHTTPClient
import CloudKit
import NIOCore
import NIOSSL

/// Asks the nodes over HTTPS without the SDK, as a web page or another program would.
enum PlainHTTP {
    /// The answer to a request at the first node.
    /// - Parameter json: the body of a POST; a GET without one.
    static func answer(
        _ path: String, json: String? = nil, headers: [(String, String)] = [], in surroundings: Surroundings
    ) async throws -> (status: UInt, body: String) {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authority = surroundings.ada.certificateAuthorityPath { tls.trustRoots = .file(authority) }
        let client = HTTPClient(configuration: HTTPClient.Configuration(tlsConfiguration: tls))
        do {
            var request = HTTPClientRequest(url: surroundings.ada.urls[0] + path)
            if let json {
                request.method = .POST
                request.body = .bytes(ByteBuffer(string: json))
            }
            for (name, value) in headers { request.headers.add(name: name, value: value) }
            let response = try await client.execute(request, timeout: .seconds(10))
            let body = try await response.body.collect(upTo: 1 << 20)
            try await client.shutdown()
            return (response.status.code, String(buffer: body))
        } catch {
            try await client.shutdown()
            throw error
        }
    }

    /// Where a database's actions are.
    static func path(_ database: String, _ action: String, in surroundings: Surroundings) -> String {
        let configuration = surroundings.ada
        return "/database/1/\(configuration.container)/\(configuration.environment.rawValue)/\(database)/\(action)"
    }
}
