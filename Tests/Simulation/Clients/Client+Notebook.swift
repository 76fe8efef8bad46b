import Cluster
import Directory
import HistoryChecks
import RecordModel
import RecordStore
import Service

// What a client does with the zone that it alone uses. What it is told must be what it did.
extension Client {
    func useNotebook() async {
        guard notebook.isMade else { return await makeNotebook() }
        for _ in 0..<world.random(1...4) where notebook.isMade && !isEnding { await useMadeNotebook() }
    }

    private func useMadeNotebook() async {
        switch world.random(0...24) {
        case 20: await deleteWithCascade()
        case 21: await tryTokenBefore()
        case 22: await dropExtraMeanwhile()
        case 23: await deletePair()
        case 0..<6: await changeNotes(newChanges())
        case 6: await lookUpNotes()
        case 7: await lookUpVersions(of: world.pick(Notebook.names))
        case 8..<11: await queryNotes()
        case 11: await queryLabels()
        case 12..<14: await followNotes()
        case 14: await walkBackwards()
        case 15..<17: await followDatabase()
        case 17: await changeIndex()
        case 18: await dropExtra()
        case 19: await dropExtraMeanwhile()
        default: await remakeZone()
        }
    }

    /// Looks at the notebook in every way there is.
    func readBackNotebook() async {
        guard notebook.isMade else { return }
        await lookUpNotes()
        await queryNotes()
        await queryLabels()
        await followNotes()
        await walkBackwards()
        await followDatabase()
        for name in Notebook.names { await lookUpVersions(of: name) }
        await deletePair()
        await remakeZone()
        for _ in 0..<3 where notebook.isMade { await changeNotes(newChanges()) }
        guard notebook.isMade else { return }
        await tryTokenBefore()
        await lookUpNotes()
        await followNotes()
    }

    // MARK: Certainty

    func complain(_ text: String) {
        recorder.violated("client \(number) in its zone \(notebook.zone): \(text)")
        leaveNotebook()
    }

    /// What the zone holds is not known any more: another one is begun.
    private func leaveNotebook() {
        notebookSerial += 1
        notebook = Notebook(client: number, serial: notebookSerial)
    }

    /// What came of a change; nil where that is not known.
    private func outcome<Value>(_ answer: Asked<Value>, of what: String) -> Value? {
        switch answer {
        case .answered(let value, _): return value
        case .failed(let failure): complain("\(what) is refused: \(failure.error)")
        case .nothing: leaveNotebook()
        }
        return nil
    }

    /// What a read found; nil where there was no answer.
    func found<Value: Sendable>(
        _ what: String,
        _ look: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Value? {
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in try await look(visit, request) }
        }
        switch answer {
        case .answered(let value, _): return value
        case .failed(let failure): complain("\(what) is refused: \(failure.error)")
        case .nothing: break
        }
        return nil
    }

    /// Judges an answer.
    func judge(_ what: String, _ body: () throws(UnexpectedAnswer) -> Void) {
        do { try body() } catch { complain("\(what): \(error)") }
    }

    // MARK: Changes

    private func makeNotebook() async {
        guard await setType() != nil, await changeZone(isCreation: true) else { return }
        notebook.isMade = true
        notebook.hasNews = true
    }

    private func newNote() -> Notebook.Note {
        Notebook.Note(
            number: Int64(world.random(0...3)), owner: world.chance(40) ? world.pick(Notebook.names) : nil,
            label: world.chance(70) ? world.pick(Notebook.labels) : nil, extra: world.chance(30) ? newValue() : nil)
    }

    func newChanges() -> [Notebook.Change] {
        let names = Notebook.names.shuffled(using: &world.generator).prefix(world.random(1...4))
        let isDeletion = world.chance(30)
        return names.map { ($0, isDeletion || world.chance(10) ? nil : newNote()) }
    }

    /// Deletes a record by the same request as one that it goes with.
    private func deletePair() async {
        let names = Notebook.names.shuffled(using: &world.generator).prefix(2)
        let pair = [Notebook.Note(number: 0), Notebook.Note(number: 1, owner: names[0])]
        guard await changeNotes(Array(zip(names, pair))) else { return }
        await changeNotes(names.shuffled(using: &world.generator).map { ($0, nil) }, isAtomic: true)
    }

    @discardableResult
    func changeNotes(_ changes: [Notebook.Change], isAtomic: Bool? = nil) async -> Bool {
        let body = notebook.body(changes, isAtomic: isAtomic ?? world.chance(60))
        let identity = Visit.Identity(key: newKey(), body: body)
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
            }
        }
        guard let result = outcome(answer, of: "a save") else { return false }
        for item in result.items {
            guard case .failed(let error, _) = item.outcome else { continue }
            complain("a save of \(item.recordName) is refused: \(error)")
            return false
        }
        notebook.did(changes, versionsKept: Int(recorder.limits.versionsKept))
        return true
    }

    private func changeZone(isCreation: Bool) async -> Bool {
        let identity = Visit.Identity(key: newKey(), body: notebook.change(isCreation: isCreation))
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                let form = try ZonesModifyRequest(sent: identity.body)
                return try await Zones(request).modify(form.operations[0], number: 0) != nil
            }
        }
        guard let isThere = outcome(answer, of: "a change of the zone") else { return false }
        if isThere != isCreation { complain("the zone is \(isThere ? "" : "not ")there after a change") }
        return isThere == isCreation
    }

    private func remakeZone() async {
        guard await changeZone(isCreation: false), await saveInVain(), await changeZone(isCreation: true) else {
            return
        }
        notebook.beginAgain()
        if let refused = past.last { await repeatPast(refused) }
        await tryTokenBefore()
    }

    /// Saves a record while the zone is not there.
    /// - Returns: whether that was refused: then a copy that comes when the zone is there is refused, too.
    private func saveInVain() async -> Bool {
        let body = notebook.body([(world.pick(Notebook.names), newNote())], isAtomic: false)
        let identity = Visit.Identity(key: newKey(), body: body)
        let save: PastRequest.Body<RecordModification.Result> = { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
            }
        }
        let answer = await ask(repeats: true, save)
        switch answer {
        case .failed(let failure) where failure.error.code == .zoneNotFound:
            remember("a save in a zone that was not there", answer, save) { _ in "done" }
            return true
        case .failed(let failure): complain("a save without the zone is refused: \(failure.error)")
        case .answered: complain("a save without the zone is done")
        case .nothing: leaveNotebook()
        }
        return false
    }

    /// Follows the zone's feed by a token of a life of it that has ended: that one says nothing of what is there now.
    private func tryTokenBefore() async {
        guard let token = notebook.tokenBefore else { return }
        let body = notebook.changes(after: token, limit: 10, isReverse: false)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await ChangeFeeds(request).zone(try RecordChangesRequest(sent: body))
            }
        }
        if case .answered = answer { complain("a token of an earlier life of the zone is followed") }
    }

    // MARK: The schema

    private func changeIndex() async {
        notebook.isLabelIndexed.toggle()
        guard await importType() else { return }
        await queryLabels()
    }

    private func dropExtra() async {
        guard await importType() else { return }
        // Its values must not be back with it.
        await changeAndLookUp((world.pick(Notebook.names), Notebook.Note(number: 0, extra: newValue())))
    }

    /// Imports the type, which loses a field, while a save with that field is on its way from another node. Where the
    /// field is lost for good, its value must not be back with it.
    private func dropExtraMeanwhile() async {
        // What a leader is told itself comes at once.
        let running = nodes.filter { $0.running != nil }.shuffled(using: &world.generator)
        let present = running.filter { !leads($0) } + running.filter { leads($0) }
        guard present.count > 1, recorder.mayDisturb(5 * World.second) else { return }
        let (names, network) = (Notebook.names.shuffled(using: &world.generator), present[0].network)
        // The schema has the field when the late save is on its way.
        guard await changeNotes([(names[0], Notebook.Note(number: 0, extra: newValue()))]) else { return }
        let (late, plain) = (Notebook.Note(number: 0, extra: newValue()), Notebook.Note(number: 1))
        for other in 1...network.nodeCount where other != present[0].number {
            network.slowDown(from: present[0].number, to: other, byMicroseconds: 1_500_000)
        }
        async let isLateSaved = saved((names[0], late), at: present[0].number)
        await sleep(world.milliseconds(5...200))
        goTo(present[1].number)
        async let type = setType()
        await sleep(world.milliseconds(5...200))
        let isPlainSaved = await saved((names[1], plain), at: present[1].number)
        let (areSaved, isDated) = (await isLateSaved && isPlainSaved, await type)
        network.heal()
        guard areSaved, isDated == true, notebook.isMade else { return leaveNotebook() }
        notebook.did([(names[0], late), (names[1], plain)], versionsKept: Int(recorder.limits.versionsKept))
        notebook.loseExtras()
        guard let seen = await lookedUp() else { return leaveNotebook() }
        if seen[names[0]] == late { return notebook.keepExtra(of: names[0], late.extra) }
        await changeAndLookUp((names[2], Notebook.Note(number: 0, extra: newValue())))
    }

    /// Whether a node leads the directory or the notebook's group.
    private func leads(_ node: SimulatedNode) -> Bool {
        guard let cluster = node.running?.service.node else { return false }
        return cluster.leads(.directory) || cluster.leads(cluster.map.group(of: Place.zone(notebook.zone)))
    }

    private func changeAndLookUp(_ change: Notebook.Change) async {
        if await changeNotes([change]) { await lookUpNotes() }
    }

    /// - Returns: whether the change is known to be done, in whatever order with others.
    private func saved(_ change: Notebook.Change, at node: Int) async -> Bool {
        goTo(node)
        let body = notebook.body([change], isAtomic: false)
        let identity = Visit.Identity(key: newKey(), body: body)
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
            }
        }
        if case .failed(let failure) = answer { complain("a save of \(change.name) is refused: \(failure.error)") }
        guard case .answered(let result, _) = answer else { return false }
        for case .failed(let error, _) in result.items.map(\.outcome) {
            complain("a save of \(change.name) is refused: \(error)")
            return false
        }
        return true
    }

    /// Imports the type, which loses the field that saves brought.
    private func importType() async -> Bool {
        guard let isDated = await setType() else { return false }
        // Where fields have no dates yet, the shard must see the schema without the field to know that it was lost.
        if !isDated || world.chance(50) {
            guard await changeNotes([(world.pick(Notebook.names), Notebook.Note(number: 0))]) else { return false }
        }
        notebook.loseExtras()
        return true
    }

    /// Puts the notebook's record type into the schema, and waits until every node knows.
    /// - Returns: whether the schema said already when its types came; nil where it is not known to be changed.
    private func setType() async -> Bool? {
        let type = notebook.recordType
        let answer = await ask(repeats: true) { visit throws(RequestFailure) -> Bool in
            // Others change the schema, too.
            for _ in 0..<8 {
                try await visit.service.cluster.refreshDirectory()
                let known = visit.service.schema(Place.schemaKey)
                var schema = known.schema
                schema.types.removeAll { $0.name == type.name }
                schema = Schema(roles: schema.roles, types: schema.types + [type])
                let outcome = try await visit.settle(
                    .setSchema(Place.schemaKey, expectedVersion: known.version, schema))
                switch outcome {
                case .refused(let error) where error.code == .conflict: continue
                case .refused(let error): throw RequestFailure(error)
                case .done: return known.schema.types.contains { $0.addedIn > 0 }
                }
            }
            throw RequestFailure(.tryAgainLater, "others change the schema all the time")
        }
        return outcome(answer, of: "a schema")
    }

    // MARK: Reads

    private func lookUpNotes() async {
        guard let seen = await lookedUp() else { return }
        judge("a lookup") { () throws(UnexpectedAnswer) in try expect(seen, notebook.notes) }
    }

    private func lookedUp() async -> [String: Notebook.Note]? {
        let body = notebook.lookup()
        let page = await found("a lookup") { visit, request throws(RequestFailure) in
            try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body))
        }
        guard let page else { return nil }
        do throws(UnexpectedAnswer) {
            var seen: [String: Notebook.Note] = [:]
            for (name, note, _) in try page.records.notes() { seen[name] = note }
            return seen
        } catch {
            complain("a lookup: \(error)")
            return nil
        }
    }

    /// What a record was before; deleted ones have versions, too.
    private func lookUpVersions(of name: String) async {
        let body = notebook.versions(of: name)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await RecordQueries(request).versions(try RecordVersionsRequest(sent: body))
            }
        }
        let versions: [UInt8]
        var hasMore = false
        switch answer {
        case .answered(let page, _): (versions, hasMore) = (page.versions, page.moreComing)
        case .failed(let failure) where failure.error.code == .notFound: versions = Array("[]".utf8)
        case .failed(let failure): return complain("versions of \(name) are refused: \(failure.error)")
        case .nothing: return
        }
        judge("versions of \(name)") { () throws(UnexpectedAnswer) in
            guard let elements = (try? JSONParser.parse(versions))?.array else { throw UnexpectedAnswer("no array") }
            var seen: [Notebook.Earlier] = []
            for element in elements { seen.append(try Notebook.Earlier(json: element)) }
            let all = notebook.versions[name] ?? []
            let expected = hasMore ? Array(all.prefix(seen.count)) : all
            if seen != expected { throw UnexpectedAnswer("\(seen) instead of \(expected)") }
        }
    }

    func expect(
        _ seen: [String: Notebook.Note], _ expected: [String: Notebook.Note]
    ) throws(UnexpectedAnswer) {
        for name in Notebook.names where seen[name] != expected[name] {
            throw UnexpectedAnswer(
                "\(name) is \(seen[name].map { "\($0)" } ?? "not there") instead of \(expected[name].map { "\($0)" } ?? "none")"
            )
        }
    }

    private func queryNotes() async {
        let most = Int64(world.random(0...3))
        let isAscending: Bool? = world.chance(80) ? world.chance(50) : nil
        await query(("LESS_THAN_OR_EQUALS", Notebook.number, "\(most)"), isAscending: isAscending) {
            $0.number <= most
        }
    }

    private func queryLabels() async {
        guard notebook.isLabelIndexed else { return }
        let label = world.pick(Notebook.labels)
        await query(("EQUALS", Notebook.label, "\"\(label)\""), isAscending: world.chance(50) ? true : nil) {
            $0.label == label
        }
    }

    /// Follows a query to its end, a few records at a time.
    private func query(
        _ filter: (comparator: String, field: String, value: String), isAscending: Bool?,
        _ isWanted: (Notebook.Note) -> Bool
    ) async {
        var records: [(name: String, note: Notebook.Note)] = []
        var marker: String?
        let limit = world.random(1...3)
        repeat {
            let body = notebook.query(filter, isAscending: isAscending, limit: limit, marker: marker)
            let page = await found("a query") { visit, request throws(RequestFailure) in
                try await RecordQueries(request).query(try QueryRecordsRequest(sent: body))
            }
            guard let page else { return }
            do throws(UnexpectedAnswer) {
                for (name, note, _) in try page.records.notes() {
                    guard let note else { throw UnexpectedAnswer("\(name) is not there") }
                    records.append((name, note))
                }
            } catch {
                return complain("a query: \(error)")
            }
            marker = page.continuationMarker
        } while marker != nil && records.count <= Notebook.names.count
        judge("a query with \(filter)") { () throws(UnexpectedAnswer) in
            let names = records.map(\.name)
            guard Set(names).count == names.count else { throw UnexpectedAnswer("\(names) has a record twice") }
            try expect(
                Dictionary(uniqueKeysWithValues: records.map { ($0.name, $0.note) }),
                notebook.notes.filter { isWanted($1) })
            guard let isAscending else { return }
            // Where the numbers are equal, by rank.
            let order = records.map { (isAscending ? $0.note.number : -$0.note.number, Notebook.rank(of: $0.name)) }
            for (one, next) in zip(order, order.dropFirst()) where one > next {
                throw UnexpectedAnswer("\(names) are out of order: \(order)")
            }
        }
    }
}
