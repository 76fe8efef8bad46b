import Wire

/// The first frame each way: who the sender is and what it speaks.
struct Hello: Hashable, WireCodable {
    /// The versions of the peer protocol that this build speaks.
    static let versions: ClosedRange<UInt64> = 1...1
    /// Of the build's version; the rest is cut off when it is read.
    static let versionBytesMax = 128

    var versionMin: UInt64
    var versionMax: UInt64
    var clusterID: String
    var node: NodeID
    var channel: PeerChannel
    var incarnation: UInt64
    var bootCounter: UInt64
    var build: PeerBuild
    var clock: ClockReading?

    /// - Parameter asked: the clock of the hello that this one answers.
    init(_ configuration: PeerTransportConfiguration, channel: PeerChannel, asked: ClockReading? = nil) {
        let presence = configuration.presence()
        build = presence.build
        clock = ClockReading(wallMilliseconds: presence.wallMilliseconds, asked: asked?.wallMilliseconds)
        versionMin = Self.versions.lowerBound
        versionMax = Self.versions.upperBound
        clusterID = configuration.clusterID
        node = configuration.nodeID
        self.channel = channel
        incarnation = configuration.incarnation
        bootCounter = configuration.bootCounter
    }

    var identity: PeerIdentity {
        PeerIdentity(node: node, incarnation: incarnation, bootCounter: bootCounter, build: build)
    }

    func encode(to writer: inout WireWriter) {
        writer.field(1, versionMin)
        writer.field(2, versionMax)
        writer.field(3, clusterID)
        writer.field(4, node.rawValue)
        writer.field(5, UInt64(channel.rawValue))
        writer.field(6, incarnation)
        writer.field(7, bootCounter)
        writer.field(8, build.version)
        if let levels = build.levels {
            writer.field(9, levels.lowerBound)
            writer.field(10, levels.upperBound)
        }
        if let clock { writer.field(11) { clock.encode(to: &$0) } }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var numbers: [UInt64?] = Array(repeating: nil, count: 11)
        var clusterID: String?
        var version = ""
        clock = nil
        while let field = try reader.nextField() {
            switch field {
            case 1, 2, 4, 5, 6, 7, 9, 10: numbers[field] = try reader.unsigned()
            case 3: clusterID = try reader.string()
            case 8: version = String(decoding: try reader.slice().prefix(Self.versionBytesMax), as: UTF8.self)
            case 11: clock = try reader.message()
            default: try reader.skip()
            }
        }
        func number(_ field: Int) throws(WireError) -> UInt64 {
            guard let value = numbers[field] else { throw .missingField(field) }
            return value
        }
        versionMin = try number(1)
        versionMax = try number(2)
        guard versionMin <= versionMax else { throw .invalidValue(field: 2) }
        guard let clusterID else { throw .missingField(3) }
        self.clusterID = clusterID
        node = NodeID(try number(4))
        guard let raw = UInt8(exactly: try number(5)), let channel = PeerChannel(rawValue: raw) else {
            throw .invalidValue(field: 5)
        }
        self.channel = channel
        incarnation = try number(6)
        bootCounter = try number(7)
        build = PeerBuild(version: version, levels: nil)
        // A build from before levels says nothing of them.
        guard let least = numbers[9] else { return }
        let most = try number(10)
        guard least <= most else { throw .invalidValue(field: 10) }
        build.levels = least...most
    }
}

/// A node's clock as it tells it to a peer: in hellos, pings and pongs.
struct ClockReading: Hashable, WireMessage {
    /// Milliseconds since 1970.
    var wallMilliseconds: Int64
    /// The peer's own clock, as it stood in what this answers; nil where nothing was asked.
    var asked: Int64?

    static var blank: Self { ClockReading(wallMilliseconds: 0) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &wallMilliseconds)
        try wire.field(2, &asked)
    }

    /// How far the peer that answered with this is ahead; nil where it did not answer a question.
    /// - Parameter heard: this node's clock now.
    func ahead(heard: Int64) -> ClosedRange<Int64>? {
        asked.map { PeerClockComparison.ahead(peer: wallMilliseconds, asked: $0, heard: heard) }
    }
}

/// Why a connection is closed, in words for the other side's log.
struct Goodbye: Hashable, WireCodable {
    /// Cut to this many bytes when written and when read.
    static let reasonBytesMax = 1_024

    var reason: String

    init(_ reason: String) { self.reason = reason }

    func encode(to writer: inout WireWriter) {
        writer.field(1, String(decoding: reason.utf8.prefix(Self.reasonBytesMax), as: UTF8.self))
    }

    init(from reader: inout WireReader) throws(WireError) {
        reason = ""
        while let field = try reader.nextField() {
            switch field {
            case 1: reason = String(decoding: try reader.slice().prefix(Self.reasonBytesMax), as: UTF8.self)
            default: try reader.skip()
            }
        }
    }
}

/// Judges a peer's hello against its certificate and what this node is and expects. Pure.
struct Greeting {
    /// This node.
    var node: NodeID
    var clusterID: String
    /// The versions of the protocol this node speaks.
    var versions: ClosedRange<UInt64> = Hello.versions
    /// The program that this node runs.
    var build: PeerBuild
    /// Whom this node dialled and for what; nil on an incoming connection.
    var dialled: (node: NodeID, channel: PeerChannel)?

    /// Why the peer is refused, in words that have "it" for the peer; nil if it is welcome.
    /// - Parameter certificateNodes: the nodes that the peer's verified certificate names.
    func refusal(of hello: Hello, certificateNodes: [NodeID]) -> String? {
        // The certificate comes first: nothing else in the hello is worth a word until we know who says it.
        guard !certificateNodes.isEmpty else {
            return "its certificate names no node (a SAN URI \(PeerCertificate.nodePrefix)<id> is needed)"
        }
        guard certificateNodes.contains(hello.node) else {
            let names = certificateNodes.map(\.description).joined(separator: " and ")
            return "its certificate names node \(names), but it says that it is node \(hello.node)"
        }
        if let dialled, dialled.node != hello.node {
            return "it is node \(hello.node), but node \(dialled.node) was dialled"
        }
        guard hello.node != node else {
            return "it says that it is node \(node), which is this node: two nodes share an id, or the address is wrong"
        }
        guard hello.clusterID == clusterID else {
            return "it belongs to cluster \"\(hello.clusterID)\", and this node to \"\(clusterID)\""
        }
        guard hello.versionMin <= versions.upperBound, hello.versionMax >= versions.lowerBound else {
            return "it speaks versions \(hello.versionMin) to \(hello.versionMax) of the peer protocol, and this node "
                + "\(versions.lowerBound) to \(versions.upperBound)"
        }
        if let refusal = build.refusal(of: hello.build) { return refusal }
        if let dialled, dialled.channel != hello.channel {
            return "it answered for channel \(hello.channel), but \(dialled.channel) was dialled"
        }
        return nil
    }
}
