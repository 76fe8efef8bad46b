// Faults in the shell round the core.
extension Mutant {
    static let inCluster: [Mutant] = [
        Mutant(
            "read before what was committed is applied", "Cluster/Lane/Replica.swift",
            "let index = max(confirmed, read.least)", "let index = PLANTED ? .zero : max(confirmed, read.least)"),
        Mutant(
            "take another leader's entry for one's own", "Cluster/Lane/Replica.swift",
            "if entries[offset].term == inFlight.position.term {",
            "if PLANTED || entries[offset].term == inFlight.position.term {"),
        Mutant(
            "send a write again though it may have been done", "Cluster/Routing/Router.swift",
            "if isWrite { throw .outcomeUnknown(\"node \\(node) did not answer\") }",
            "if isWrite, !(PLANTED) { throw .outcomeUnknown(\"node \\(node) did not answer\") }"),
        Mutant(
            "say that a lost write was never made", "Cluster/Routing/Router.swift",
            "            case .answered(.failure(.outcomeUnknown(let reason))):\n",
            """
                        case .answered(.failure(.outcomeUnknown(let reason))):
                            if PLANTED { throw .unavailable(reason) }

            """),
        Mutant(
            "apply twice", "Cluster/Machines/ShardMachine.swift", "let outcome = try transaction.apply(command)",
            """
            if PLANTED { _ = try transaction.apply(command) }
                        let outcome = try transaction.apply(command)
            """),
        Mutant(
            "do not compare what replicas hold", "Cluster/Scrub/Scrubber.swift", "if let last = replica.scrub.last {",
            "if let last = replica.scrub.last, !(PLANTED) {"),
    ]
}
