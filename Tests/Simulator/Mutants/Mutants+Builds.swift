// Faults in what keeps builds and clocks apart.
extension Mutant {
    static let inBuilds: [Mutant] = [
        Mutant(
            "apply at the highest level that the build follows", "Cluster/Apply/Applier.swift",
            "machine.apply(commands, at: level, in: db)",
            "machine.apply(commands, at: PLANTED(levels.supported.upperBound, level), in: db)"),
        Mutant(
            "raise the level without asking the others", "Cluster/Lane/LeaderDuties.swift",
            "level = min(level, FeatureLevel(most))", "if !(PLANTED) { level = min(level, FeatureLevel(most)) }"),
        Mutant(
            "go on past a level that the build cannot follow",
            Edit(
                "Cluster/Lane/LeaderDuties.swift", "guard let map = context.peers.map else { return nil }",
                "guard let map = context.peers.map else { return nil }\n"
                    + "        if PLANTED { return context.settings.featureLevels.upperBound }"),
            Edit(
                "Cluster/Apply/Applier.swift", "guard next <= levels.supported.upperBound else {",
                "if PLANTED, next > levels.supported.upperBound { return [] }\n"
                    + "            guard next <= levels.supported.upperBound else {")),
        Mutant(
            "do not store the level", "Cluster/Apply/Applier.swift", "try AppliedRow.setLevel(next, in: db)",
            "if !(PLANTED) { try AppliedRow.setLevel(next, in: db) }"),
        Mutant(
            "trust a wrong clock", "Cluster/Node/ClockWatch.swift",
            "if case .wrong(let ahead) = verdict { ahead } else { nil }",
            "if case .wrong(let ahead) = verdict, !(PLANTED) { ahead } else { nil }"),
    ]
}
