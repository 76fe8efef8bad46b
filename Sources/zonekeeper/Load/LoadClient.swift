import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import ServiceClient

struct LoadTarget: Hashable, Sendable {
    let host: String
    let port: Int

    /// `https://host:port`, without a slash at the end.
    var base: String { "https://\(authority)" }

    /// `host:port`, as a request names it.
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Reads `https://host[:port][/]`.
    ///
    /// The URL that requests go to is built from host and port, so nothing else in the text (such as `user@`) can lead
    /// elsewhere than what was checked.
    /// - Throws: `CommandFailure` that says what is wrong with the text.
    init(_ text: String) throws(CommandFailure) {
        guard let components = URLComponents(string: text), components.scheme?.lowercased() == "https",
            var host = components.host, !host.isEmpty, ServiceClient.hasPort(text)
        else { throw CommandFailure("'\(text)' is not a URL such as https://127.0.0.1:8443") }
        guard components.user == nil, components.password == nil, components.query == nil, components.fragment == nil,
            components.path.isEmpty || components.path == "/"
        else {
            throw CommandFailure("'\(text)': only scheme, host and port are expected, such as https://127.0.0.1:8443")
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        self.host = host
        port = components.port ?? 443
    }

    /// Whether requests stay on this machine: `localhost`, 127.0.0.0/8 written out, or `::1`.
    ///
    /// Other names are not asked of a resolver: what it answers now may not be what it answers next.
    var isLoopback: Bool {
        if host.lowercased() == "localhost" { return true }
        // Plain bytes, as the system writes addresses: the order of the network.
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 { return bytes[0] == 127 }
        guard inet_pton(AF_INET6, host, &bytes) == 1 else { return false }
        return bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// - Throws: `CommandFailure` when there is none, one cannot be read, or one is not this machine and that was not
    ///   allowed.
    static func parse(_ texts: [String], allowsRemote: Bool) throws(CommandFailure) -> [LoadTarget] {
        guard !texts.isEmpty else {
            throw CommandFailure(
                "no target: give --url https://127.0.0.1:8443, or source .zonekeeper/dev/env for ZONEKEEPER_URLS")
        }
        var targets: [LoadTarget] = []
        for text in texts { targets.append(try LoadTarget(text)) }
        if !allowsRemote, let remote = targets.first(where: { !$0.isLoopback }) {
            throw CommandFailure(
                "'\(remote.host)' is not this machine. Load can make a cluster unusable for its users, so other "
                    + "machines are loaded only with --allow-remote; use it on a cluster that is yours and that nobody "
                    + "needs just now")
        }
        return targets
    }
}

struct LoadTokens: Hashable, Sendable {
    var apiToken: String
    var webAuthToken: String?
    /// For preparation and for the nodes' counters only.
    var administrator: String?
    /// The id of a session that was made for the run; nil for the caller's own.
    var sessionID: String?
    /// Where files can be sent to and fetched from for a while: paths, with what signs them.
    var uploadPaths: [String] = []
    var downloadPaths: [String] = []

    /// `?ckAPIToken=...&ckWebAuthToken=...`, percent-encoded.
    var query: String {
        let user = webAuthToken.map { "&ckWebAuthToken=" + PercentCoding.encode($0) } ?? ""
        return "?ckAPIToken=" + PercentCoding.encode(apiToken) + user
    }
}

/// What surrounds a run asks through this: preparation, limits, counters. The load itself goes through
/// `LoadConnection`.
struct LoadClient: Sendable {
    let targets: [LoadTarget]
    private let http: HTTPClient
    private let timeoutSeconds: Int

    /// - Parameter authority: path of the CA that signed the nodes' certificates; nil for the system's.
    /// - Throws: `CommandFailure` if the authority's file cannot be used.
    init(targets: [LoadTarget], authority: String?, timeoutSeconds: Int) throws {
        precondition(!targets.isEmpty, "a client without targets")
        self.targets = targets
        self.timeoutSeconds = timeoutSeconds
        http = try ServiceClient.http(authority: authority)
    }

    /// Closes the connections; to be called once, at the end.
    func shutdown() async throws { try await http.shutdown() }

    /// Closes a client that was never used.
    func shutdownNow() { try? http.syncShutdown() }

    /// Sends a request of the preparation, once.
    func exchange(
        _ method: HTTPMethod, _ path: String, target: Int = 0, bearer: String? = nil, body: [UInt8] = []
    ) async throws(CommandFailure) -> ServiceResponse {
        let base = targets[target].base
        var request = ServiceRequest(method, path, body: body, isAdministrative: bearer != nil)
        (request.patienceSeconds, request.timeoutSeconds) = (0, Int64(timeoutSeconds))
        do {
            return try await ServiceClient(http: http, urls: [base], administratorSecret: bearer).send(request)
        } catch {
            throw CommandFailure("a node does not answer: \(error)")
        }
    }

    /// A short, stable name: reports count by it.
    static func name(of error: any Error) -> String {
        if let error = error as? HTTPClientError { return error.shortDescription }
        if let error = error as? NIOConnectionError {
            return error.connectionErrors.first.map { name(of: $0.error) } ?? "connection refused"
        }
        if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
        if let error = error as? NIOSSLError { return "TLS: \(error)".shortened(to: 100) }
        return String(describing: type(of: error))
    }
}
