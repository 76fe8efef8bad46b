import Admission
import Authorization
import Cluster
import RecordModel
import RecordStore
import Service

// What a client does with its workbook, and that each answer is what the workbook says.
extension Client {
    func useWorkbook() async {
        guard workbook != nil else { return await useHoard() }
        for _ in 0..<world.random(1...3) where !isEnding {
            guard let place = await workingPlace() else { return }
            await useWorkbook(place)
        }
    }

    private func useWorkbook(_ place: Int) async {
        switch world.random(0...31) {
        case 0..<12: await changeSome(place)
        case 12..<14: await lookUpEntries(place)
        case 14..<20: await queryEntries(place)
        case 20: await queryEntries(nil)
        case 21..<24: await followEntries(place)
        case 24: await listWorkbookZones()
        case 25: await followWorkbook()
        case 26: await lookUpEarlier(place)
        case 27: await askInVain(place)
        case 28: await deleteBesideOthers()
        case 29: await writeProfile()
        default: await remakeWorkbookZones()
        }
    }

    /// Looks at the workbook in every way there is.
    func readBackWorkbook() async {
        await deleteBesideOthers()
        for _ in 0..<2 { await writeProfile() }
        for place in 0..<4 {
            guard let book = workbook, book.zones[place].isThere else { continue }
            for _ in 0..<3 where await settle(place, triesMax: Self.patience) { await changeSome(place) }
            guard await settle(place, triesMax: Self.patience) else { continue }
            await lookUpEntries(place)
            for _ in 0..<2 { await queryEntries(place) }
            await followEntries(place)
            await lookUpEarlier(place)
        }
        await queryEntries(nil)
        await listWorkbookZones()
        await followWorkbook()
    }

    /// A zone that is there, and of which no record is on its way out.
    private func workingPlace() async -> Int? {
        guard let book = workbook else { return nil }
        let place = world.pick([0, 0, 1, 2, 3, 3])
        guard book.zones[place].isThere else {
            await remakeWorkbookZones()
            return nil
        }
        return await settle(place, triesMax: 3) ? place : nil
    }

    /// How often it looks, once all is well, whether a job is done.
    private static let patience = 60

    // MARK: Certainty

    func complainOfWorkbook(_ text: String) {
        recorder.violated("client \(number) in its workbook of \(workbook?.type ?? "nothing"): \(text)")
        leaveWorkbook()
    }

    /// What there is is not known any more: another one is begun.
    func leaveWorkbook() {
        workbookSerial += 1
        guard workbookSerial < Workbook.serialsMax else { return workbook = nil }
        workbook = Workbook(
            client: number, serial: workbookSerial, versionsKept: Int(recorder.limits.versionsKept))
    }

    /// Sends a request as somebody, to the database of a zone.
    func ask<Value: Sendable>(
        as person: Workbook.Person, of database: DatabaseKey, _ identity: Visit.Identity? = nil, triesMax: Int = 25,
        _ work: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Asked<Value> {
        await ask(repeats: true, triesMax: triesMax) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            var request = DatabaseRequest(
                visit.service, key: database,
                requester: Requester(Admitted(caller: person.caller), requestID: "", address: nil),
                in: visit.service.node.directory.snapshot, deadline: visit.deadline)
            if let identity {
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: visit.service)
            }
            return try await work(visit, request)
        }
    }

    // MARK: Changes

    private static let operationKinds: [RecordOperation.Kind] = [
        .create, .create, .update, .update, .forceUpdate, .forceUpdate, .replace, .forceReplace, .delete, .forceDelete,
    ]

    /// - Parameter isAlone: in its request; of several one may take away another one's record.
    private func newOperation(
        _ name: String, in place: Int, _ book: Workbook, isAlone: Bool
    ) -> Workbook.Operation {
        let (zone, kind) = (book.zones[place], world.pick(Self.operationKinds))
        let live = zone.entries[name]
        var operation = Workbook.Operation(kind: kind, name: name)
        if kind.checksTag {
            let stale = ChangeTag(incarnation: zone.incarnation, sequence: 0)
            operation.tag = live.map { world.chance(85) ? $0.tag : stale } ?? stale
        }
        if kind.isDelete { return operation }
        let isOther = live != nil && isAlone && world.chance(10)
        operation.type = isOther ? book.otherType : book.type
        if !kind.mayCreate, world.chance(20) { operation.type = nil }
        if kind != .update || world.chance(50) {
            operation.fields.append((Workbook.rank, .int64(book.rank(of: name))))
        }
        for field in Workbook.fieldNames where world.chance(40) {
            if zone.isPublic, field == Workbook.secret, world.chance(90) { continue }
            operation.fields.append((field, world.chance(25) ? nil : book.newValue(field, in: zone, world)))
        }
        return operation
    }

    private func newOperations(_ place: Int, _ book: Workbook) -> [Workbook.Operation] {
        let names = book.zones[place].names.shuffled(using: &world.generator).prefix(world.pick([1, 1, 2, 3, 5]))
        return names.map { newOperation($0, in: place, book, isAlone: names.count == 1) }
    }

    /// Saves and deletes records, and holds what is answered against what must come of it.
    func changeSome(_ place: Int) async {
        guard let book = workbook, book.zones[place].isThere else { return }
        let person = book.zones[place].isPublic ? world.pick(book.people) : book.owner
        let operations = newOperations(place, book)
        guard
            let (judged, saved, identity) = await make(operations, by: person, in: place, isAtomic: world.chance(60))
        else { return }
        if judged.items.contains(where: {
            if case .failed(.validatingReferenceError, _, _) = $0 { true } else { false }
        }) {
            world.met(.refusedReference)
        }
        if person != book.owner, !judged.items.allSatisfy(\.isFailure) { world.met(.changeByOther) }
        guard judged.isSent else { return }
        switch world.random(0...9) {
        case 0: await reuse(identity, place, person)
        case 1 where saved.isPublic && saved.doomed.isEmpty: await reuseByAnother(identity, operations, place, person)
        case 2..<4:
            _ = await change(place, person, judged, identity, isRepeat: true, now: saved)
        default: break
        }
    }

    /// Has operations done.
    /// - Returns: what was to come of them, the zone afterwards, and under which key they were sent; nil as of
    ///   `change`.
    func make(
        _ operations: [Workbook.Operation], by person: Workbook.Person, in place: Int, isAtomic: Bool = false
    ) async -> (Workbook.Judged, Workbook.Zone, Visit.Identity)? {
        guard let book = workbook else { return nil }
        let judged = book.judge(operations, by: person, in: place, isAtomic: isAtomic)
        let body = book.body(operations, in: book.zones[place], isAtomic: isAtomic)
        let identity = Visit.Identity(key: newKey(), body: body)
        guard let saved = await change(place, person, judged, identity) else { return nil }
        workbook?.zones[place] = saved
        return (judged, saved, identity)
    }

    /// - Parameters:
    ///   - isRepeat: whether the same request was answered before.
    ///   - now: the zone after that.
    /// - Returns: the zone afterwards; nil where that is not known, or is not what it must be.
    private func change(
        _ place: Int, _ person: Workbook.Person, _ judged: Workbook.Judged, _ identity: Visit.Identity,
        isRepeat: Bool = false, now: Workbook.Zone? = nil
    ) async -> Workbook.Zone? {
        guard let book = workbook else { return nil }
        let modify: @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> RecordModification.Result = {
            visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: identity.body))
        }
        let answer = await ask(as: person, of: book.zones[place].key.database, identity, modify)
        switch answer {
        case .nothing:
            leaveWorkbook()
        case .failed(let failure):
            complainOfWorkbook("\(String(decoding: identity.body, as: UTF8.self)) is refused: \(failure.error)")
        case .answered(let result, let isFirst):
            recorder.answered()
            var zone = now ?? judged.zone
            do throws(UnexpectedAnswer) {
                try judged.check(result, isFirst: isFirst && !isRepeat, isRepeat: isRepeat, onto: &zone)
                if !book.isInDoubt(zone) { return zone }
                leaveWorkbook()
            } catch {
                complainOfWorkbook(
                    "\(String(decoding: identity.body, as: UTF8.self)) by \(person.caller.stampName)"
                        + "\(isRepeat ? ", once more," : "") is answered \(error)")
            }
        }
        return nil
    }

    /// Sends another body under a key that was used: it must be refused, and do nothing.
    private func reuse(_ identity: Visit.Identity, _ place: Int, _ person: Workbook.Person) async {
        guard let book = workbook else { return }
        let other = Workbook.Operation(kind: .forceDelete, name: world.pick(book.zones[place].names))
        let body = book.body([other], in: book.zones[place], isAtomic: false)
        guard body != identity.body else { return }
        let identity = Visit.Identity(key: identity.key, body: body)
        let answer = await ask(as: person, of: book.zones[place].key.database, identity) {
            visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        switch answer {
        case .failed(let failure) where failure.error.code == .badRequest: world.met(.reusedKey)
        case .failed(let failure): complainOfWorkbook("a key that was used is refused: \(failure.error)")
        case .answered: complainOfWorkbook("a key that was used is taken with another body")
        case .nothing: break
        }
    }

    /// Sends the same request under the same key as somebody else, who has keys of their own.
    private func reuseByAnother(
        _ identity: Visit.Identity, _ operations: [Workbook.Operation], _ place: Int, _ person: Workbook.Person
    ) async {
        guard let book = workbook, let other = book.people.first(where: { $0 != person && $0.caller.user != nil })
        else { return }
        let judged = book.judge(operations, by: other, in: place, isAtomic: false)
        guard let saved = await change(place, other, judged, identity) else { return }
        workbook?.zones[place] = saved
    }

    /// Waits until records are gone that go with deleted ones.
    /// - Returns: whether they are.
    func settle(_ place: Int, triesMax: Int) async -> Bool {
        for _ in 0..<triesMax {
            guard let book = workbook else { return false }
            let doomed = book.zones[place].doomed
            if doomed.isEmpty { return true }
            let reader = book.zones[place].isPublic ? Workbook.Person.administrator : book.owner
            guard let seen = await lookedUp(doomed.sorted().map { ($0, nil) }, place, reader, asStrings: false) else {
                return false
            }
            guard workbook != nil else { return false }
            workbook?.zones[place].doomed = Set(seen.filter { $0.entry != nil }.map(\.name))
            guard seen.contains(where: { $0.entry != nil }) else {
                world.met(.laterCascade)
                return true
            }
            await sleep(world.milliseconds(200...1_500))
        }
        if triesMax >= Self.patience, let doomed = workbook?.zones[place].doomed {
            complainOfWorkbook("\(doomed.sorted()) are there long after what they go with was deleted")
        }
        return false
    }

    // MARK: Zones

    /// Makes the zones that are not there, and sometimes deletes one.
    private func remakeWorkbookZones() async {
        guard let book = workbook else { return }
        let missing = [0, 1].filter { !book.zones[$0].isThere }
        if missing.isEmpty { return await changeWorkbookZones([(world.random(0...1), isCreation: false)]) }
        if missing.count == 1 { await saveWithoutZone(missing[0]) }
        var changes = missing.map { ($0, isCreation: true) }
        // One that is there stays as it is.
        if missing.count == 1, world.chance(30) { changes.append((1 - missing[0], isCreation: true)) }
        await changeWorkbookZones(changes)
    }

    private func changeWorkbookZones(_ changes: [(place: Int, isCreation: Bool)]) async {
        guard let book = workbook else { return }
        let body = book.modification(of: changes.map { (book.zones[$0.place], $0.isCreation) })
        let identity = Visit.Identity(key: newKey(), body: body)
        for _ in 0..<(world.chance(30) ? 2 : 1) {
            for (position, change) in changes.enumerated() {
                let answer = await ask(as: book.owner, of: book.zones[0].key.database, identity) {
                    visit, request throws(RequestFailure) in
                    let form = try ZonesModifyRequest(sent: body)
                    return try await Zones(request).modify(form.operations[position], number: position)
                }
                switch answer {
                case .answered(let state, _): noteZone(change.place, isCreation: change.isCreation, state)
                case .failed(let failure): complainOfWorkbook("a change of zones is refused: \(failure.error)")
                case .nothing: leaveWorkbook()
                }
                guard workbook?.type == book.type else { return }
            }
        }
        if world.chance(20) { await reuse(identity, changes[0].place, isCreation: !changes[0].isCreation) }
    }

    /// Sends another change of a zone under a key that was used.
    private func reuse(_ identity: Visit.Identity, _ place: Int, isCreation: Bool) async {
        guard let book = workbook else { return }
        let body = book.modification(of: [(book.zones[place], isCreation)])
        let answer = await ask(as: book.owner, of: book.zones[0].key.database, .init(key: identity.key, body: body)) {
            visit, request throws(RequestFailure) in
            let form = try ZonesModifyRequest(sent: body)
            return try await Zones(request).modify(form.operations[0], number: 0)
        }
        switch answer {
        case .failed(let failure) where failure.error.code == .badRequest: break
        case .failed(let failure): complainOfWorkbook("a zone's key that was used is refused: \(failure.error)")
        case .answered: complainOfWorkbook("a key that was used is taken for another change of a zone")
        case .nothing: break
        }
    }

    private func noteZone(_ place: Int, isCreation: Bool, _ state: ZoneState?) {
        guard let zone = workbook?.zones[place] else { return }
        let isNews = zone.isThere != isCreation
        guard let state else {
            if isCreation { return complainOfWorkbook("a zone that was made is not there") }
            if isNews { workbook?.zones[place].end() }
            return
        }
        guard isCreation, state.name == zone.key.name, isNews == (state.incarnation > zone.incarnation),
            state.sequence == (isNews ? 0 : zone.sequence), isNews || state.incarnation == zone.incarnation
        else { return complainOfWorkbook("zone \(zone.key.name) is \(state) once it was made") }
        if isNews { workbook?.zones[place].begin(state.incarnation) }
    }

    /// Saves, looks up and follows what is not there.
    private func saveWithoutZone(_ place: Int) async {
        guard let book = workbook else { return }
        let body = book.body(newOperations(place, book), in: book.zones[place], isAtomic: false)
        let identity = Visit.Identity(key: newKey(), body: body)
        let answer = await ask(as: book.owner, of: book.zones[place].key.database, identity) {
            visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        switch answer {
        case .failed(let failure) where failure.error.code == .zoneNotFound: break
        case .answered(let result, _)
        where result.items.allSatisfy { if case .failed = $0.outcome { true } else { false } }:
            // Nothing of it could be sent.
            break
        case .failed(let failure): complainOfWorkbook("a save without its zone is refused: \(failure.error)")
        case .answered: complainOfWorkbook("a save without its zone is done")
        case .nothing: leaveWorkbook()
        }
    }
}

extension Workbook.Zone {
    /// It was deleted.
    mutating func end() {
        isThere = false
        hasNews = true
        tokenBefore = feed.token ?? tokenBefore
        (entries, tombstones, earlier, feed) = ([:], [:], [:], Workbook.Feed())
    }

    /// It was made.
    mutating func begin(_ incarnation: UInt64) {
        (isThere, self.incarnation, sequence, hasNews) = (true, incarnation, 0, true)
    }
}

extension Workbook.Judged {
    /// Holds an answer against what must come of the request.
    /// - Parameters:
    ///   - isFirst: whether no answer to the same request can have gone before.
    ///   - zone: takes over the tags and times that the answer tells.
    func check(
        _ result: RecordModification.Result, isFirst: Bool, isRepeat: Bool, onto zone: inout Workbook.Zone
    ) throws(UnexpectedAnswer) {
        guard result.items.count == items.count, result.isAtomicFailure == isAtomicFailure else {
            throw UnexpectedAnswer(
                "with \(result.items.count) outcomes, \(result.isAtomicFailure ? "" : "not ")as an atomic failure")
        }
        for (item, expected) in zip(result.items, items) {
            switch (item.outcome, expected) {
            case (.deleted, .deleted): break
            case (
                .saved(let record, let isReadable), .saved(let entry, let isNew, let mayRead, var shown, let sent)
            ):
                guard isReadable == mayRead, record.name == item.recordName else {
                    throw UnexpectedAnswer("readable: \(isReadable), not \(mayRead)")
                }
                // What is gone by now a repeat does not tell.
                if !isFirst, zone.entries[entry.name] == nil, Workbook.Entry(record).fields == sent { shown = sent }
                try check(.init(record), entry, isNew: isNew, shown: shown, isRepeat: isRepeat, onto: &zone)
            case (.failed(let error, let record), .failed(let code, let server, let isLate)):
                // A repeat is told of what was not sent that it was refused then.
                guard error.code == code || !isFirst && !isLate && error.code == .badRequest else {
                    throw UnexpectedAnswer("\(item.recordName): \(error) instead of \(code)")
                }
                let seen = record.map { Workbook.Entry($0) }
                guard seen == server || !isFirst && seen == zone.entries[item.recordName] else {
                    throw UnexpectedAnswer(
                        "\(item.recordName) with \(seen.map { "\($0)" } ?? "no record") beside the error, "
                            + "instead of \(server.map { "\($0)" } ?? "none")")
                }
            default: throw UnexpectedAnswer("\(item.recordName): \(item.outcome) instead of \(expected)")
            }
        }
    }

    private func check(
        _ seen: Workbook.Entry, _ entry: Workbook.Entry, isNew: Bool, shown: [String: FieldValue], isRepeat: Bool,
        onto zone: inout Workbook.Zone
    ) throws(UnexpectedAnswer) {
        let isWhole = seen.fields == shown
        let isMade = isNew ? seen.created == seen.modified : seen.created == entry.created
        guard isWhole, isMade, seen.created.user == entry.created.user, seen.modified.user == entry.modified.user else {
            throw UnexpectedAnswer("\(seen) instead of \(entry), showing \(shown)")
        }
        guard let kept = zone.entries[entry.name] else { return }
        if isRepeat {
            guard kept.tag == seen.tag, kept.modified == seen.modified else {
                throw UnexpectedAnswer("\(seen), which is \(kept)")
            }
            return
        }
        if zone.isCustom, kept.tag != seen.tag { throw UnexpectedAnswer("\(seen) at \(seen.tag), not \(kept.tag)") }
        if !isNew, seen.tag == entry.tag || seen.tag.incarnation != entry.tag.incarnation {
            throw UnexpectedAnswer("\(seen) with the tag \(entry.tag) that it had before")
        }
        var known = kept
        (known.tag, known.created, known.modified) = (seen.tag, seen.created, seen.modified)
        zone.entries[entry.name] = known
    }
}
