/// A change of one record, with CloudKit's operation types.
package struct RecordWrite: Hashable, Sendable, CustomStringConvertible {
    /// What is to be done where the record is there, or is not.
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case create, update, forceUpdate, replace, forceReplace, delete, forceDelete
    }

    package var kind: Kind
    package var name: String
    /// The fields to set; nil removes one.
    package var fields: [String: String?]
    /// The change tag that `update`, `replace` and `delete` expect.
    package var version: Version?

    /// A change of the record `name`.
    package init(_ kind: Kind, _ name: String, fields: [String: String?] = [:], version: Version? = nil) {
        self.kind = kind
        self.name = name
        self.fields = fields
        self.version = version
    }

    package var description: String {
        let values = fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value ?? "nil")" }
        return "\(kind.rawValue) \(name)" + (version.map { " if \($0)" } ?? "")
            + (values.isEmpty ? "" : " {\(values.joined(separator: ", "))}")
    }

    /// What the change comes to.
    enum Effect {
        case save([String: String])
        case delete
        /// Success without a change.
        case nothing
        case exists, conflict, notFound
    }

    /// What it comes to on a record as it is; nil for none.
    func effect(on record: RecordCopy?) -> Effect {
        effect(on: record?.content, isExpected: record.map { $0.version == version } ?? false)
    }

    /// - Parameter isExpected: whether the record has the version that the change expects.
    func effect(on content: [String: String]?, isExpected: Bool) -> Effect {
        switch kind {
        case .create: content == nil ? .save(merged(onto: [:])) : .exists
        case .forceUpdate: .save(merged(onto: content ?? [:]))
        case .forceReplace: .save(merged(onto: [:]))
        case .forceDelete: content == nil ? .nothing : .delete
        case .update, .replace, .delete:
            if let content {
                if !isExpected {
                    .conflict
                } else if kind == .delete {
                    .delete
                } else {
                    .save(merged(onto: kind == .update ? content : [:]))
                }
            } else {
                .notFound
            }
        }
    }

    private func merged(onto content: [String: String]) -> [String: String] {
        var result = content
        for (name, value) in fields { result[name] = value }
        return result
    }
}

/// What became of a change of one record.
package enum WriteOutcome: Hashable, Sendable, CustomStringConvertible {
    case saved(Version)
    case deleted
    /// It was to be created and is there. The record where the answer shows it as it was judged: leave it out of an
    /// answer that a repetition of the request got, since it may show a later record.
    case exists(RecordCopy?)
    /// It has another change tag. The record as for `exists`.
    case conflict(RecordCopy?)
    case notFound
    /// Another change of an atomic batch failed.
    case notDone

    package var description: String {
        switch self {
        case .saved(let version): "saved \(version)"
        case .deleted: "deleted"
        case .exists(let record): "exists" + (record.map { " \($0)" } ?? "")
        case .conflict(let record): "conflict" + (record.map { " \($0)" } ?? "")
        case .notFound: "not found"
        case .notDone: "not done"
        }
    }

    var version: Version? {
        switch self {
        case .saved(let version): version
        case .exists(let record), .conflict(let record): record?.version
        case .deleted, .notFound, .notDone: nil
        }
    }
}
