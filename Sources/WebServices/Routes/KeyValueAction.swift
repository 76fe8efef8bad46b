import RecordModel
import Service

/// What is under `/kv/1/{container}/{environment}/`.
enum KeyValueAction: String, CaseIterable, Sendable {
    case get, set, list, changes, usage, watch

    /// `watch` is a long poll with POST and a stream with GET.
    var methods: [String] {
        switch self {
        case .get, .set, .list, .changes: ["POST"]
        case .usage, .watch: ["GET", "POST"]
        }
    }

    /// - Throws: `NOT_FOUND` for an action that there is not, 405 for a method that it is not called with.
    init(_ name: String, method: String) throws(RequestFailure) {
        guard let action = KeyValueAction(rawValue: name) else {
            let names = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw RequestFailure(.notFound, "no action '\(name)': there are \(names)")
        }
        try RequestFailure.require(method, of: action.methods, for: name)
        self = action
    }
}
