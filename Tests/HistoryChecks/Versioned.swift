/// A change tag: the life of the zone or store, and the number of the change in it.
package struct Version: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Greater for each life.
    package var incarnation: UInt64
    /// Greater for each change.
    package var sequence: UInt64

    /// A version of these numbers.
    package init(_ incarnation: UInt64, _ sequence: UInt64) {
        self.incarnation = incarnation
        self.sequence = sequence
    }

    package static func < (left: Version, right: Version) -> Bool {
        (left.incarnation, left.sequence) < (right.incarnation, right.sequence)
    }

    package var description: String { "\(incarnation).\(sequence)" }
}

/// Something stored, with the change that made it what it is.
package struct Versioned<Content: Hashable & Sendable>: Hashable, Sendable, CustomStringConvertible {
    /// What is stored.
    package var content: Content
    /// The change that stored it.
    package var version: Version

    /// A content of a version.
    package init(_ content: Content, _ version: Version) {
        self.content = content
        self.version = version
    }

    package var description: String {
        guard let fields = content as? [String: String] else { return "\(version) \(content)" }
        return
            "\(version) {\(fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "))}"
    }
}

/// A record: its fields as text, and its change tag.
package typealias RecordCopy = Versioned<[String: String]>
