import RecordModel

extension PropertyValue {
    /// Whether both have the same bytes: unlike `==` it tells spellings of one letter apart, and 0 from -0, and takes a NaN for
    /// itself.
    func isSame(as other: PropertyValue) -> Bool {
        switch (self, other) {
        case (.string(let one), .string(let two)): one.utf8.elementsEqual(two.utf8)
        case (.double(let one), .double(let two)): one.bitPattern == two.bitPattern || one.isNaN && two.isNaN
        case (.array(let one), .array(let two)):
            one.count == two.count && zip(one, two).allSatisfy { $0.isSame(as: $1) }
        case (.dictionary(let one), .dictionary(let two)):
            one.count == two.count
                && zip(one, two).allSatisfy { $0.key.utf8.elementsEqual($1.key.utf8) && $0.value.isSame(as: $1.value) }
        default: self == other
        }
    }
}

extension PropertyValue? {
    /// Whether both are nothing, or the same bytes.
    func isSame(as other: PropertyValue?) -> Bool {
        guard let self, let other else { return self == nil && other == nil }
        return self.isSame(as: other)
    }
}
