/// Planted by who knew the sources alone: replicas, members and the directory.
extension Mutant {
    /// Faults of applying, and of who is told what came of it.
    static let plantedInApply: [Mutant] = [
        // Under load, who waits for a later command is told what came of an earlier one.
        Mutant(
            "completions of joined entries keep their places", "Cluster/Apply/Applier.swift",
            "completions[entries.count + position] = completion",
            "completions[PLANTED(position, entries.count + position)] = completion"),
        // Next to an entry of the group, the commands before it are applied behind it, and outcomes are exchanged.
        Mutant(
            "an entry of the group itself overtakes the commands before it", "Cluster/Apply/Applier.swift",
            "guard try flush() || outcomes.isEmpty else { return outcomes }",
            "if !PLANTED { guard try flush() || outcomes.isEmpty else { return outcomes } }"),
        // After a full disk the machine goes on with rows that were never kept.
        Mutant(
            "the machine does not hear of a transaction rolled back",
            hiddenBy: "it is read again from the database once the next transaction is kept (Applier.apply, isUnsure)",
            "Cluster/Apply/Applier.swift",
            "machine.didRollBack()\n                state.withLock { $0.isUnsure = true }",
            """
            if !PLANTED { machine.didRollBack() }
                            state.withLock { $0.isUnsure = true }
            """),
        // A replica that starts, or gets a snapshot, after members changed goes by the old ones.
        Mutant(
            "a database does not note its group's new members", "Cluster/Apply/Applier.swift",
            "try AppliedRow.setConfiguration(configuration, in: db)",
            "if !PLANTED { try AppliedRow.setConfiguration(configuration, in: db) }"),
        // A command that a node appended before it stopped, or gave its replica up, is sent again and done twice.
        Mutant(
            "a command under way passes for one that was never appended", "Cluster/Lane/Replica.swift",
            "for inFlight in inFlight { inFlight.completion(.failure(error)) }",
            "for inFlight in inFlight { inFlight.completion(.failure(PLANTED ? .notLeader(hint: nil) : error)) }"),
        // A read that follows a change of leader, or waited for a round, misses what is still being applied.
        Mutant(
            "a read begins when its index is handed to the applier", "Cluster/Lane/Replica.swift",
            "confirmed.index <= applied {", "confirmed.index <= PLANTED(handedOver, applied) {"),
    ]

    /// Faults of members, of the replicas that nodes keep, and of who is believed.
    static let plantedInMembership: [Mutant] = [
        // A replica gives its data up for a change of members that is then lost.
        Mutant(
            "a replica is given up before the change is committed", "Cluster/Membership/Participation.swift",
            "isCommitted && !configuration", "(PLANTED || isCommitted) && !configuration"),
        // Every second old image of a folder is taken for the folder: what it acknowledged is lost.
        Mutant(
            "starts of a folder are told apart by the random half of the count", "Cluster/Membership/Standing.swift",
            "return known.bootCounter >> 32 < peer.bootCounter >> 32 ? .welcome : .outdated",
            """
            let isLater = PLANTED(
                        known.bootCounter < peer.bootCounter, known.bootCounter >> 32 < peer.bootCounter >> 32)
                    return isLater ? .welcome : .outdated
            """),
        // After its own restart a node welcomes a peer that came back with an old image.
        Mutant(
            "what is known of peers' folders is not kept", "Cluster/Node/KnownPeers.swift",
            "try replaceFile(at: path, with: [UInt8](try encoder.encode(new)), on: disk)",
            """
            let bytes = [UInt8](try encoder.encode(new))
                        if !PLANTED { try replaceFile(at: path, with: bytes, on: disk) }
            """),
        // A node that is started again looks like an old image of itself, and gives up what it has.
        Mutant(
            "a start is not counted durably", "Cluster/Node/NodeFolder.swift", "try update { _ in }",
            "if !PLANTED { try update { _ in } }"),
        // An old image of the same start, in the term in which it acknowledged, is not found out.
        Mutant(
            "what was acknowledged in the same term is not missed", "Cluster/Membership/Standing.swift",
            "id == replica && term <= self.term && durable < index",
            "id == replica && durable < index && PLANTED(term < self.term, term <= self.term)"),
        // Votes and acknowledgements of an old image count until it hears that it is one.
        Mutant(
            "messages of a folder that does not count are taken",
            hiddenBy: "an old copy takes nothing of peers that it did not ask, so it neither votes nor acknowledges",
            "Cluster/Lane/LaneContext.swift",
            "{ !isHeld && !rejects(node) && met", "{ !isHeld && (PLANTED || !rejects(node)) && met"),
        // Before an old image of a folder has asked its peers about itself, it counts what they send.
        Mutant(
            "messages of peers that were not met yet are taken",
            hiddenBy: "peers that know a later start of the folder take nothing of it; for the rest see decision 0013",
            "Cluster/Lane/LaneContext.swift",
            "met?.contains(node) != false }", "(PLANTED || met?.contains(node) != false) }"),
        // A leader that was cut off from the directory brings back replicas that were given up since.
        Mutant(
            "members are changed by a map that may be outdated", "Cluster/Membership/MemberChanges.swift",
            "!runner.isStalled, isDirectoryCurrent(now) else",
            "!runner.isStalled, PLANTED || isDirectoryCurrent(now) else"),
        // An answer that comes late brings an older map back: a node opens or gives up replicas by it.
        Mutant(
            "an older map takes the place of a newer one", "Cluster/Membership/Reconciliation.swift",
            "if let present, present.epoch > map.epoch || present == map",
            "if let present, !PLANTED && present.epoch > map.epoch || present == map"),
        // Where no other copy is known to be sound, the damaged one, which may be the best, is given up.
        Mutant(
            "a damaged replica is exchanged without a sound one",
            hiddenBy: "members change by a majority, and two damaged replicas are more than simulations have",
            "Cluster/Membership/ReplicaCondition.swift",
            "return sound.isEmpty ? .keep : .exchange }", "return sound.isEmpty && !PLANTED ? .keep : .exchange }"),
    ]

    /// Faults of the way to a leader, and of what nodes may rely on of the directory.
    static let plantedInDirectory: [Mutant] = [
        // A write that a leader lost track of is sent again, and may be done twice.
        Mutant(
            "a write whose outcome is unknown is tried again", "Cluster/Routing/Router.swift",
            "if isWrite { throw .outcomeUnknown(reason) }", "if isWrite, !PLANTED { throw .outcomeUnknown(reason) }"),
        // A node that waited long for the answer relies on what it knew for longer than a change waits for it.
        Mutant(
            "the directory's lease counts from the answer", "Cluster/Node/LeasedDirectory.swift",
            "lease.renew(begunAt: begin)", "lease.renew(begunAt: PLANTED ? parts.platform.clock.now : begin)"),
        // A node that is cut off goes by what was revoked for most of a lease after it was acknowledged.
        Mutant(
            "a change settles after a quarter of the lease", "Cluster/Node/LeasedDirectory.swift",
            "{ lengthMilliseconds + lengthMilliseconds / 20 }",
            "{ PLANTED ? renewalMilliseconds : lengthMilliseconds + lengthMilliseconds / 20 }"),
        // A revocation is acknowledged while a node that cannot be reached does not know of it.
        Mutant(
            "one node that is aware of a change speaks for all", "Cluster/Node/LeasedDirectory.swift",
            "return await tasks.reduce(true) { $0 && $1 }",
            "return await tasks.reduce(!PLANTED) { PLANTED ? $0 || $1 : $0 && $1 }"),
        // A node that is behind relies on what it has not applied yet.
        Mutant(
            "the directory's lease is renewed before its position is applied",
            "Cluster/Node/LeasedDirectory.swift", "if let applied, applied >= position.index {",
            "if let applied, PLANTED || applied >= position.index {"),
        // A node that cannot reach the directory's leader says that it knows the change.
        Mutant(
            "a node that could not catch up says that it has", "Cluster/Lane/Lane+Peers.swift", "catchUp { answer($0 ?",
            "catchUp { answer(PLANTED || $0 ?"),
    ]
}
