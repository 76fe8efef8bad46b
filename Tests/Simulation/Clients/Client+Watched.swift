import Admission
import Authorization
import Cluster
import Directory
import HistoryChecks
import RecordModel
import Service

// What a client changes where users watch.
extension Client {
    func makeWatchbook(_ book: Watchbook) async {
        book.twin.mayShareNames = isPlain
        guard await makeUser(of: book) else { return book.isUsed = false }
        if !isPlain, world.chance(50) {
            guard await setRole(of: book, to: true) else { return }
        }
        book.isMade = await change(Watchbook.zoneNames, of: book, isCreation: true)
    }

    func changePassingZone(of book: Watchbook) async {
        let called = recorder.watched.nextPlace()
        guard await change([Watchbook.passingName], of: book, isCreation: !book.isPassingThere) else { return }
        book.isPassingThere.toggle()
        guard !book.isPassingThere else { return }
        let zone = book.zone(Watchbook.passingName)
        (book.records[zone], book.gone[zone]) = (nil, nil)
        for subscription in book.live.values.sorted(by: { $0.id < $1.id }) where subscription.zone == zone.name {
            world.met(.endedWithZone)
            book.live[subscription.id] = nil
            book.ending.insert(subscription.id)
            // Its home hears of that later.
            book.twin.ends(subscription.id, called: called)
        }
    }

    /// Makes or deletes zones by one request.
    func change(_ names: [String], of book: Watchbook, isCreation: Bool) async -> Bool {
        let type = isCreation ? "create" : "delete"
        let operations = names.map { #"{"operationType":"\#(type)","zone":{"zoneID":{"zoneName":"\#($0)"}}}"# }
        let text = #"{"operations":[\#(operations.joined(separator: ","))]}"#
        let identity = Visit.Identity(key: newKey(), body: Array(text.utf8))
        let device = world.chance(50) ? world.pick(Watchbook.devices) : nil
        let commits = names.map { recorder.watched.begin([], in: book.zone($0), by: book.user, from: device) }
        let answer = await request(book, device: device, identity: identity) {
            visit, request throws(RequestFailure) in
            let form = try ZonesModifyRequest(sent: identity.body)
            for (number, operation) in form.operations.enumerated() {
                _ = try await Zones(request).modify(operation, number: number)
            }
        }
        for commit in commits where settle(answer, commit, of: book) != nil { recorder.watched.end(commit) }
        if case .answered = answer { return true }
        return false
    }

    /// What was answered; nil where that is not known, or is wrong.
    private func settle<Value>(_ answer: Asked<Value>, _ commit: Int, of book: Watchbook) -> Value? {
        switch answer {
        case .answered(let value, _): return value
        case .failed(let failure): complain("a change is refused: \(failure.error)", book)
        case .nothing(mayHaveBeenDone: true): book.isUsed = false
        case .nothing(mayHaveBeenDone: false): recorder.watched.withdraw(commit)
        }
        return nil
    }

    /// Changes records of several zones at the same time, each zone by itself in order.
    func changeWatched(_ book: Watchbook) async {
        var all = Watchbook.zoneNames.map { book.zone($0) } + [Watchbook.publicZone]
        if book.isPassingThere, !isPlain { all.append(book.zone(Watchbook.passingName)) }
        let zones = all.shuffled(using: &world.generator).prefix(world.random(1...4))
        let count = world.random(1...3)
        await withTaskGroup(of: Void.self) { group in
            for zone in zones {
                group.addTask { [self] in
                    for _ in 0..<count where book.isUsed { await changeRecords(of: zone, book) }
                }
            }
        }
    }

    private func newContent(_ type: String) -> WatchedContent {
        guard type != Place.type else { return WatchedContent() }
        func some<Value>(_ value: Value) -> Value? { world.chance(75) ? value : nil }
        let words = WatchedFilter.allWords.filter { _ in world.chance(40) }
        let labels = WatchedFilter.allLabels.filter { _ in world.chance(35) }
        return WatchedContent(
            number: some(world.random(-3...4)), text: some(words.isEmpty ? "nothing" : words.joined(separator: " ")),
            labels: labels.isEmpty ? nil : some(labels), latitude: some(world.random(-3...3)))
    }

    private func changeRecords(of zone: WatchedHistory.Zone, _ book: Watchbook) async {
        var operations: [WatchedOperation] = []
        var taken: [BoardNote] = []
        for _ in 0..<world.random(1...3) {
            if zone.owner == nil, !isPlain, world.chance(35) {
                let (operation, note) = newOfBoard(book)
                operations.append(operation)
                taken.append(note)
            } else {
                operations.append(newOperation(in: zone, book, not: Set(operations.map(\.change.name))))
            }
        }
        let isAtomic = zone.owner != nil && (isPlain || world.chance(60))
        if !isPlain, world.chance(15) { operations.append(newVain(in: zone, book, beside: operations)) }
        let device = world.chance(50) ? world.pick(Watchbook.devices) : nil
        guard let versions = await save(operations, in: zone, from: device, isAtomic: isAtomic, book) else { return }
        // What nobody knows about a record is never used again.
        if !operations.contains(where: { $0.refusal != nil }) || !isAtomic {
            for (operation, version) in zip(operations, versions) where !operation.isVain && !operation.isOfBoard {
                remember(operation.change, version, in: zone, book)
            }
            for (place, note) in zip(operations.indices.filter { operations[$0].isOfBoard }, taken) {
                recorder.board.append(note.after(operations[place].change))
            }
        }
    }

    private func newOperation(
        in zone: WatchedHistory.Zone, _ book: Watchbook, not taken: Set<String>
    ) -> WatchedOperation {
        let records = book.records[zone] ?? [:]
        let present = records.keys.sorted().filter { !taken.contains($0) }.randomElement(using: &world.generator)
        if let name = present, let note = records[name], world.chance(70) {
            if world.chance(40), !book.reborn.contains(name) { return deletion(of: name, note) }
            return change(of: name, note)
        }
        let others = zone.owner == nil ? [Place.memo, Place.report, Place.report] : [Place.memo, Place.closed]
        var type = isPlain || world.chance(40) ? Place.type : world.pick(others)
        let kind = world.chance(80) ? world.pick(Self.kinds) : nil
        var name = book.newName("\(book.accountID)-\(type)-")
        if world.chance(30), let former = book.gone[zone]?.popLast() {
            book.reborn.insert(former)
            name = former
            // The name says of which type it is.
            let parts = former.split(separator: "-")
            type = parts.count == 3 ? String(parts[1]) : Place.type
        }
        let change = WatchedHistory.Change(
            name: name, event: .create, kind: kind, value: newValue(), type: type, content: newContent(type))
        return WatchedOperation(kind: isPlain ? "forceReplace" : world.pick(WatchedOperation.creations), change: change)
    }

    private func deletion(of name: String, _ note: Watchbook.Note) -> WatchedOperation {
        let change = WatchedHistory.Change(
            name: name, event: .delete, kind: note.kind, value: nil, type: note.type, content: note.content,
            creator: note.creator)
        let isForced = isPlain || note.version == nil || world.chance(50)
        return WatchedOperation(
            kind: isForced ? "forceDelete" : "delete", change: change, version: isForced ? nil : note.version)
    }

    private func change(of name: String, _ note: Watchbook.Note) -> WatchedOperation {
        var change = WatchedHistory.Change(
            name: name, event: .update, kind: world.chance(50) ? note.kind : world.pick(Self.kinds), value: newValue(),
            type: note.type, content: newContent(note.type), creator: note.creator)
        guard !isPlain else { return WatchedOperation(kind: "forceReplace", change: change) }
        var kinds = ["forceReplace", "forceUpdate"]
        if note.version != nil { kinds += ["replace", "update"] }
        var operation = WatchedOperation(kind: world.pick(kinds), change: change)
        if !operation.kind.hasPrefix("force") { operation.version = note.version }
        guard operation.kind.lowercased().hasSuffix("update") else { return operation }
        // What is not sent stays.
        let fields = [Place.kindField, Place.numberField, Place.textField, Place.labelsField, Place.placeField]
        operation.kept = Set(fields.filter { _ in world.chance(50) })
        if operation.kept.contains(Place.kindField) { change.kind = note.kind }
        if operation.kept.contains(Place.numberField) { change.content.number = note.content.number }
        if operation.kept.contains(Place.textField) { change.content.text = note.content.text }
        if operation.kept.contains(Place.labelsField) { change.content.labels = note.content.labels }
        if operation.kept.contains(Place.placeField) { change.content.latitude = note.content.latitude }
        operation.change = change
        return operation
    }

    /// A change of a record that only its creator may read, and everybody may change; no other client does meanwhile.
    private func newOfBoard(_ book: Watchbook) -> (WatchedOperation, BoardNote) {
        var operation: WatchedOperation
        var note: BoardNote
        if !recorder.board.isEmpty, world.chance(65) {
            note = recorder.board.remove(at: world.random(0...(recorder.board.count - 1)))
            if let present = note.note {
                operation =
                    world.chance(30) && !note.isReborn
                    ? deletion(of: note.name, present) : change(of: note.name, present)
                if present.creator != book.user { world.met(.changeOfUnreadable) }
                operation.isOfBoard = true
                return (operation, note)
            }
            note.isReborn = true
        } else {
            note = BoardNote(name: book.newName("\(book.accountID)-\(Place.diary)-"))
        }
        let change = WatchedHistory.Change(
            name: note.name, event: .create, kind: world.pick(Self.kinds), value: newValue(), type: Place.diary,
            content: newContent(Place.diary), creator: book.user)
        operation = WatchedOperation(kind: world.pick(WatchedOperation.creations), change: change)
        operation.isOfBoard = true
        return (operation, note)
    }

    /// An operation of which nothing comes.
    private func newVain(
        in zone: WatchedHistory.Zone, _ book: Watchbook, beside others: [WatchedOperation]
    ) -> WatchedOperation {
        let taken = Set(others.map(\.change.name))
        let present = (book.records[zone] ?? [:]).filter { !taken.contains($0.key) }
        var vain = WatchedOperation(
            kind: "forceDelete",
            change: .init(name: book.newName("\(book.accountID)-none-"), event: .delete, kind: nil, value: nil))
        vain.isVain = true
        guard let name = present.keys.sorted().randomElement(using: &world.generator), let note = present[name],
            world.chance(70)
        else {
            if world.chance(50) { (vain.kind, vain.version, vain.refusal) = ("delete", Version(1, 1), .notFound) }
            return vain
        }
        vain.change = .init(name: name, event: .create, kind: nil, value: newValue(), type: note.type)
        (vain.kind, vain.refusal) = ("create", .exists)
        return vain
    }

    private func remember(
        _ change: WatchedHistory.Change, _ version: Version?, in zone: WatchedHistory.Zone, _ book: Watchbook
    ) {
        book.records[zone, default: [:]][change.name] = change.value.map {
            .init(
                kind: change.kind, value: $0, type: change.type, content: change.content, version: version,
                creator: change.creator)
        }
        if change.value == nil { book.gone[zone, default: []].append(change.name) }
    }

    /// - Returns: whether it was done.
    func save(
        _ changes: [WatchedHistory.Change], in zone: WatchedHistory.Zone, from device: String?, _ book: Watchbook
    ) async -> Bool {
        let operations = changes.map {
            WatchedOperation(kind: $0.value == nil ? "forceDelete" : "forceReplace", change: $0)
        }
        guard let versions = await save(operations, in: zone, from: device, isAtomic: zone.owner != nil, book) else {
            return false
        }
        for (change, version) in zip(changes, versions) { remember(change, version, in: zone, book) }
        return true
    }

    /// - Returns: what the records have now; nil where that is not known.
    private func save(
        _ operations: [WatchedOperation], in zone: WatchedHistory.Zone, from device: String?, isAtomic: Bool,
        _ book: Watchbook
    ) async -> [Version?]? {
        let body = operations.body(zone: zone.name, isAtomic: isAtomic)
        let isVain = isAtomic && operations.contains { $0.refusal != nil } || operations.allSatisfy(\.isVain)
        let real = operations.filter { !$0.isVain }
        let commit = recorder.watched.begin(real.map(\.change), in: zone, by: book.user, from: device)
        let answer = await request(
            book, isPublic: zone.owner == nil, device: device, identity: .init(key: newKey(), body: body)
        ) { visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        guard let result = settle(answer, commit, of: book) else { return nil }
        var versions: [Version?] = []
        for (operation, item) in zip(operations, result.items) {
            switch item.outcome {
            case .saved(let record, _) where !isVain && operation.refusal == nil && operation.change.value != nil:
                versions.append(Version(record.changeTag))
            case .deleted where !isVain && operation.refusal == nil && operation.change.value == nil:
                versions.append(nil)
            case .failed(let error, _)
            where error.code == operation.refusal || isVain && operation.refusal == nil && error.code == .atomicError:
                versions.append(nil)
            default:
                complain("\(operation.kind) of \(item.recordName) is answered \(item.outcome)", book)
                return nil
            }
        }
        recorder.answered()
        if isVain {
            world.met(.vainChange)
            recorder.watched.withdraw(commit)
        } else {
            let told = zip(operations, versions).filter { !$0.0.isVain }.map(\.1)
            recorder.watched.end(commit, versions: told)
        }
        return versions
    }
}
