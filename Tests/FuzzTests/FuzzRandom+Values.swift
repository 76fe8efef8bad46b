import RecordModel

extension FuzzRandom {
    private static let pieces = [
        "a", "B", "9", " ", "\"", "\\", "/", "\u{0}", "\n", "\u{1F}", "\u{7F}", "é", "e\u{301}", "\u{2028}", "😀", "漢",
        "_",
    ]

    mutating func text() -> String { (0..<below(10)).map { _ in pick(Self.pieces) }.joined() }

    mutating func name() -> String {
        pick(["a", "title", "count", "when", "place", "owner", "tags", "data", "f7", "Z_"])
    }

    mutating func integer() -> Int64 {
        switch below(5) {
        case 0: .min
        case 1: .max
        case 2: Int64(below(300)) - 150
        default: Int64(truncatingIfNeeded: next() >> UInt64(below(60)))
        }
    }

    /// Any finite double, denormals and -0 among them.
    mutating func double() -> Double {
        let special: [Double] = [
            0, -0.0, .leastNonzeroMagnitude, -.greatestFiniteMagnitude, 0.1, 1e20, 1e-7, 9.007199254740993e15, 180, -90,
        ]
        if chance(40) { return pick(special) }
        let number = Double(bitPattern: next())
        return number.isFinite ? number : 1.5
    }

    /// A document of at most `depth` levels.
    mutating func json(depth: Int) -> JSONValue {
        switch below(depth > 0 ? 9 : 6) {
        case 0: .null
        case 1: .bool(chance(50))
        case 2: .integer(integer())
        case 3: .number(double())
        case 4, 5: .string(text())
        case 6: .array((0..<below(5)).map { _ in json(depth: depth - 1) })
        default: .object((0..<below(chance(3) ? 40 : 6)).map { .init("\($0).\(text())", json(depth: depth - 1)) })
        }
    }

    /// A place on the earth.
    mutating func location() -> Location {
        var place = Location(latitude: Double(below(1801)) / 10 - 90, longitude: Double(below(3601)) / 10 - 180)
        if chance(30) { place.horizontalAccuracy = double() }
        if chance(30) { place.verticalAccuracy = double() }
        if chance(30) { place.altitude = double() }
        if chance(30) { place.speed = double() }
        if chance(30) { place.course = double() }
        if chance(30) { place.timestamp = integer() }
        return place
    }

    private static let scalars: [ScalarType] = [
        .string, .int64, .double, .timestamp, .bytes, .location, .reference, .asset,
    ]

    mutating func scalar(_ type: ScalarType) -> FieldValue {
        switch type {
        case .string: .string(text())
        case .int64: .int64(integer())
        case .double: .double(double())
        case .timestamp: .timestamp(integer())
        case .bytes: .bytes(bytes(20))
        case .location: .location(location())
        case .asset:
            .asset(AssetReference(sha256: [UInt8](repeating: UInt8(below(9)), count: 32), size: UInt64(below(1 << 30))))
        default: .reference(Reference(recordName: "r\(below(9))", action: pick(Reference.Action.allCases)))
        }
    }

    /// A value as it is stored: plain or sealed.
    mutating func value() -> FieldValue {
        let type = pick(Self.scalars)
        switch below(8) {
        case 0, 1: return .list(type, (0..<below(6)).map { _ in scalar(type) })
        case 2: return .sealed(bytes(40))
        default: return scalar(type)
        }
    }

    mutating func fields() -> Fields {
        Fields((0..<below(8)).map { _ in Fields.Field(name: chance(80) ? name() : text(), value: value()) })
    }

    mutating func record() -> Record {
        let stamp = Stamp(timestamp: integer(), user: text())
        return Record(
            name: text(), type: name(), changeTag: ChangeTag(incarnation: next(), sequence: next() >> 40),
            created: stamp, modified: stamp, fields: fields())
    }

    mutating func query() -> Query {
        let filters = (0..<below(4)).map { _ in
            Filter(
                field: chance(80) ? name() : nil, comparator: pick(Comparator.allCases), value: value(),
                distance: chance(20) ? double() : nil)
        }
        let sorts = (0..<below(3)).map { _ in
            Sort(field: name(), isAscending: chance(50), relativeLocation: chance(20) ? location() : nil)
        }
        return Query(recordType: text(), filters: filters, sorts: sorts)
    }
}
