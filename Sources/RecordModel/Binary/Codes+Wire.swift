import Wire

/// The numbers that enumerations have in the binary form. They are written to disk: a number never changes its meaning
/// and is never used again.
protocol WireCoded: CaseIterable {
    var wireCode: UInt64 { get }
}

extension WireCoded {
    /// The case with this number; nil for a number of a newer version.
    init?(wireCode: UInt64) {
        guard let found = Self.allCases.first(where: { $0.wireCode == wireCode }) else { return nil }
        self = found
    }
}

extension ScalarType: WireCoded {
    var wireCode: UInt64 {
        switch self {
        case .string: 1
        case .int64: 2
        case .double: 3
        case .timestamp: 4
        case .bytes: 5
        case .location: 6
        case .reference: 7
        case .asset: 8
        case .number: 9
        }
    }
}

extension Environment: WireCoded {
    var wireCode: UInt64 {
        switch self {
        case .development: 1
        case .production: 2
        }
    }
}

extension Scope: WireCoded {
    var wireCode: UInt64 {
        switch self {
        case .public: 1
        case .private: 2
        case .shared: 3
        }
    }
}

extension Reference.Action: WireCoded, CaseIterable {
    /// All actions, in the order of their numbers on disk.
    package static let allCases: [Reference.Action] = [.none, .deleteSelf, .validate]

    var wireCode: UInt64 {
        switch self {
        case .none: 0
        case .deleteSelf: 1
        case .validate: 2
        }
    }
}

/// A case in the form of its number.
struct WireCode<Case: WireCoded>: WireValue {
    var value: Case

    init(_ value: Case) { self.value = value }

    init(field reader: inout WireReader) throws(WireError) {
        guard let value = Case(wireCode: try reader.unsigned()) else { throw .unknownValue(field: reader.number) }
        self.value = value
    }

    func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, value.wireCode) }
}

extension WireCoded {
    /// The case as messages have it that write its number.
    var code: WireCode<Self> {
        get { WireCode(self) }
        set { self = newValue.value }
    }
}

extension Optional where Wrapped: WireCoded {
    var code: WireCode<Wrapped>? {
        get { self.map { WireCode($0) } }
        set { self = newValue?.value }
    }
}
