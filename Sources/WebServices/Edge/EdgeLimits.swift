package import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What clients of a node may hold and how long they may take; beyond it they are refused, so that nobody can keep the
/// others out by opening much or by being slow.
package struct EdgeLimits: Sendable {
    /// The most connections at once.
    package var connectionsMax = 4_096
    /// The most connections at once of one address; IPv6 counts by /64, the least that a household gets.
    package var connectionsPerAddressMax = 512
    /// The most connections beyond these limits that are still given a TLS handshake, to be told why their requests are
    /// refused; what comes on top is closed at once.
    package var toldConnectionsMax = 64
    /// The most bytes of a request's header fields.
    package var headerBytesMax = 16 << 10
    /// The most header fields of a request.
    package var headerFieldsMax = 128
    /// The most bytes of a request's target: path and query.
    package var targetBytesMax = 8 << 10
    /// The most requests of a connection that wait for their answers.
    package var pipelinedRequestsMax = 32
    /// The most bytes of answers that wait for an address to take them: beyond it, its requests are refused, and at
    /// twice as many the answers end that come on top.
    package var unsentBytesPerAddressMax = 64 << 20
    /// The most such bytes of all addresses: beyond it, an address is refused at an eighth of its own.
    package var unsentBytesMax = 512 << 20
    /// How long a TLS handshake may take.
    package var handshakeTimeout: TimeAmount = .seconds(10)
    /// How long a request's head may take, from its first byte.
    package var headersTimeout: TimeAmount = .seconds(10)
    /// A body must bring `bytesPerSecondMin` on the average of each time so long, while the node reads it.
    package var bodyWindow: TimeAmount = .seconds(10)
    /// An answer must be taken with `bytesPerSecondMin` on the average of each time so long.
    package var writeWindow: TimeAmount = .seconds(30)
    /// The least that clients must send or take while it is their turn; the requests of one HTTP/2 connection share it.
    package var bytesPerSecondMin = 1_024
    /// How long a connection may stay on which there is no request.
    package var idleTimeout: TimeAmount = .seconds(75)
    /// How long what a refused client still sends is taken and thrown away, so that it gets to read why.
    package var lingerTimeout: TimeAmount = .seconds(1)

    package init() {}

    /// How often a connection's clock is looked at: time-outs are kept to a quarter of the shortest, or 2.5 s.
    var tick: TimeAmount {
        let shortest = [handshakeTimeout, headersTimeout, bodyWindow, writeWindow, idleTimeout].map(\.nanoseconds).min()
        return .nanoseconds(max(1_000_000, min((shortest ?? 0) / 4, 2_500_000_000)))
    }

    /// The same, with no more connections than half of the files that the process may have open: databases, logs and
    /// peers need the others.
    func fitted(toDescriptors descriptors: Int) -> EdgeLimits {
        var fitted = self
        fitted.connectionsMax = min(connectionsMax, max(16, descriptors / 2 - toldConnectionsMax))
        fitted.connectionsPerAddressMax = min(connectionsPerAddressMax, fitted.connectionsMax)
        return fitted
    }
}

/// How many files and sockets this process may have open.
enum OpenFiles {
    /// What an ordinary node could use.
    static let wanted = 65_536

    /// Raises the process's limit as far as the system lets it, up to `wanted`: the limit that shells set is older than
    /// servers with thousands of connections.
    /// - Returns: the limit in force.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return 1_024 }
        let most = min(limit.rlim_max, rlim_t(wanted))
        if limit.rlim_cur < most {
            var raised = limit
            raised.rlim_cur = most
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }
}

/// Why the edge ended a connection or refused a request on it.
enum EdgeEnd: String, Hashable, Sendable, CaseIterable {
    case overLimit = "over_limit"
    case handshakeFailed = "handshake_failed"
    case handshakeTimeout = "handshake_timeout"
    case headersTimeout = "headers_timeout"
    case slowBody = "slow_body"
    case slowReader = "slow_reader"
    /// The address left too many answers untaken.
    case unsent
    case idle
    case badRequest = "bad_request"
    case pipelined
}

/// What the edge of this node has done since its start.
package final class EdgeCounters: Sendable {
    private let ends = Mutex([EdgeEnd: Int]())
    private let reloads = Atomic<Int>(0)

    func count(_ end: EdgeEnd) { ends.withLock { $0[end, default: 0] += 1 } }

    func countReload() { reloads.wrappingAdd(1, ordering: .relaxed) }

    subscript(end: EdgeEnd) -> Int { ends.withLock { $0[end] ?? 0 } }

    /// Lines of the Prometheus text form.
    package var lines: [String] {
        let counts = ends.withLock { $0 }
        return ["# TYPE zonekeeper_connections_ended_total counter"]
            + EdgeEnd.allCases.map {
                "zonekeeper_connections_ended_total{reason=\"\($0.rawValue)\"} \(counts[$0] ?? 0)"
            } + [
                "# TYPE zonekeeper_certificate_reloads_total counter",
                "zonekeeper_certificate_reloads_total \(reloads.load(ordering: .relaxed))",
            ]
    }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the connections of one address come to.
final class AddressLoad: Sendable {
    /// Bytes of answers that the address has not taken yet.
    fileprivate let unsentBytes = Atomic<Int>(0)
}

/// Who is connected, by address. A lock is taken when a connection begins and when it ends, never for a request.
final class ConnectionBook: Sendable {
    /// What a new connection gets.
    enum Place: Sendable {
        case served(AddressLoad)
        /// Its requests are answered with this.
        case told(EdgeRefusal)
        /// Nothing; it is closed.
        case none
    }

    private struct State: Sendable {
        var served = 0
        var told = 0
        var byAddress: [ClientAddress: (connections: Int, load: AddressLoad)] = [:]
    }

    private let limits: EdgeLimits
    private let state = Mutex(State())
    /// Bytes of answers that clients have not taken yet.
    private let unsentBytes = Atomic<Int>(0)

    init(limits: EdgeLimits) { self.limits = limits }

    /// Takes a place for a connection. What is returned, and the address, must come back to `leave` once.
    func enter(_ address: ClientAddress) -> Place {
        state.withLock { state in
            let refusal: EdgeRefusal
            if state.served >= limits.connectionsMax {
                refusal = .tooManyConnections(limits.connectionsMax)
            } else if let known = state.byAddress[address], known.connections >= limits.connectionsPerAddressMax {
                refusal = .tooManyConnectionsOfAddress(limits.connectionsPerAddressMax)
            } else {
                state.served += 1
                let load = state.byAddress[address]?.load ?? AddressLoad()
                state.byAddress[address, default: (0, load)].connections += 1
                return .served(load)
            }
            guard state.told < limits.toldConnectionsMax else { return .none }
            state.told += 1
            return .told(refusal)
        }
    }

    /// Gives a place back.
    func leave(_ address: ClientAddress, _ place: Place) {
        state.withLock { state in
            switch place {
            case .none: break
            case .told: state.told -= 1
            case .served:
                state.served -= 1
                guard let known = state.byAddress[address] else { return }
                state.byAddress[address] = known.connections == 1 ? nil : (known.connections - 1, known.load)
            }
        }
    }

    // MARK: Answers that are not taken

    /// Counts bytes of an answer; `taken` must follow. False, and nothing is counted, where the address leaves so much
    /// that the answer is to end.
    func beginSending(_ count: Int, to load: AddressLoad) -> Bool {
        let sum = load.unsentBytes.add(count, ordering: .relaxed).newValue
        guard sum <= 2 * limits.unsentBytesPerAddressMax else {
            load.unsentBytes.subtract(count, ordering: .relaxed)
            return false
        }
        unsentBytes.add(count, ordering: .relaxed)
        return true
    }

    /// The bytes are on their way to the client, or never will be.
    func taken(_ count: Int, by load: AddressLoad) {
        load.unsentBytes.subtract(count, ordering: .relaxed)
        unsentBytes.subtract(count, ordering: .relaxed)
    }

    /// Why a new request of an address is refused, where that leaves too many answers untaken; else nil.
    func refusal(for load: AddressLoad) -> EdgeRefusal? {
        let isCrowded = unsentBytes.load(ordering: .relaxed) > limits.unsentBytesMax
        let limit = limits.unsentBytesPerAddressMax / (isCrowded ? 8 : 1)
        return load.unsentBytes.load(ordering: .relaxed) > limit ? .tooMuchUnsent(limit) : nil
    }
}

/// Whom connections are counted for: an IPv4 address, also where it comes dressed as IPv6, or a /64 of IPv6.
enum ClientAddress: Hashable, Sendable {
    case v4(UInt32)
    case v6(UInt64)
    case other

    init(_ address: SocketAddress?) { self.init(text: address?.ipAddress) }

    /// An address as it is written, without port; nil counts with all that are not known.
    init(text: String?) {
        guard let text, let bytes = Self.bytes(text) else {
            self = .other
            return
        }
        self.init(bytes)
    }

    /// - Parameter bytes: 4 or 16, in network order.
    init(_ bytes: [UInt8]) {
        func number<Number: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>) -> Number {
            bytes.reduce(0) { $0 << 8 | Number($1) }
        }
        switch bytes.count {
        case 4: self = .v4(number(bytes[...]))
        case 16 where bytes[..<10].allSatisfy { $0 == 0 } && bytes[10...11] == [0xFF, 0xFF]:
            self = .v4(number(bytes[12...]))
        case 16: self = .v6(number(bytes[..<8]))
        default: self = .other
        }
    }

    /// The bytes of an address as it is written.
    private static func bytes(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: text.contains(":") ? 16 : 4)
        return inet_pton(bytes.count == 16 ? AF_INET6 : AF_INET, text, &bytes) == 1 ? bytes : nil
    }
}
