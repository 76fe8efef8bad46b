import RecordModel

/// A value as an index row holds it; the order of keys is the order of values.
///
/// Two classes: numbers (INT64, TIMESTAMP, DOUBLE in an order-keeping form, and the sequence behind `___etag`) and
/// bytes (STRING and REFERENCE as UTF-8, BYTES). Bytes compare as unsigned bytes, which for UTF-8 is the order of code
/// points.
enum IndexKey: Hashable, Comparable {
    case number(Int64)
    case bytes([UInt8])

    static func < (left: IndexKey, right: IndexKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left < right
        case (.bytes(let left), .bytes(let right)): left.lexicographicallyPrecedes(right)
        case (.number, .bytes): true
        case (.bytes, .number): false
        }
    }

    /// Its value in the tables.
    var value: any SQLValue {
        switch self {
        case .number(let number): number
        case .bytes(let bytes): bytes
        }
    }

    /// 0 for a number, which costs the same wherever it is stored.
    var byteCount: Int { if case .bytes(let bytes) = self { bytes.count } else { 0 } }

    /// Doubles in order as integers: -0 is 0, all NaN are one, above every number. SQLite's own REAL would turn NaN
    /// into NULL.
    static func number(ordering double: Double) -> Int64 {
        if double.isNaN { return Int64.max }
        let bits = Int64(bitPattern: (double == 0 ? 0 : double).bitPattern)
        return bits >= 0 ? bits : bits ^ Int64.max
    }

    /// The double that `number(ordering:)` made the number of.
    static func double(ordered number: Int64) -> Double {
        Double(bitPattern: UInt64(bitPattern: number >= 0 ? number : number ^ Int64.max))
    }
}

/// In messages a key is a field of one of these two kinds.
extension IndexKey? {
    var number: Int64? {
        get { if case .number(let number)? = self { number } else { nil } }
        set { if let newValue { self = .number(newValue) } }
    }

    var bytes: [UInt8]? {
        get { if case .bytes(let bytes)? = self { bytes } else { nil } }
        set { if let newValue { self = .bytes(newValue) } }
    }
}

/// The table that holds a field's rows.
enum IndexClass: Hashable {
    case number
    case bytes

    /// Nil for types that have no ordinary index.
    init?(_ type: FieldType) {
        if type.isEncrypted { return nil }
        switch type.scalar {
        case .int64, .timestamp, .double: self = .number
        case .string, .reference, .bytes: self = .bytes
        case .number: self = .number
        case .location, .asset: return nil
        }
    }
}

extension FieldType {
    /// The kind that the field's keys are of; numbers of an open kind are compared as doubles.
    var settledScalar: ScalarType { scalar == .number ? (preferred ?? .double) : scalar }

    /// Whether the field holds both INT64 and DOUBLE.
    var isOpenNumber: Bool { scalar == .number && preferred == nil }

    /// The kinds that values may be of.
    private func accepts(_ kind: ScalarType) -> Bool {
        isOpenNumber ? kind == .int64 || kind == .double : kind == settledScalar
    }

    /// The key of one value under this type; nil where the value is of another kind.
    func indexKey(_ value: FieldValue) -> IndexKey? {
        switch (settledScalar, value) {
        case (.int64, .int64(let number)), (.int64, .timestamp(let number)), (.timestamp, .timestamp(let number)),
            (.timestamp, .int64(let number)):
            .number(number)
        case (.double, .double(let number)): .number(IndexKey.number(ordering: number))
        case (.double, .int64(let number)): .number(IndexKey.number(ordering: Double(number)))
        case (.string, .string(let text)): .bytes(Array(text.utf8))
        case (.reference, .reference(let reference)): .bytes(Array(reference.recordName.utf8))
        case (.reference, .string(let text)): .bytes(Array(text.utf8))
        case (.bytes, .bytes(let bytes)): .bytes(bytes)
        default: nil
        }
    }

    /// The keys of a stored value, ascending, without duplicates; empty means that the record counts as missing the
    /// field.
    func indexKeys(_ value: FieldValue?) -> [IndexKey] {
        guard let value else { return [] }
        guard isList else { return indexKey(value).map { [$0] } ?? [] }
        guard case .list(_, let members) = value else { return [] }
        return Set(members.compactMap(indexKey)).sorted()
    }

    /// Whether a field of this type may hold the value. An encrypted field holds what sealing made of the value.
    func accepts(_ value: FieldValue) -> Bool {
        if isEncrypted { if case .sealed = value { return true } else { return false } }
        guard case .list(let element, let members) = value else { return !isList && accepts(value.type.scalar) }
        guard isList else { return false }
        return members.isEmpty
            || (accepts(element) && members.allSatisfy { $0.type.scalar == element && !$0.type.isList })
    }

    /// Whether the value is of a number field from before its kind was settled.
    func isUnsettled(_ value: FieldValue) -> Bool {
        guard scalar == .number, preferred != nil, !accepts(value) else { return false }
        return FieldType(.number, isList: isList, isEncrypted: isEncrypted).accepts(value)
    }

    /// A number from before the field's kind was settled, as that kind; nil where that is not exact, or for any other
    /// value.
    func settled(_ value: FieldValue) -> FieldValue? {
        guard isUnsettled(value) else { return nil }
        if case .list(_, let members) = value {
            let converted = members.compactMap(settledMember)
            return converted.count == members.count ? .list(settledScalar, converted) : nil
        }
        return settledMember(value)
    }

    private func settledMember(_ value: FieldValue) -> FieldValue? {
        switch (settledScalar, value) {
        case (.int64, .double(let number)): Int64(exactly: number).map(FieldValue.int64)
        case (.double, .int64(let number)): number.magnitude <= 1 << 53 ? .double(Double(number)) : nil
        default: nil
        }
    }
}
