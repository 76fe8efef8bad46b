import RaftCore

@testable import RecordModel

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededNumbers: RandomNumberGenerator {
    private var numbers: SplitMix64

    init(state seed: UInt64) { numbers = SplitMix64(seed: seed) }
    mutating func next() -> UInt64 { numbers.next() }
}

extension SeededNumbers {
    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func text() -> String {
        let pieces = [
            "a", "B", "9", " ", "\"", "\\", "/", "\u{0}", "\n", "\u{1F}", "\u{7F}", "é", "e\u{301}", "\u{2028}", "😀",
        ]
        return (0..<below(12)).map { _ in pieces[below(pieces.count)] }.joined()
    }

    mutating func name() -> String { "f" + String(below(40)) }

    mutating func integer() -> Int64 {
        switch below(5) {
        case 0: Int64.min
        case 1: Int64.max
        case 2: Int64(below(300)) - 150
        default: Int64.random(in: .min ... .max, using: &self)
        }
    }

    /// Any finite double, denormals and -0 among them.
    mutating func double() -> Double {
        let special: [Double] = [
            0, -0.0, .leastNonzeroMagnitude, -.greatestFiniteMagnitude, 0.1, 1e20, 1e-7, 9.007199254740993e15,
        ]
        if below(3) == 0 { return special[below(special.count)] }
        let number = Double(bitPattern: next())
        return number.isFinite ? number : 1.5
    }

    mutating func bytes(_ bound: Int) -> [UInt8] { (0..<below(bound)).map { _ in UInt8(truncatingIfNeeded: next()) } }

    mutating func json(depth: Int) -> JSONValue {
        switch below(depth > 0 ? 8 : 6) {
        case 0: .null
        case 1: .bool(below(2) == 0)
        case 2: .integer(integer())
        case 3: .number(double())
        case 4, 5: .string(text())
        case 6: .array((0..<below(5)).map { _ in json(depth: depth - 1) })
        default: .object((0..<below(25)).map { .init("\($0)\(text())", json(depth: depth - 1)) })
        }
    }

    mutating func scalar(_ type: ScalarType) -> FieldValue {
        switch type {
        case .string: return .string(text())
        case .int64: return .int64(integer())
        case .double: return .double(double())
        case .timestamp: return .timestamp(integer())
        case .bytes: return .bytes(bytes(20))
        case .location:
            var location = Location(latitude: double(), longitude: double())
            if below(2) == 0 { location.altitude = double() }
            if below(2) == 0 { location.timestamp = integer() }
            return .location(location)
        default:
            let zone = below(2) == 0 ? nil : ZoneID(name: name(), owner: below(2) == 0 ? nil : text())
            let actions = Reference.Action.allCases
            return .reference(Reference(recordName: text(), zone: zone, action: actions[below(actions.count)]))
        }
    }

    mutating func value() -> FieldValue {
        let types: [ScalarType] = [.string, .int64, .double, .timestamp, .bytes, .location, .reference]
        let type = types[below(types.count)]
        if below(4) > 0 { return scalar(type) }
        return .list(type, (0..<below(6)).map { _ in scalar(type) })
    }

    mutating func fields() -> Fields {
        Fields((0..<below(12)).map { _ in Fields.Field(name: name(), value: value()) })
    }

    /// The same bytes with a few changed, cut off, put in or taken out.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...below(4) {
            let place = bytes.isEmpty ? 0 : below(bytes.count)
            switch below(5) {
            case 0 where !bytes.isEmpty: bytes[place] = UInt8(truncatingIfNeeded: next())
            case 1 where !bytes.isEmpty: bytes[place] ^= 1 << UInt8(below(8))
            case 2: bytes.insert(UInt8(truncatingIfNeeded: next()), at: place)
            case 3 where !bytes.isEmpty: bytes.remove(at: place)
            default: bytes.removeLast(bytes.isEmpty ? 0 : below(bytes.count))
            }
        }
        return bytes
    }
}
