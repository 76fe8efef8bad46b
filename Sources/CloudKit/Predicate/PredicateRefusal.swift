/// Why no query can be made of a predicate that is well formed.
struct PredicateRefusal: Error {
    /// What is wrong, and what CloudKit has instead.
    var text: String
    /// Where, in a format.
    var mark = PredicateMark.none

    /// The error that the query fails with.
    var error: CKError {
        let excerpt = PredicateExcerpt.lines(mark.format, position: mark.position)
        let place = mark.format.isEmpty ? "" : " (character \(mark.position))"
        return .invalidQuery("Invalid predicate\(place): \(text)" + (excerpt.isEmpty ? "" : "\n" + excerpt))
    }
}

extension PredicateReading.Fault {
    /// The error that a query with the predicate fails with.
    var error: CKError {
        switch self {
        case .format(let error): .invalidQuery("Invalid predicate: \(error)")
        case .unreadable(let text): .invalidQuery("Invalid predicate: \(text)")
        }
    }
}

extension CKError {
    /// `invalidArguments` with a text for people.
    static func invalidQuery(_ text: String) -> CKError {
        CKError(.invalidArguments, reason: text)
    }
}
