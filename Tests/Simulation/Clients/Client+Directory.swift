import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore
import Service
import Wire

// What a client sees of the directory, which every node answers from a copy of its own.
extension Client {
    /// Puts into the directory what all clients need. Repeats until all of it is there.
    func setUp(clients: Int, limits: ContainerLimits) async {
        let commands = Place.directoryCommands(clients: clients, limits)
        for command in commands {
            var isDone = false
            while !isDone {
                let answer = await ask(repeats: true) { visit throws(RequestFailure) in
                    // A repeat finds that the command was done, and is refused for that.
                    _ = try await visit.settle(command)
                }
                if case .answered = answer { isDone = true }
                if case .failed(let failure) = answer {
                    return recorder.violated("the directory refuses what clients need: \(failure.error)")
                }
            }
        }
        await importSchema(Place.schemaKey, Place.schema(withFiles: recorder.files.isUsed))
        await importSchema(Workbook.schemaKey, Workbook.schema(clients: clients))
        recorder.isSetUp = true
    }

    private func importSchema(_ key: SchemaKey, _ schema: Schema) async {
        while true {
            let answer = await ask(repeats: true) { visit throws(RequestFailure) -> DirectoryOutcome in
                try await visit.service.cluster.refreshDirectory()
                let known = visit.service.schema(key)
                if SchemaPlan(from: known.schema, to: schema).isEmpty { return .done(version: known.version) }
                return try await visit.settle(.setSchema(key, expectedVersion: known.version, schema))
            }
            switch answer {
            case .answered(.refused(let error), _) where error.code == .conflict: break
            case .answered(.refused(let error), _): return recorder.violated("the directory refuses a schema: \(error)")
            case .answered: return
            case .failed(let failure): return recorder.violated("the directory refuses a schema: \(failure.error)")
            case .nothing: break
            }
        }
    }

    /// Makes a container, or looks whether a node that may rely on its copy of the directory knows of all that were
    /// made before.
    func useDirectory() async {
        if recorder.containers.count < 12, world.chance(25) {
            await makeContainer()
        } else {
            await lookForContainers()
        }
    }

    private func makeContainer() async {
        let name = "iCloud.\(newValue())"
        // A change that is known to be done is known to every node that answers.
        let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.settle(.createContainer(name: name, time: visit.service.now))
        }
        if case .answered(.done, isFirst: _) = answer { recorder.containers.append(name) }
    }

    private func lookForContainers() async {
        let known = recorder.containers
        let answer = await ask(repeats: true, triesMax: 2) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let seen = visit.node.directory.snapshot.containers
            return known.first { seen[$0] == nil }
        }
        guard case .answered(let missing?, isFirst: _) = answer else { return }
        recorder.violated(
            "client \(number): a node relies on a directory without container \(missing), which was made before")
    }

    /// Counts everything that the container holds, and holds it against what the quotas were charged.
    func recountUsage() async {
        for container in [Place.container, Hoard.container, Workbook.container] { await recountUsage(of: container) }
    }

    private func recountUsage(of container: String) async {
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            var request = UsageRequest(container: container, environment: .development)
            request.detail = .recount
            return try await ContainerUsage.page(request, in: visit.service, by: visit.deadline)
        }
        switch answer {
        case .answered(let usage, _):
            for database in usage.databases where !database.isEqual {
                recorder.violated(
                    "the usage of \(database.key.owner) is \(database.used), and \(database.recount) counted again")
            }
        case .failed(let failure): recorder.violated("usage cannot be counted: \(failure.error)")
        case .nothing: recorder.violated("usage could not be counted in time")
        }
    }

    /// Begins a session, uses it at several nodes, so that they have it in memory, and ends it. Once its end is
    /// acknowledged no node takes it.
    func endSession() async {
        let account = Place.accounts[0]
        let id = "short-\(newValue())"
        let begun = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.settle(.createToken(Place.session(id, account)))
        }
        guard case .answered(.done, _) = begun else { return }
        let session = UserSession(id)
        let look: @Sendable (Visit) async throws(RequestFailure) -> Bool = { visit throws(RequestFailure) in
            try await visit.enter { _ throws(RequestFailure) in true }
        }
        for _ in 0..<3 {
            if case .failed(let failure) = await ask(repeats: true, triesMax: 4, as: session, look) {
                return recorder.violated("client \(number): a session that was begun is refused: \(failure.error)")
            }
            moveOn()
        }
        if world.chance(60), let node = recorder.hideDirectory() { goTo(node) }
        let ended = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.end(session: id)
        }
        guard case .answered(.done, _) = ended else { return }
        recorder.endedSessions.append(session)
        await requireEnd(of: session)
    }

    /// Begins a session, uses it at a node that has it in memory then, and ends it while that node is cut off, for so
    /// long that the others' logs have let its end go: the node learns of it by a snapshot, and does not take it.
    func endSessionFarAway() async {
        let id = "far-\(newValue())"
        guard await settle([.createToken(Place.session(id, Place.accounts[0]))]) else { return }
        let look: @Sendable (Visit) async throws(RequestFailure) -> Bool = { visit throws(RequestFailure) in
            try await visit.enter { _ throws(RequestFailure) in true }
        }
        let present = nodes.filter { $0.running != nil }.shuffled(using: &world.generator)
        guard present.count > 2, recorder.mayDisturb(40 * World.second) else { return }
        let (away, network) = (present[0], present[0].network)
        let session = UserSession(id)
        guard case .value = await ServerCall.make(to: away, as: session, recorder, look) else { return }
        network.isolate(away.number)
        goTo(present[1].number)
        let ended = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.end(session: id)
        }
        let end = world.now + 20 * World.second
        padding = 2_000
        for _ in 0..<24 where world.now < end && !isEnding { await save() }
        padding = 0
        network.heal()
        guard case .answered(.done, _) = ended else { return }
        recorder.endedSessions.append(session)
        // What it does not know yet, it does not rely on.
        for _ in 0..<20 {
            switch await ServerCall.make(to: away, as: session, recorder, look) {
            case .value:
                return recorder.violated(
                    "client \(number): node \(away.number), which was away, takes session \(id), which has ended")
            case .failed: return
            case .refused, .unknown: await sleep(500 * World.millisecond)
            }
        }
    }

    /// Sessions that ended are taken by no node, however it learnt of that.
    func tryEndedSessions() async {
        for session in recorder.endedSessions.shuffled(using: &world.generator).prefix(12) {
            await requireEnd(of: session)
        }
    }

    /// Asks all nodes at the same moment whether one of them takes a session that was ended.
    private func requireEnd(of session: UserSession) async {
        await withTaskGroup(of: Void.self) { group in
            for node in nodes where node.running != nil {
                let known = UserSession(session.id)
                known.take(session.token)
                group.addTask { [self] in
                    let answer = await ServerCall.make(to: node, as: known, recorder) { visit throws(RequestFailure) in
                        try await visit.enter { _ throws(RequestFailure) in true }
                    }
                    guard case .value = answer else { return }
                    recorder.violated(
                        "client \(number): node \(node.number) takes session \(session.id), which was ended before")
                }
            }
        }
    }
}

extension Visit {
    /// Has a group apply a command of the cluster's own.
    func submit(_ command: GroupCommand, to group: GroupID) async throws(RequestFailure) -> [UInt8] {
        do throws(ClusterError) {
            return try await node.router.submit(command, to: group, by: deadline)
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Has an administrator's command applied by the directory.
    func settle(_ command: DirectoryCommand) async throws(RequestFailure) -> DirectoryOutcome {
        let origin = AuditOrigin(actor: "administrator", requestID: "", address: "", time: service.now)
        return try await service.cluster.settle(command, origin: origin, by: deadline)
    }

    /// Ends a session as a node does that was shown a copied token: by an entry that tells the audit log of two events.
    func end(session id: String) async throws(RequestFailure) -> DirectoryOutcome {
        let origin = AuditOrigin(actor: "simulation", requestID: "", address: "", time: service.now)
        let event = AuditEvent(origin: origin, action: "session.reuse", subject: "session \(id)")
        let entry = DirectoryEntry(.revokeToken(id: id), origin: origin, events: [event])
        do {
            return try DirectoryOutcome(decoding: try await node.changeDirectory(entry, by: deadline))
        } catch let error as ClusterError {
            throw RequestFailure(error)
        } catch {
            throw RequestFailure(.internalError, "\(error)")
        }
    }

    /// Makes sure that this node may rely on what it knows of the directory.
    func requireDirectory() async throws(RequestFailure) {
        do throws(ClusterError) { try await node.requireDirectory() } catch { throw RequestFailure(error) }
    }
}
