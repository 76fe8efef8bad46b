/// Everything that was ever shown under a change tag, by every node, feed, query and conflict: one tag is one content,
/// for good.
///
/// A cheap check beside the linearizability of each history, which names the two sights that cannot both be true.
package struct Sightings<Content: Hashable & Sendable>: Sendable {
    private struct Place: Hashable {
        var name: String
        var version: Version
    }

    private var seen: [Place: (content: Content?, by: String)] = [:]

    /// Nothing was seen.
    package init() {}

    /// How many tags were seen.
    package var count: Int { seen.count }

    /// Something was shown.
    /// - Parameters:
    ///   - name: what it is, unique over all zones.
    ///   - content: nil for a deletion.
    ///   - witness: who saw it, for the report; made into text only where it is kept.
    /// - Returns: nil, or what was seen under the same tag before.
    package mutating func see(
        _ name: String, _ version: Version, _ content: Content?, by witness: @autoclosure () -> String
    ) -> String? {
        let place = Place(name: name, version: version)
        guard let before = seen[place] else {
            seen[place] = (content, witness())
            return nil
        }
        guard before.content != content else { return nil }
        return "\(name) at \(version) is \(Self.text(content)) for \(witness()) and was \(Self.text(before.content)) "
            + "for \(before.by)"
    }

    private static func text(_ content: Content?) -> String { content.map { "\($0)" } ?? "deleted" }
}
