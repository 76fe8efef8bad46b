import Glibc
import NIOCore
import Synchronization

/// What the connections of one address come to.
final class AddressLoad: Sendable {
    /// Bytes of answers that the address has not taken yet.
    fileprivate let unsentBytes = Atomic<Int>(0)
}

/// A connection that has a place at the edge.
final class EdgeConnection: Sendable {
    /// What its address's connections come to.
    let load: AddressLoad
    /// What its requests are answered with, but for those that pass all the same (`EdgePass`); nil where it is served.
    let refusal: EdgeRefusal?
    fileprivate let address: ClientAddress
    /// Since when it has had no request, in nanoseconds; `.max` while it has one.
    fileprivate let idleSince: Atomic<UInt64>
    fileprivate let onCrowdedOut: @Sendable () -> Void

    fileprivate init(
        _ address: ClientAddress, _ load: AddressLoad, _ refusal: EdgeRefusal?, now: NIODeadline,
        onCrowdedOut: @escaping @Sendable () -> Void
    ) {
        self.address = address
        self.load = load
        self.refusal = refusal
        idleSince = Atomic(now.uptimeNanoseconds)
        self.onCrowdedOut = onCrowdedOut
    }

    /// Takes note of what the connection does.
    /// - Parameter since: since when it has had no request; nil while it has one.
    func note(idleSince since: NIODeadline?) {
        idleSince.store(since?.uptimeNanoseconds ?? .max, ordering: .relaxed)
    }
}

/// Who is connected, by address. A lock is taken when a connection begins and when it ends, never for a request.
///
/// Where there is no place left, a newcomer gets that of another connection: the one that has had no request for
/// longest, of the addresses that have most. So an address that opens many and asks nothing keeps no other out.
final class ConnectionBook: Sendable {
    /// Places of one kind, and who has them.
    private struct Places: Sendable {
        private(set) var count = 0
        /// By the widest block of their addresses.
        private var taken: [ClientBlock: [ObjectIdentifier: EdgeConnection]] = [:]

        mutating func insert(_ connection: EdgeConnection) {
            let isNew =
                taken[connection.address.widestBlock, default: [:]]
                .updateValue(connection, forKey: ObjectIdentifier(connection)) == nil
            if isNew { count += 1 }
        }

        /// - Returns: whether it had a place.
        mutating func remove(_ connection: EdgeConnection) -> Bool {
            let block = connection.address.widestBlock
            guard taken[block]?.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return false }
            if taken[block]?.isEmpty == true { taken[block] = nil }
            count -= 1
            return true
        }

        /// The connection whose place an address may have; nil where those that have more than it are all busy.
        func idlest(for address: ClientAddress) -> EdgeConnection? {
            let own = taken[address.widestBlock]?.count ?? 0
            let others = taken.values.filter { $0.count > own }.sorted { $0.count > $1.count }
            for connections in others {
                let idle = connections.values.map { ($0, since: $0.idleSince.load(ordering: .relaxed)) }
                if let (connection, since) = idle.min(by: { $0.since < $1.since }), since < .max { return connection }
            }
            return nil
        }
    }

    private struct State: Sendable {
        var served = Places()
        var told = Places()
        /// Of those that are served.
        var byBlock: [ClientBlock: Int] = [:]
        var loads: [ClientAddress: (connections: Int, load: AddressLoad)] = [:]
    }

    private let limits: EdgeLimits
    private let state = Mutex(State())
    /// Bytes of answers that clients have not taken yet.
    private let unsentBytes = Atomic<Int>(0)

    init(limits: EdgeLimits) { self.limits = limits }

    /// Takes a place for a connection; `leave` must follow. Nil where no place is left: then it is closed.
    /// - Parameter onCrowdedOut: its place was given to another one. It is to end, or to `stay`.
    func enter(
        _ address: ClientAddress, now: NIODeadline, onCrowdedOut: @escaping @Sendable () -> Void
    ) -> EdgeConnection? {
        let (entered, ended) = state.withLock { state -> (EdgeConnection?, EdgeConnection?) in
            var refusal = self.refusal(of: address, state)
            var ended: EdgeConnection?
            if state.served.count >= limits.connectionsMax {
                if refusal == nil { ended = state.served.idlest(for: address) }
                if ended == nil { refusal = .tooManyConnections(limits.connectionsMax) }
            }
            if refusal != nil, state.told.count >= limits.toldConnectionsMax {
                ended = state.told.idlest(for: address)
                if ended == nil { return (nil, nil) }
            }
            if let ended { remove(ended, from: &state) }
            let load = state.loads[address]?.load ?? AddressLoad()
            let connection = EdgeConnection(address, load, refusal, now: now, onCrowdedOut: onCrowdedOut)
            insert(connection, into: &state)
            return (connection, ended)
        }
        ended?.onCrowdedOut()
        return entered
    }

    /// Keeps a connection whose place is gone: it has begun a request meanwhile. It counts, so that the next one finds
    /// one place less.
    func stay(_ connection: EdgeConnection) { state.withLock { insert(connection, into: &$0) } }

    /// Gives a place back; what has none is passed over.
    func leave(_ connection: EdgeConnection) { state.withLock { remove(connection, from: &$0) } }

    /// Why a block of addresses gets no more connections.
    private func refusal(of address: ClientAddress, _ state: State) -> EdgeRefusal? {
        for block in address.blocks {
            let most = limits.connectionsPerAddressMax * block.households
            if state.byBlock[block] ?? 0 >= most { return .tooManyConnectionsOfAddress(most) }
        }
        return nil
    }

    private func insert(_ connection: EdgeConnection, into state: inout State) {
        let address = connection.address
        state.loads[address, default: (0, connection.load)].connections += 1
        guard connection.refusal == nil else { return state.told.insert(connection) }
        state.served.insert(connection)
        for block in address.blocks { state.byBlock[block, default: 0] += 1 }
    }

    private func remove(_ connection: EdgeConnection, from state: inout State) {
        let (address, isServed) = (connection.address, connection.refusal == nil)
        guard isServed ? state.served.remove(connection) : state.told.remove(connection) else { return }
        if let known = state.loads[address] {
            state.loads[address] = known.connections == 1 ? nil : (known.connections - 1, known.load)
        }
        guard isServed else { return }
        for block in address.blocks {
            let count = (state.byBlock[block] ?? 0) - 1
            state.byBlock[block] = count > 0 ? count : nil
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

/// Whom bytes are counted for: an IPv4 address, also where it comes dressed as IPv6, or a /64 of IPv6.
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

/// Whose connections are counted together.
enum ClientBlock: Hashable, Sendable {
    /// One of IPv4, or what is not known.
    case address(ClientAddress)
    /// A /56 of IPv6, without the zeros at its end.
    case household(UInt64)
    /// A /48 of IPv6, without the zeros at its end.
    case site(UInt64)

    /// How many times the connections of one address it gets.
    fileprivate var households: Int { if case .site = self { 2 } else { 1 } }
}

extension ClientAddress {
    /// Those that it is in, the widest last.
    var blocks: [ClientBlock] {
        if case .v6(let prefix) = self { [.household(prefix >> 8), widestBlock] } else { [widestBlock] }
    }

    fileprivate var widestBlock: ClientBlock {
        if case .v6(let prefix) = self { .site(prefix >> 16) } else { .address(self) }
    }
}
