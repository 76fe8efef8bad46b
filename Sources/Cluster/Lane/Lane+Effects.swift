import DequeModule
import GRDB
import Logging
import NIOCore
import PeerTransport
import RaftCore
import Storage

// Performing what the cores ask for.
extension Lane {
    func perform(_ effects: Effects, of replica: Replica) {
        replica.wakeAt = effects.wakeAt
        if let change = effects.roleChange { roleChanged(change, of: replica) }
        persist(effects, of: replica)
        send(effects.sendNow, of: replica.group)
        for read in effects.reads { replica.confirm(read) }
        for read in effects.failedReads { replica.fail(read) }
        for load in effects.loads { self.load(load, of: replica.group) }
        for follower in effects.snapshots { sendSnapshot(of: replica, to: follower) }
        if let mark = effects.install { install(mark, of: replica) }
        if let commitIndex = effects.commitIndex {
            replica.committed = commitIndex
            handOver(replica, isForced: false)
        }
    }

    /// Ends an entry point: what its replicas wrote goes to the log in one submission.
    func finishTurn() {
        guard !turn.writes.isEmpty else { return }
        submissions.add(Submission(writes: turn.writes, waiting: turn.waiting))
        turn.writes = []
        turn.waiting = []
        submit()
    }

    /// Gives the log as much as it takes.
    private func submit() {
        while let submission = submissions.next() {
            var writes = submission.writes
            if space.isShort { for index in writes.indices { writes[index].mayUseReserve = true } }
            log.submit(writes) { [self] result in
                eventLoop.execute { self.wrote(submission, result) }
            }
        }
    }

    /// Gives the log again what it refused.
    func submitRefused() {
        guard submissions.retry() else { return }
        log.resume()
        submit()
    }

    private func persist(_ effects: Effects, of replica: Replica) {
        let group = replica.group
        guard effects.hardState != nil || !effects.append.isEmpty else {
            return send(effects.sendAfterPersist, of: group)
        }
        if let hardState = effects.hardState { replica.submitted.hardState = hardState }
        if let last = effects.append.last { replica.submitted.position = last.position }
        turn.writes.append(LogWrite(group: group, hardState: effects.hardState, entries: effects.append))
        turn.waiting.append(Persist(group: group, state: replica.submitted, messages: effects.sendAfterPersist))
    }

    private func wrote(_ submission: Submission, _ result: Result<Void, RaftLogError>) {
        switch result {
        case .success:
            submissions.becameDurable(submission)
            for persist in submission.waiting { completed(persist) }
            finishTurn()
            submit()
        case .failure(.diskFull):
            foundFull()
            refused(submission)
        case .failure(.overloaded), .failure(.halted):
            refused(submission)
        case .failure(let error):
            // What was handed to the log and is not durable can neither be taken back nor be waited for: the replicas
            // in memory are ahead of the disk. The process ends; a restart finds what is durable.
            logFailed(error)
        }
    }

    private func refused(_ submission: Submission) {
        // What a replica wrote that was given up meanwhile must not come behind its removal from the log.
        let rest = Submission(
            writes: submission.writes.filter { replicas[$0.group] != nil },
            waiting: submission.waiting.filter { replicas[$0.group] != nil })
        submissions.wasRefused(submission, rest: rest)
    }

    private func completed(_ persist: Persist) {
        send(persist.messages, of: persist.group)
        guard let replica = replicas[persist.group] else { return }
        replica.didSync(through: persist.state.position.index)
        let effects: Effects
        if let mark = persist.installed {
            replica.handedOver = mark.position.index
            replica.applied = mark.position.index
            replica.committed = mark.position.index
            if let received = replica.receivedSnapshot { received.reply(.received(received.totalBytes)) }
            replica.receivedSnapshot = nil
            effects = replica.raft.snapshotInstalled(mark, now: now)
        } else {
            effects = replica.raft.persisted(persist.state.position, hardState: persist.state.hardState, now: now)
        }
        perform(effects, of: replica)
    }

    private func send(_ messages: [Message], of group: GroupID) {
        guard let transport else { return }
        for message in messages where !trust.rejects(message.to.node) {
            transport.send([PeerMessage(group: group, message: message)], to: message.to.node)
        }
    }

    private func roleChanged(_ change: RoleChange, of replica: Replica) {
        let group = replica.group
        leaders.roleChanged(isLeading: change.role == .leader, leader: change.leader?.node, of: group)
        if change.leader != nil, replica.transferUntil != .zero {
            replica.transferUntil = .zero
            scheduleFlush(of: group)
        }
        replica.changes(to: change.role)
        if change.role == .leader {
            replica.leadingSince = now
            // A new cluster shall not begin its work at a lower level than it need to.
            if group == .directory { nextBuildReview = .zero }
            logger.info("group \(group): leading in term \(change.term)")
            handOver(replica, isForced: true)
        }
    }

    private func load(_ request: LoadRequest, of group: GroupID) {
        do throws(QueueFull) {
            try pools.upkeep.submit { [self] isActive in
                guard isActive else { return }
                let result = Result<[Entry]?, any Error> {
                    try log.entries(
                        of: group, from: request.from, through: request.through, bytesMax: request.bytesMax)
                }
                eventLoop.execute { self.loaded(request, result, of: group) }
            }
        } catch {
            // The core waits for an answer before it asks for more.
            eventLoop.scheduleTask(in: .milliseconds(Int64(settings.heartbeatIntervalMilliseconds))) {
                self.load(request, of: group)
            }
        }
    }

    private func loaded(_ request: LoadRequest, _ result: Result<[Entry]?, any Error>, of group: GroupID) {
        if case .failure(let error) = result { loadFailed(error, of: group) }
        // The follower is given a snapshot instead, or another leader's entries.
        let entries = (try? result.get()) ?? []
        guard let replica = replicas[group] else { return }
        perform(replica.raft.loaded(request, entries: entries, now: now), of: replica)
        finishTurn()
    }

    private func loadFailed(_ error: any Error, of group: GroupID) {
        logger.error("group \(group): its log cannot be read back: \(error)")
        if DataDamage.isDamage(error) { damaged(group, error, .loading) }
    }

    /// Hands committed entries to the applier: at once on a leader, in larger pieces on a follower.
    func handOver(_ replica: Replica, isForced: Bool) {
        guard replica.committed > replica.handedOver, replica.receivedSnapshot == nil, replica.applyFailure == nil,
            replica.backlog < settings.apply.backlogEntriesMax
        else { return }
        let now = now
        let isLeader = replica.raft.role == .leader
        let waiting = replica.committed.rawValue - replica.handedOver.rawValue
        let due = replica.lastHandOver.adding(milliseconds: settings.apply.followerDelayMilliseconds)
        guard
            isLeader || isForced || replica.group == .directory || waiting >= settings.apply.followerEntriesMax
                || due <= now
        else { return }
        let from = replica.handedOver.next
        let through = replica.committed
        replica.didHandOver(through: through, now: now)
        let item: Applier.Item
        if let entries = replica.raft.entries(from: from, through: through, bytesMax: .max) {
            item = .entries(entries, completions: replica.takeCompletions(of: entries, settings.tracer))
        } else {
            replica.loseTrack(through: through)
            item = .logged(from: from, through: through)
        }
        if replica.applier.enqueue(item) { schedule(replica) }
    }

    /// Has the replica's worker apply what is queued.
    func schedule(_ replica: Replica) {
        let applier = replica.applier
        replica.worker.schedule { [self] in
            applier.drain { progress in
                eventLoop.execute { self.applied(progress, by: applier) }
            }
        }
    }

    /// The applier's report, back on the lane.
    func applied(_ progress: Applier.Progress, by applier: Applier) {
        let group = applier.group
        // The replica may have been given up meanwhile.
        guard let replica = replicas[group], replica.applier === applier else { return }
        switch progress {
        case .failed(ShardDatabaseError.failedSync(let path)): syncFailed(path)
        case .failed(let error as BuildTooOld): stopped(replica, by: error)
        case .failed(let error):
            if DataDamage.keepsFromApplying(error) { damaged(group, error, .applying) }
            if (error as? DatabaseError)?.resultCode == .SQLITE_FULL { foundFull() }
            let isAgain = replica.applyFailure != nil
            replica.applyFailure = "\(error)"
            replica.nextApply = now.adding(milliseconds: 1_000)
            if isAgain { replica.failConfirmedReads() }
        case .applied(let position, let installed):
            replica.applyFailure = nil
            if let installed { return logInstalled(installed, of: replica) }
            replica.didApply(through: position.index)
            replica.runConfirmedReads()
        }
    }
}
