/// What must hold of stored data, whatever clients send. Checked where bytes become state.
///
/// A check that fails rolls its transaction back, and the replica applies nothing more: it is never an answer to a
/// client, and no entry is left out. Where only this replica says so, its data are damaged and a sound copy takes its
/// place. Where all replicas say so, the program is wrong; what is stored stays as it was before the entry.
package enum Invariant {
    /// - Parameter what: what does not hold, with its numbers. Made only where the check fails.
    /// - Throws: `InvariantViolation` unless `holds`.
    @inlinable
    package static func check(
        _ holds: Bool, _ what: @autoclosure () -> String
    ) throws(InvariantViolation) {
        if !holds { throw InvariantViolation(what()) }
    }
}

/// Stored data contradict themselves, or a command was about to make them do so.
package struct InvariantViolation: Error, CustomStringConvertible, Sendable {
    /// What does not hold, with its numbers; for operators, never part of an answer to a client.
    package let description: String

    @usableFromInline
    package init(_ description: String) { self.description = description }
}
