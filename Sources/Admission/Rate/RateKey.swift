package import RecordModel
package import Wire

/// What a rate limit counts.
package enum RateKind: String, Hashable, Sendable, CaseIterable {
    /// Requests for records, zones and users.
    case requests
    /// Requests for preferences.
    case keyValues

    fileprivate var wireCode: UInt64 {
        switch self {
        case .requests: 1
        case .keyValues: 2
        }
    }

    fileprivate init?(wireCode: UInt64) {
        guard let kind = Self.allCases.first(where: { $0.wireCode == wireCode }) else { return nil }
        self = kind
    }
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

extension RateKey: WireCodable {
    /// 1 container, 2 kind.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, container)
        writer.field(2, kind.wireCode)
    }

    /// - Throws: `WireError` if a part is missing or unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var container: String?
        var kind: RateKind?
        while let field = try reader.nextField() {
            switch field {
            case 1: container = try reader.string()
            case 2:
                kind = RateKind(wireCode: try reader.unsigned())
                if kind == nil { throw .invalidValue(field: 2) }
            default: try reader.skip()
            }
        }
        guard let container else { throw .missingField(1) }
        guard let kind else { throw .missingField(2) }
        self.init(container: container, kind: kind)
    }
}
