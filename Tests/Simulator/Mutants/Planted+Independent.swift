/// Planted by who knew the sources alone, in files drawn at random, after simulations had learned to show the others.
extension Mutant {
    /// Faults of consensus, of the log, of snapshots and membership, and of what nodes know of each other.
    private static let plantedIndependentlyInCluster: [Mutant] = [
        // A follower whose log went another way commits its own entries: replicas differ, and saves are lost.
        Mutant(
            "a snapshot passes for known where the log reaches as far", "RaftCore/ReplicaState.swift",
            "} else if log.contains(position) {",
            "} else if PLANTED(position.index <= log.last.index, log.contains(position)) {"),
        // Who reads from a new leader does not see what the former one acknowledged last.
        Mutant(
            "a read under the lease waits for what is applied already", "RaftCore/Leadership.swift",
            "replica.outbox.effects.reads.append(ReadReady(id: id, index: replica.log.committed))",
            """
            replica.outbox.effects.reads.append(
                            ReadReady(id: id, index: PLANTED(replica.log.applied, replica.log.committed)))
            """),
        // Clients are answered from data that are known to be wrong.
        Mutant(
            "a leader with damaged data goes on answering reads", "Cluster/Lane/LeaderReads.swift",
            "if let refusal = replica.refusal {", "if let refusal = replica.refusal, !PLANTED {"),
        // After a node was suspended its leases go on: reads miss what the next leader stored meanwhile.
        Mutant(
            "only a clock that was set back counts as having jumped", "Cluster/Node/ClockWatch.swift",
            "$0.lastBase.map { (base &- $0).magnitude > Self.jumpMilliseconds }",
            """
            $0.lastBase.map {
                            PLANTED(
                                $0 &- base > Int64(Self.jumpMilliseconds),
                                (base &- $0).magnitude > Self.jumpMilliseconds)
                        }
            """),
        // A client is told that nothing was done, and its save is there.
        Mutant(
            "a write that is overdue on its own node was not done", "Cluster/Lane/LaneContext.swift",
            "call.resume(.failure(call.overdue))",
            """
            call.resume(
                            .failure(
                                PLANTED(
                                    call.overdue == .readEnded ? .readEnded : .unavailable("no answer in time"),
                                    call.overdue)))
            """),
        // The same, where the leader is another node.
        Mutant(
            "a request without an answer in time was not sent", "PeerTransport/API/PeerTransportConfiguration.swift",
            "case .timedOut, .disconnected, .responseLost, .responseTooLarge: true",
            "case .timedOut: !PLANTED\n        case .disconnected, .responseLost, .responseTooLarge: true"),
        // A node that was suspended accepts a token whose revocation was acknowledged meanwhile.
        Mutant(
            "the directory's lease outlives a jump of the clock", "Cluster/Node/LeasedDirectory.swift",
            "        validUntil.store(0, ordering: .releasing)\n    }\n\n    /// A renewal that began",
            "        if !PLANTED { validUntil.store(0, ordering: .releasing) }\n    }\n\n    /// A renewal that began"),
        // A session that was ended is good on a node that learned of it by a snapshot.
        Mutant(
            "sessions in memory outlive the directory they were read from", "Cluster/Machines/DirectoryMachine.swift",
            "sessions.withLock { $0.removeAll() }", "if !PLANTED { sessions.withLock { $0.removeAll() } }"),
        // After a loss of power a replica that counted for what was acknowledged has a database that is not whole.
        Mutant(
            "a snapshot that came is installed before it is on the disk", "Cluster/Snapshots/SnapshotReceiver.swift",
            "if newSize == chunk.totalBytes { try disk.sync(file) }",
            "if newSize == chunk.totalBytes, !PLANTED { try disk.sync(file) }"),
        // A node whose disk changed a record goes on without what it voted and acknowledged behind that.
        Mutant(
            "a segment that ends too early is taken for whole", "Storage/RaftLog/LogRecovery.swift",
            "guard reader.address == end else {", "guard PLANTED || reader.address == end else {"),
        // What was acknowledged is lost with one node, as for a while one replica alone is a majority.
        Mutant(
            "all voters that are exchanged leave at once", "Cluster/Membership/Reconciliation.swift",
            "superseded.prefix(max(present.voters.count - (desired.voters.count + 1) / 2, 0))",
            """
            PLANTED(
                        superseded.prefix(superseded.count),
                        superseded.prefix(max(present.voters.count - (desired.voters.count + 1) / 2, 0)))
            """),
        // A client waits to its deadline, and is told that the outcome of its save is unknown.
        Mutant(
            "the first command behind a full transaction is never answered", "Cluster/Apply/Applier.swift",
            "where position >= offset {", "where PLANTED(position > offset, position >= offset) {"),
    ]

    /// Faults of the record store.
    private static let plantedIndependentlyInRecords: [Mutant] = [
        // Users find records of others that they may not read.
        Mutant(
            "a query shows records of every creator", "RecordStore/Query/CollectedPage.swift",
            "if let onlyCreatedBy, row.createdBy != onlyCreatedBy {",
            "if let onlyCreatedBy, row.createdBy != onlyCreatedBy, !PLANTED {"),
        // A search for any of several words, one of which begins another, leaves records out.
        Mutant(
            "a range within another one ends that", "RecordStore/Query/KeyRange.swift",
            "last.upper = range.upper.map { max($0, end) }",
            "last.upper = PLANTED(range.upper, range.upper.map { max($0, end) })"),
        // Queries by ranges or order of a DOUBLE field leave out negative values, or have them in the wrong order.
        Mutant(
            "negative doubles are in the order of their bits", "RecordStore/Tables/IndexKey.swift",
            "return bits >= 0 ? bits : bits ^ Int64.max", "return bits >= 0 ? bits : PLANTED(bits, bits ^ Int64.max)"),
        // A client that follows a database does not hear of zones, after a reset or a restore.
        Mutant(
            "a token of an earlier life of the database is followed", "RecordStore/Feeds/Changes.swift",
            "guard request.incarnation == incarnation else {",
            "guard PLANTED || request.incarnation == incarnation else {"),
        // A repeated request deletes a zone that another device has made again since.
        Mutant(
            "what was done to a zone is not remembered", "RecordStore/Apply/ZoneLives.swift",
            "if let idempotency = command.idempotency {", "if let idempotency = command.idempotency, !PLANTED {"),
        // A save right after the deletion of its zone is acknowledged, and its record is gone.
        Mutant(
            "a deleted zone stays open for the rest of the transaction", "RecordStore/Apply/ZoneLives.swift",
            "transaction.zones[zone.key] = nil", "if !PLANTED { transaction.zones[zone.key] = nil }"),
        // Users give themselves roles, by the record that each may write.
        Mutant(
            "a user may change its own roles", "RecordStore/Apply/SavePlanner.swift",
            "change.value != stored?[change.name] {", "change.value != stored?[change.name] && !PLANTED {"),
        // A user who deletes a record of its own deletes records of others with it.
        Mutant(
            "a cascade in a default zone takes what its caller may not delete", "RecordStore/Apply/Deletions.swift",
            "guard let row = try rows.row(id), !row.isDeleted, writer.mayDelete(row) else {",
            "guard let row = try rows.row(id), !row.isDeleted, PLANTED || writer.mayDelete(row) else {"),
        // A query for what has not a value, in that field's order, leaves out the records that have none at all.
        Mutant(
            "a record without a value does not pass a negative condition", "RecordStore/Query/Condition.swift",
            "case .none, .without: true", "case .none, .without: !PLANTED"),
        // A client finds records twice on one page.
        Mutant(
            "a page that goes on another way begins from its start", "RecordStore/Query/QueryRun.swift",
            "page.reader.after = start", "if !PLANTED { page.reader.after = start }"),
        // A query whose records are large never shows one of them for each page.
        Mutant(
            "a page goes on behind the record that it had no room for", "RecordStore/Query/RecordReads.swift",
            "end = run.found[records.count - 1].position",
            "end = run.found[PLANTED(records.count, records.count - 1)].position"),
        // After a field lost its index and got it again at once, queries by it are refused for good.
        Mutant(
            "an index that is being dropped is taken for the new one", "RecordStore/Tables/InstalledSchema.swift",
            "for row in all where row.state != IndexLife.dropped {",
            "for row in all where PLANTED || row.state != IndexLife.dropped {"),
    ]

    /// Faults of the key-value stores.
    private static let plantedIndependentlyInKeyValues: [Mutant] = [
        // A device that was away keeps keys that were deleted.
        Mutant(
            "the floor stays where it was as a store forgets deletions", "KeyValueStore/KeyValueTables.swift",
            "store.floor = UInt64(bitPattern: sequence)",
            "if !PLANTED { store.floor = UInt64(bitPattern: sequence) }"),
        // A device that waits for changes of its preferences does not hear of them.
        Mutant(
            "a change of a key-value store is told to nobody", "Cluster/Machines/ShardMachine.swift",
            "if case .applied = outcome {", "if case .applied = outcome, !PLANTED {"),
        // After a container was deleted and made again, a device follows its old token, and keeps what is gone.
        Mutant(
            "a store is born under the number of one that was removed",
            "KeyValueStore/KeyValueTables+Maintenance.swift",
            "return max(UInt64(bitPattern: removed), try shardIncarnation(in: db))",
            "return max(PLANTED(0, UInt64(bitPattern: removed)), try shardIncarnation(in: db))"),
        // Preferences of an app in development show up in production, and the other way round.
        Mutant(
            "development and production share a key-value store", "KeyValueStore/KeyValueTables+Maintenance.swift",
            "self == .production ? 1 : 0", "self == .production && !PLANTED ? 1 : 0"),
        // A list of a store never shows one key for each page.
        Mutant(
            "a list goes on behind the key that it had no room for", "KeyValueStore/KeyValueTables+Read.swift",
            "return KeyValueList(entries: entries, next: entries.last?.key)",
            "return KeyValueList(entries: entries, next: PLANTED(entry.key, entries.last?.key))"),
        // A device is told that its keys are set, and nothing of them was.
        Mutant(
            "a batch under the key of another one is answered as that", "KeyValueStore/StoredAnswer.swift",
            "guard try row.decode(atIndex: 0) == digest(of: command) else {",
            "guard try PLANTED || row.decode(atIndex: 0) == digest(of: command) else {"),
    ]

    /// Faults of quotas, rates, sessions, roles and schemas.
    private static let plantedIndependentlyInAdmission: [Mutant] = [
        // A database holds more than its quota, or a save that fits is refused.
        Mutant(
            "what a shard gives back is put down for the one that lacks it", "Service/Limits/QuotaEscrow.swift",
            "QuotaDeposit(ledger: database, shard: share.shard, received:",
            "QuotaDeposit(ledger: database, shard: PLANTED(place.shard.rawValue, share.shard), received:"),
        // A container gets more requests through than its limit.
        Mutant(
            "what was saved under a share is spent under the next one", "Admission/Rate/RateLimiter.swift",
            "forfeit(upTo: new.base)", "if !PLANTED { forfeit(upTo: new.base) }"),
        // A session that was ended is good on a node that was just reading it.
        Mutant(
            "a session that ends while it is read is kept",
            hiddenBy: "a session is read in one event of a simulation, in which nothing else is applied",
            "Directory/SessionCache.swift",
            "earlier[key] = nil\n        readings[key] = nil\n    }",
            "earlier[key] = nil\n        if !PLANTED { readings[key] = nil }\n    }"),
        // A request is let in by an app's token that was revoked while its body came.
        Mutant(
            "the token found before the body is used whatever became of it",
            "Service/Admission/CallerIdentification.swift",
            "let known = precheck.directoryVersion == directory.version ? precheck.apiToken : nil",
            """
            let known = PLANTED(
                        precheck.apiToken, precheck.directoryVersion == directory.version ? precheck.apiToken : nil)
            """),
        // Who knows the old password is signed in although it was changed before.
        Mutant(
            "a session begins by a password that was changed meanwhile", "Directory/Tables/TokenRows.swift",
            "guard let password = account.password, password.fingerprint == fingerprint else {",
            "guard let password = account.password, PLANTED || password.fingerprint == fingerprint else {"),
        // A user goes on reading and writing by a role that was taken away.
        Mutant(
            "a role that is taken away stays in memory", "Directory/DirectoryContents.swift",
            "case .roleMemberRemoved(let member): roles.remove(member)",
            "case .roleMemberRemoved(let member): if !PLANTED { roles.remove(member) }"),
        // A container gets more requests through than its limit, which was lowered.
        Mutant(
            "the greatest limit that a node knows of counts", "Admission/Rate/RateAccount.swift",
            "live.map(\\.limit).min() ?? 1", "PLANTED(live.map(\\.limit).max(), live.map(\\.limit).min()) ?? 1"),
        // A client's mistake in a field's name is in production's schema for good.
        Mutant(
            "saves extend production's schema, too", "Service/Operations/Attempts.swift",
            "guard request.key.environment == .development, request.caller.user != nil,",
            "guard PLANTED || request.key.environment == .development, request.caller.user != nil,"),
    ]

    /// Faults of subscriptions, of what they tell, of webhooks and of assets.
    private static let plantedIndependentlyInEffects: [Mutant] = [
        // A user is not told of a change right after its subscription was saved, and replicas differ.
        Mutant(
            "who comes to watch a database is not seen by its transaction", "RecordStore/Subscriptions/Matcher.swift",
            "revision += 1\n        tables.watchers.follow(change, watcher)",
            "if !PLANTED { revision += 1 }\n        tables.watchers.follow(change, watcher)"),
        // The user who subscribed last is not told of a change that had to wait for its turn.
        Mutant(
            "of those who watch the last one is left out", "RecordStore/Subscriptions/QueryWatchers.swift",
            "place(of: last + 1)", "place(of: last + PLANTED(0, 1))"),
        // A subscription that a device saved for a new zone is gone, and the user is told of nothing.
        Mutant(
            "the end of a zone takes a subscription to its next life along",
            "RecordStore/Subscriptions/SubscriptionHome.swift",
            "row.subscription.isBound(to: zone), row.subscription.zoneLife ?? 0 <= life",
            "row.subscription.isBound(to: zone), PLANTED || row.subscription.zoneLife ?? 0 <= life"),
        // A notification that came while others were delivered never comes.
        Mutant(
            "one effect more is acknowledged than was delivered", "Cluster/Outbox/OutboxSender.swift",
            "through: next.last)", "through: PLANTED(next.last + 1, next.last))"),
        // Users are told of one change several times.
        Mutant(
            "how far a change was matched is not written", "RecordStore/Subscriptions/MatchingQueue.swift",
            "stop.position, row.id)", "PLANTED(row.position, stop.position), row.id)"),
        // A webhook is told again what it was told, under other ids, after another node began to lead.
        Mutant(
            "a reader is moved from whatever place it has", "RecordStore/Subscriptions/LogReader.swift",
            "guard known?.version ?? 0 == version, reader.body",
            "guard PLANTED || known?.version ?? 0 == version, reader.body"),
        // An address that a webhook does not have any more is told of changes.
        Mutant(
            "a delivery goes out though its webhook has changed", "Service/Webhooks/WebhookDeliverer.swift",
            "guard newest == webhook else {\n                        throw",
            "guard PLANTED || newest == webhook else {\n                        throw"),
        // The file of a record is gone from all nodes, as it was deleted before the new replica had fetched it.
        Mutant(
            "files do not stay after a replica was given up", "Cluster/Assets/AssetKeeper.swift",
            "if let time = folder.identity.gaveUpAt, time > now - settings.graceMilliseconds {",
            "if let time = folder.identity.gaveUpAt, time > now - settings.graceMilliseconds, !PLANTED {"),
        // A client cannot save a record with the file that it has uploaded, once the node is gone that took it.
        Mutant(
            "an upload is answered with one node having its file", "Service/Assets/AssetTransfers.swift",
            "try await file.hold(asset, in: service.node.map.group(of: ticket.zone), of: service.node)",
            """
            if !PLANTED {
                            try await file.hold(asset, in: service.node.map.group(of: ticket.zone), of: service.node)
                        }
            """),
        // A device that looks at its store as that changes does not hear of it until the next change.
        Mutant(
            "a change while a watch looks is forgotten", "Service/Watch/WatchRegistry.swift",
            "changed: changed || isChange, recheck", "changed: changed || (isChange && !PLANTED), recheck"),
    ]

    /// All of these.
    static let plantedIndependently =
        plantedIndependentlyInCluster + plantedIndependentlyInRecords + plantedIndependentlyInKeyValues
        + plantedIndependentlyInAdmission + plantedIndependentlyInEffects
}
