import RecordModel

/// Where a query is asked: what its fields and tags are looked up in.
struct QueryScope {
    var container: String
    var type: InstalledType
    /// The life of the zone, which change tags name.
    var incarnation: UInt64?

    /// The index of a field for a purpose.
    /// - Throws: `BAD_REQUEST` that says which index is missing and how to add it.
    func index(
        _ field: String?, _ purpose: IndexPurpose, _ option: RecordModel.IndexOptions
    ) throws(ServiceError) -> InstalledIndex {
        guard let field else { throw ServiceError(.badRequest, "a filter without a field searches for words") }
        guard let index = type.index(named: field, for: purpose), index.options.contains(option) else {
            throw unindexed(field, option, purpose)
        }
        return index
    }

    /// The indexes that words are looked up in; without a field, those of all searchable fields.
    func searched(_ field: String?) throws(ServiceError) -> [InstalledIndex] {
        if let field { return [try index(field, .tokens, .searchable)] }
        let all = type.indexes.filter { $0.purpose == .tokens }.sorted { $0.name < $1.name }
        guard !all.isEmpty, all.count <= 255 else {
            throw ServiceError(
                .badRequest,
                "Field 'self' is not marked searchable: record type \(type.definition.name) has no searchable field; "
                    + "add one with `\(command("FIELD", "SEARCHABLE"))`")
        }
        return all
    }

    /// CloudKit's words first: clients look for them.
    func unindexed(
        _ field: String, _ option: RecordModel.IndexOptions, _ purpose: IndexPurpose = .values
    ) -> ServiceError {
        let definition = type.fields[field]
        let scalar = SystemField(rawValue: field)?.type ?? definition?.type
        guard let scalar else {
            return ServiceError(.badRequest, "record type \(type.definition.name) has no field \(field)")
        }
        let isMarked = definition?.indexes.contains(option) ?? false
        if scalar.isEncrypted || scalar.scalar == .asset || isMarked {
            return ServiceError(
                .badRequest,
                "'\(field)' is of type \(scalar.webName)\(scalar.isEncrypted ? ", encrypted" : ""), "
                    + "which cannot be searched or sorted by in this way")
        }
        let word = option == .sortable ? "sortable" : option == .searchable ? "searchable" : "queryable"
        let name = field == SystemField.recordID.rawValue ? "recordName" : field
        return ServiceError(
            .badRequest,
            "Field '\(name)' is not marked \(word): record type \(type.definition.name) needs that index; add it with "
                + "`\(command(field, word.uppercased()))`")
    }

    private func command(_ field: String, _ word: String) -> String {
        "zonekeeper schema add-index \(container) \(type.definition.name) \(field) \(word)"
    }
}
