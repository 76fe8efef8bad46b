package import RecordModel
package import Wire

/// What a rate limit counts.
package enum RateKind: String, Hashable, Sendable, CaseIterable {
    /// Requests for records, zones and users.
    case requests
    /// Requests for preferences.
    case keyValues
}

/// What one rate limit of the cluster belongs to.
package struct RateKey: Hashable, Sendable {
    @Bytewise package var container: String
    package var kind: RateKind

    package init(container: String, kind: RateKind) {
        self.container = container
        self.kind = kind
    }
}

extension RateKey: Comparable {
    package static func < (left: Self, right: Self) -> Bool {
        (left.$container, left.kind.rawValue) < (right.$container, right.kind.rawValue)
    }
}

extension RateKey: WireMessage {
    package static var blank: Self { RateKey(container: "", kind: .requests) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &container)
        try wire.required(2, &kind)
    }
}

extension RateKind: WireValue {
    package func write(_ number: Int, to writer: inout WireWriter) {
        switch self {
        case .requests: writer.field(number, 1)
        case .keyValues: writer.field(number, 2)
        }
    }

    package init(field reader: inout WireReader) throws(WireError) {
        switch try reader.unsigned() {
        case 1: self = .requests
        case 2: self = .keyValues
        default: throw .invalidValue(field: reader.number)
        }
    }
}
