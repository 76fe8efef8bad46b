/// The fields and indexes of the record type that is searched.
struct QueryFields {
    var type: RecordType
    /// For the command that adds an index.
    var container: String

    /// The field's definition; a system field that the schema does not list has no index.
    func definition(of name: String) throws(FormError) -> FieldDefinition {
        guard name != SystemField.etag.rawValue else { throw FormError("change tags cannot be searched or sorted by") }
        if let system = SystemField(rawValue: name) {
            return FieldDefinition(name: name, type: system.type, indexes: type.field(named: name)?.indexes ?? [])
        }
        if name == "___share" {
            throw FormError("'share': sharing is not built yet in this version of Zonekeeper")
        }
        guard let definition = type.field(named: name) else {
            throw FormError("the record type '\(type.name)' has no field '\(name)'")
        }
        guard !definition.type.isEncrypted else {
            throw FormError("'\(name)' is encrypted; encrypted fields cannot be searched or sorted by")
        }
        return definition
    }

    /// CloudKit's words first: clients look for them.
    func require(_ index: IndexOptions, _ definition: FieldDefinition) throws(FormError) {
        guard !definition.indexes.contains(index) else { return }
        let word = index.words.joined(separator: " ")
        throw FormError(
            "this needs the index \(word) on field \(definition.name) of record type \(type.name); add it with "
                + "`\(command(definition.name, word))`",
            words: "Field '\(QueryField.webName(definition.name))' is not marked \(word.lowercased())",
            missingIndex: MissingIndex(recordType: type.name, field: definition.name, index: word))
    }

    /// A search of all fields needs one that can be searched.
    func requireSearchable() throws(FormError) {
        guard !type.fields.contains(where: { $0.indexes.contains(.searchable) }) else { return }
        let need = "a search of all fields needs one with the index SEARCHABLE, and record type \(type.name) has none"
        guard
            let field = type.fields.first(where: {
                !$0.isSystem && SchemaRules.problem(indexes: .searchable, on: $0.type) == nil
            })
        else { throw FormError("\(need), nor a STRING field that could have it") }
        throw FormError(
            "\(need); add it with `\(command(field.name, "SEARCHABLE"))`",
            missingIndex: MissingIndex(recordType: type.name, field: field.name, index: "SEARCHABLE"))
    }

    private func command(_ field: String, _ word: String) -> String {
        "zonekeeper schema add-index \(container) \(type.name) \(field) \(word)"
    }
}
