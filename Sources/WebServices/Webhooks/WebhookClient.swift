package import Admission
import AsyncHTTPClient
import Foundation
package import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
package import Service
import Synchronization

/// Sends deliveries to webhooks over HTTP.
///
/// A name is resolved here, all its addresses are checked, and the connection goes to the one that was checked: no
/// second question to the name service could have another answer. Redirects are not followed; certificates are checked
/// against the host's name as always.
package final class WebhookClient: WebhookTransport {
    /// One host at one address: its connections are kept for the next delivery.
    private struct Place: Hashable {
        var host: String
        var address: String
    }

    private struct Kept {
        let client: HTTPClient
        /// Deliveries that are under way.
        var uses = 0
    }

    private struct State {
        var clients: [Place: Kept] = [:]
        var isShutDown = false
    }

    /// What names resolve to: IP addresses in a fixed order.
    package typealias Resolver = @Sendable (_ host: String, _ port: Int) async throws -> [SocketAddress]

    private static let connectSeconds: Int64 = 5
    private static let deliverySeconds: Int64 = 15
    private static let idleSeconds: Int64 = 30
    /// Of an answer, which nobody reads: more of it closes the connection.
    private static let answerBytesMax = 64 << 10

    private let settings: WebhookSettings
    private let resolve: Resolver
    private let tls: TLSConfiguration
    /// Places whose connections are kept, but for those in use.
    private let clientsMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - tls: whose certificates are believed.
    ///   - clientsMax: hosts at one address whose connections are kept.
    package init(
        _ settings: WebhookSettings, tls: TLSConfiguration = .clientDefault, clientsMax: Int = 64,
        resolve: @escaping Resolver = WebhookClient.systemResolver
    ) {
        self.settings = settings
        self.tls = tls
        self.clientsMax = clientsMax
        self.resolve = resolve
    }

    /// Asks the machine's resolver.
    package static let systemResolver: Resolver = { host, port in
        try await onOwnThread { try SocketAddress.all(of: host, port: port) }
    }

    /// Does what may block for long, such as a question to somebody's name server, so that nobody else waits for it.
    /// How much of it there is at once is bounded where deliveries are.
    static func onOwnThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Resolves the host and checks its addresses.
    package func check(_ address: WebAddress) async throws(WebhookFailure) { _ = try await addresses(of: address) }

    /// Sends a delivery once.
    package func send(_ request: WebhookRequest) async throws(WebhookFailure) -> Int {
        let addresses = try await addresses(of: request.address)
        let address = addresses[Int(request.failures % UInt64(addresses.count))]
        let place = Place(host: request.address.urlHost, address: address)
        let client = try await client(place)
        defer { state.withLock { $0.clients[place]?.uses -= 1 } }
        var outgoing = HTTPClientRequest(url: request.address.url)
        outgoing.method = .POST
        for (name, value) in request.headers { outgoing.headers.add(name: name, value: value) }
        outgoing.body = .bytes(ByteBuffer(bytes: request.body))
        let end = NIODeadline.now() + .seconds(Self.deliverySeconds)
        do {
            let answer = try await client.execute(outgoing, deadline: end)
            // Read to its end, the connection can be used again.
            _ = try? await answer.body.collect(upTo: Self.answerBytesMax, by: end)
            return Int(answer.status.code)
        } catch {
            throw WebhookFailure("\(request.address.host): \(Self.reason(error))")
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            "its certificate does not name this host"
        case is NIOConnectionError: "nobody listens there"
        case let error as HTTPClientError
        where [.connectTimeout, .readTimeout, .deadlineExceeded].contains(error):
            "no answer in time"
        default: "\(error)"
        }
    }

    /// The IP addresses of a host, all of which deliveries may be sent to.
    private func addresses(of address: WebAddress) async throws(WebhookFailure) -> [String] {
        let host = address.urlHost
        let found: [SocketAddress]
        do {
            found = try await resolve(host, address.port ?? (address.isSecure ? 443 : 80))
        } catch {
            throw WebhookFailure("\(host) cannot be resolved: \(error)")
        }
        guard !found.isEmpty else { throw WebhookFailure("\(host) has no address") }
        var texts: [String] = []
        for each in found {
            guard let text = each.ipAddress, let bytes = each.ipBytes, settings.allows(bytes) else {
                throw WebhookFailure(WebhookSettings.refusal(each.ipAddress ?? host))
            }
            if !texts.contains(text) { texts.append(text) }
        }
        return texts
    }

    /// The client for a place, which is in use from now on.
    private func client(_ place: Place) async throws(WebhookFailure) -> HTTPClient {
        let (client, old) = state.withLock { state -> (HTTPClient?, HTTPClient?) in
            if state.isShutDown { return (nil, nil) }
            var old: HTTPClient?
            // Which one goes does not matter: its host is connected to again.
            if state.clients[place] == nil, state.clients.count >= clientsMax,
                let idle = state.clients.firstIndex(where: { $0.value.uses == 0 })
            {
                old = state.clients.remove(at: idle).value.client
            }
            state.clients[place, default: Kept(client: makeClient(place))].uses += 1
            return (state.clients[place]?.client, old)
        }
        try? await old?.shutdown()
        guard let client else { throw WebhookFailure("this node is stopping") }
        return client
    }

    private func makeClient(_ place: Place) -> HTTPClient {
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, redirectConfiguration: .disallow,
            timeout: HTTPClient.Configuration.Timeout(
                connect: .seconds(Self.connectSeconds), read: .seconds(Self.deliverySeconds)))
        configuration.connectionPool.idleTimeout = .seconds(Self.idleSeconds)
        configuration.dnsOverride = [place.host: place.address]
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Ends all connections; requests from now on fail.
    package func shutdown() async {
        let clients = state.withLock { state in
            state.isShutDown = true
            defer { state.clients = [:] }
            return state.clients.values.map(\.client)
        }
        for client in clients { try? await client.shutdown() }
    }
}

extension WebAddress {
    /// Without the brackets of an IPv6 address.
    fileprivate var urlHost: String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }

    /// As it was read, so that host and port are those that were checked.
    fileprivate var url: String { origin + (rest.hasPrefix("/") ? rest : "/" + rest) }
}

extension SocketAddress {
    /// 4 or 16 bytes; nil for what is no IP address.
    fileprivate var ipBytes: [UInt8]? {
        switch self {
        case .v4(let address): withUnsafeBytes(of: address.address.sin_addr) { Array($0) }
        case .v6(let address): withUnsafeBytes(of: address.address.sin6_addr) { Array($0) }
        case .unixDomainSocket: nil
        }
    }

    /// All IP addresses of a host; blocks.
    fileprivate static func all(of host: String, port: Int) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &first)
        guard code == 0 else { throw WebhookFailure(String(cString: gai_strerror(code))) }
        defer { freeaddrinfo(first) }
        var found: [SocketAddress] = []
        var next = first
        while let each = next {
            next = each.pointee.ai_next
            let bytes = UnsafeRawPointer(each.pointee.ai_addr)
            switch each.pointee.ai_family {
            case AF_INET: if let bytes { found.append(SocketAddress(bytes.load(as: sockaddr_in.self))) }
            case AF_INET6: if let bytes { found.append(SocketAddress(bytes.load(as: sockaddr_in6.self))) }
            default: break
            }
        }
        return found
    }
}

extension HTTPClientResponse.Body {
    /// The whole body. The deadline is looked at whenever a part has come: the client's own ends with an answer's head.
    /// - Throws: where it has more bytes, or is still coming at the deadline.
    func collect(upTo bytesMax: Int, by deadline: NIODeadline) async throws -> ByteBuffer {
        var whole = ByteBuffer()
        for try await part in self {
            guard whole.readableBytes + part.readableBytes <= bytesMax else {
                throw NIOTooManyBytesError(maxBytes: bytesMax)
            }
            guard NIODeadline.now() < deadline else { throw HTTPClientError.deadlineExceeded }
            whole.writeImmutableBuffer(part)
        }
        return whole
    }
}
