/// A client's copy of a zone or store, kept by following its change feed forwards: `records` when a page says that no
/// more is to come is what a `view` call saw.
///
/// Pages are judged as they come: changes in ascending order, none older than what was seen.
package struct FeedCopy<Content: Hashable & Sendable>: Sendable {
    /// A changed entry in its latest state.
    package struct Entry: Hashable, Sendable {
        package var name: String
        package var version: Version
        /// Nil: it was deleted.
        package var content: Content?

        /// A change of `name`.
        package init(_ name: String, _ version: Version, _ content: Content?) {
            self.name = name
            self.version = version
            self.content = content
        }
    }

    /// A page that no feed may give.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        package var description: String
    }

    /// What the client has.
    package private(set) var records: [String: Versioned<Content>] = [:]
    private var last: Version?

    /// A copy of nothing: it follows from the beginning, without a token.
    package init() {}

    /// Takes a page over.
    /// - Throws: where the page goes back to, or repeats, what the token says is known.
    package mutating func take(_ page: [Entry]) throws(Fault) {
        for entry in page {
            if let last, entry.version <= last {
                throw Fault(description: "the feed shows \(entry.name) at \(entry.version) after change \(last)")
            }
            last = entry.version
            records[entry.name] = entry.content.map { Versioned($0, entry.version) }
        }
    }

    /// The token has expired (the zone was made anew): from the beginning again.
    package mutating func restart() { self = FeedCopy() }
}
