package import RecordModel

/// How many rows a request writes, by its operations and the schema alone: what it costs of its container's rate.
///
/// A save is a row, and what it sets in an index a row for each member of a list, each six bytes of text (about a
/// word), and else one. A save that may make a record writes a row in every index of its type. What a save or a
/// deletion removes is not known here and costs nothing.
package struct WrittenRows: Hashable, Sendable {
    package private(set) var count = 0
    private let operations: Int

    /// What the request costs: a token for each so many rows that are begun.
    package var tokens: Int { max(count + Limits.rowsPerToken - 1, Limits.rowsPerToken) / Limits.rowsPerToken }

    /// Why a request may not write so many; nil if it may. Apply asks again, by what it finds stored.
    package var refusal: ServiceError? {
        count <= Limits.rowsPerRequestMax || operations == 1 ? nil : Self.tooMany
    }

    static let tooMany = ServiceError(
        .badRequest,
        """
        the records of the request have more than \(Limits.rowsPerRequestMax) rows in indexes together: send them in \
        several requests
        """)

    /// About a word and the space behind it.
    private static let bytesPerWord = 6

    package init(_ changes: [RecordChange], schema: Schema) {
        operations = changes.count
        var types: [String: (all: Int, byField: [String: [IndexDesign]])] = [:]
        for change in changes where change.kind != .delete && change.kind != .forceDelete {
            count += 1
            guard let name = change.recordType else { continue }
            if types[name] == nil {
                let designs = schema.type(named: name).map { IndexDesign.all(of: $0) } ?? []
                types[name] = (designs.count, Dictionary(grouping: designs, by: \.name))
            }
            guard let type = types[name] else { continue }
            let isWhole = change.kind != .update
            if isWhole { count += type.all }
            for field in change.fields {
                for design in type.byField[field.name] ?? [] {
                    count += Self.rows(of: field.value, in: design) - (isWhole ? 1 : 0)
                }
            }
        }
    }

    private static func rows(of value: FieldValue?, in design: IndexDesign) -> Int {
        switch value {
        case .string(let text)? where design.purpose == .tokens:
            min(max(text.utf8.count / bytesPerWord, 1), Tokenizer.tokensMax)
        case .list(_, let members)?:
            min(max(members.reduce(0) { $0 + rows(of: $1, in: design) }, 1), Limits.indexRowsPerRecordMax)
        default: 1
        }
    }
}
