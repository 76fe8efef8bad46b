/// The fields of a record type, found fast: by looking at one after the other where few are asked for, by a table where
/// many are, so that no request costs its fields times those of the type.
struct FieldTable {
    let type: RecordType
    private let table: [String: Int]?
    private static let searchedMax = 16

    /// - Parameter count: how many fields will be asked for.
    init(_ type: RecordType, asking count: Int) {
        self.type = type
        guard count > Self.searchedMax, type.fields.count > Self.searchedMax else {
            table = nil
            return
        }
        var table: [String: Int] = [:]
        table.reserveCapacity(type.fields.count)
        for (place, field) in type.fields.enumerated() { table[field.name] = place }
        self.table = table
    }

    subscript(name: String) -> FieldDefinition? {
        guard let table else { return type.field(named: name) }
        return table[name].map { type.fields[$0] }
    }
}
