/// The type of a single value. The raw value is CloudKit's name for it.
package enum ScalarType: String, Hashable, Sendable, CaseIterable {
    case string = "STRING"
    case int64 = "INT64"
    case double = "DOUBLE"
    case timestamp = "TIMESTAMP"
    case bytes = "BYTES"
    case location = "LOCATION"
    case reference = "REFERENCE"
    case asset = "ASSET"
    /// A number whose kind the schema leaves open; only the schema language knows it.
    case number = "NUMBER"
}

/// The type of a field: a scalar or a list of scalars, encrypted or not.
package struct FieldType: Hashable, Sendable {
    package var scalar: ScalarType
    package var isList: Bool
    package var isEncrypted: Bool
    /// For `number`: the kind that values take, `int64` or `double`, once it was stated.
    package var preferred: ScalarType?

    package init(_ scalar: ScalarType, isList: Bool = false, isEncrypted: Bool = false, preferred: ScalarType? = nil) {
        self.scalar = scalar
        self.isList = isList
        self.isEncrypted = isEncrypted
        self.preferred = preferred
    }

    /// The type without a preferred kind of numbers.
    package var unsettled: FieldType { FieldType(scalar, isList: isList, isEncrypted: isEncrypted) }

    /// The name that Web Services give it, such as `STRING` or `INT64_LIST`.
    package var webName: String {
        let base = scalar == .asset ? "ASSETID" : scalar.rawValue
        return isList ? base + "_LIST" : base
    }
}
