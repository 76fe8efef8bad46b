import HistoryChecks

/// What clients changed where somebody may watch, and in which order as far as they know: what the twin of
/// notifications computes from.
struct WatchedHistory: Sendable {
    /// A zone of a database.
    struct Zone: Hashable, Sendable, CustomStringConvertible {
        /// Whose private database it is in; nil for the public one.
        var owner: String?
        var name: String

        var description: String { owner == nil ? "public" : name }
    }

    /// What happened to a record; the raw values are those of notifications.
    enum Event: Int, Sendable, CaseIterable {
        case create = 1
        case update, delete
    }

    /// A change of a record. Every save has a value of its own, and a record that was made under the name of a deleted
    /// one is never deleted, so no two are alike.
    struct Change: Sendable {
        var name: String
        var event: Event
        /// By which queries look for it: as it is afterwards, or as it was before it was deleted.
        var kind: String?
        /// Nil where it was deleted.
        var value: String?
        /// Where the answer tells it.
        var version: Version?
        var type = Place.type
        /// What else queries look for, and notifications show; of a deleted record as it was before.
        var content = WatchedContent()
        /// Who made the record; nil is who changes it.
        var creator: String?
    }

    /// One request that changed one zone.
    struct Commit: Sendable {
        var zone: Zone
        /// Who asked for it.
        var user: String
        /// From which device, where it said so.
        var device: String?
        /// In order; none where the zone itself came or went.
        var changes: [Change]
        /// Its place among all calls and answers.
        let called: Int
        /// That of its answer; nil where nobody knows what became of it: it may have been done, or may be yet.
        var returned: Int?
    }

    private(set) var commits: [Commit] = []
    private var places = 0

    /// The place of a call or an answer.
    mutating func nextPlace() -> Int {
        places += 1
        return places
    }

    /// A client asks for a change.
    /// - Returns: its number.
    mutating func begin(
        _ changes: [Change], in zone: Zone, by user: String, from device: String?
    ) -> Int {
        commits.append(
            Commit(zone: zone, user: user, device: device, changes: changes, called: nextPlace(), returned: nil))
        return commits.count - 1
    }

    /// It was done.
    /// - Parameter versions: of its changes, where the answer tells them.
    mutating func end(_ number: Int, versions: [Version?] = []) {
        commits[number].returned = nextPlace()
        for (place, version) in zip(commits[number].changes.indices, versions) {
            commits[number].changes[place].version = version
        }
    }

    /// It was not done, and never will be.
    mutating func withdraw(_ number: Int) {
        // Tells of nothing: no subscription matches a change of no zone.
        commits[number].zone = Zone(owner: "", name: "")
        commits[number].changes = []
    }
}
