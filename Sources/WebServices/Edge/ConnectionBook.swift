import NIOCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Who is connected, by address. A lock is taken when a connection begins and when it ends, never for a request.
final class ConnectionBook: Sendable {
    /// What a new connection gets.
    enum Place: Hashable, Sendable {
        case served
        /// Its requests are answered with this.
        case told(EdgeRefusal)
        /// Nothing; it is closed.
        case none
    }

    private struct State: Sendable {
        var served = 0
        var told = 0
        var byAddress: [ClientAddress: Int] = [:]
    }

    private let limits: EdgeLimits
    private let state = Mutex(State())

    init(limits: EdgeLimits) { self.limits = limits }

    /// Takes a place for a connection. What is returned, and the address, must come back to `leave` once.
    func enter(_ address: ClientAddress) -> Place {
        state.withLock { state in
            let refusal: EdgeRefusal
            if state.served >= limits.connectionsMax {
                refusal = .tooManyConnections(limits.connectionsMax)
            } else if state.byAddress[address, default: 0] >= limits.connectionsPerAddressMax {
                refusal = .tooManyConnectionsOfAddress(limits.connectionsPerAddressMax)
            } else {
                state.served += 1
                state.byAddress[address, default: 0] += 1
                return .served
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
                let left = state.byAddress[address, default: 1] - 1
                state.byAddress[address] = left == 0 ? nil : left
            }
        }
    }
}

/// Whom connections are counted for: an IPv4 address, also where it comes dressed as IPv6, or a /64 of IPv6.
enum ClientAddress: Hashable, Sendable {
    case v4(UInt32)
    case v6(UInt64)
    case other

    init(_ address: SocketAddress?) {
        guard let text = address?.ipAddress, let bytes = Self.bytes(text) else {
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
