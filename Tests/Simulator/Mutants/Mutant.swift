/// A fault to plant into a copy of the production sources.
struct Mutant: Sendable {
    /// One place of the sources, and what it becomes.
    struct Edit: Sendable {
        /// Below `Sources/`.
        var file: String
        /// Must be there exactly once.
        var original: String
        /// `PLANTED` stands for the condition that this fault is the one chosen for the run; without it the code must
        /// do what the original does.
        var replacement: String
    }

    /// What goes wrong, in a few words; unique.
    var name: String
    /// Why no seed is expected to show it: another defence that holds, or how much has to come together. Tests of the
    /// part itself show such a fault.
    var hiddenBy: String?
    var edits: [Edit]

    /// A fault in one place, as `Edit` has it.
    init(_ name: String, hiddenBy: String? = nil, _ file: String, _ original: String, _ replacement: String) {
        self.init(name, hiddenBy: hiddenBy, Edit(file, original, replacement))
    }

    init(_ name: String, hiddenBy: String? = nil, _ edits: Edit...) {
        self.name = name
        self.hiddenBy = hiddenBy
        self.edits = edits
    }

    /// All of them; the number of one is its place here, from 1.
    static let all = inConsensus + inLog + inCluster + inStore + inBuilds + planted + inEffects

    /// Those made by who knew the sources alone, and nothing of what looks for them: they measure it.
    private static let planted = [
        plantedInConsensus, plantedInLog, plantedInSnapshots, plantedInApply, plantedInMembership, plantedInDirectory,
        plantedInRecords, plantedInKeyValues, plantedInQuotas, plantedInRates, plantedInSessions, plantedInSchemas,
        plantedInAudit, plantedInAssets, plantedInSubscriptions, plantedInShares, plantedInTransport,
        plantedInWebhooks, plantedLater, plantedIndependently,
    ].flatMap(\.self)
}

extension Mutant.Edit {
    init(_ file: String, _ original: String, _ replacement: String) {
        self.init(file: file, original: original, replacement: replacement)
    }
}
