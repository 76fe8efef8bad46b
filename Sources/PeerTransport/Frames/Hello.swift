import Wire

/// The first frame each way: who the sender is and what it speaks.
struct Hello: Hashable, WireCodable {
    /// The versions of the peer protocol that this build speaks.
    static let versions: ClosedRange<UInt64> = 1...1

    var versionMin: UInt64
    var versionMax: UInt64
    var clusterID: String
    var node: NodeID
    var channel: PeerChannel
    var incarnation: UInt64
    var bootCounter: UInt64

    init(_ configuration: PeerTransportConfiguration, channel: PeerChannel) {
        versionMin = Self.versions.lowerBound
        versionMax = Self.versions.upperBound
        clusterID = configuration.clusterID
        node = configuration.nodeID
        self.channel = channel
        incarnation = configuration.incarnation
        bootCounter = configuration.bootCounter
    }

    var identity: PeerIdentity { PeerIdentity(node: node, incarnation: incarnation, bootCounter: bootCounter) }

    func encode(to writer: inout WireWriter) {
        writer.field(1, versionMin)
        writer.field(2, versionMax)
        writer.field(3, clusterID)
        writer.field(4, node.rawValue)
        writer.field(5, UInt64(channel.rawValue))
        writer.field(6, incarnation)
        writer.field(7, bootCounter)
    }

    init(from reader: inout WireReader) throws(WireError) {
        var numbers: [UInt64?] = Array(repeating: nil, count: 8)
        var clusterID: String?
        while let field = try reader.nextField() {
            switch field {
            case 1, 2, 4, 5, 6, 7: numbers[field] = try reader.unsigned()
            case 3: clusterID = try reader.string()
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
