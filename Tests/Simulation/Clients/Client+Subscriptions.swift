import Admission
import Authorization
import Cluster
import Directory
import HistoryChecks
import RecordModel
import Service

// What a client does with subscriptions, as a user of its own: what it is told of must be what was changed.
extension Client {
    func useWatchbook() async {
        if !watchbook.isUsed {
            watchbookSerial += 1
            watchbook = Watchbook(client: number, serial: watchbookSerial)
        }
        let book = watchbook
        guard book.isMade else { return await makeWatchbook(book) }
        for _ in 0..<world.random(2...5) where book.isUsed && !isEnding {
            switch world.random(0...19) {
            case 0..<4: await saveSubscription(of: book)
            case 4..<6: await deleteSubscription(of: book)
            case 6..<13: await changeWatched(book)
            case 13: await changePassingZone(of: book)
            case 14: await listSubscriptions(of: book)
            case 15 where world.chance(10): await deleteUser(of: book)
            default: await followNotifications(of: book, pagesMax: world.random(1...8))
            }
        }
    }

    func complain(_ text: String, _ book: Watchbook) {
        recorder.violated("client \(number) as \(book.accountID): \(text)")
        book.isUsed = false
    }

    /// Asks as the user; the user's rate and sessions are not what is looked at here.
    private func request<Value: Sendable>(
        _ book: Watchbook, isPublic: Bool = false, device: String? = nil, identity: Visit.Identity? = nil,
        triesMax: Int = 25,
        _ work: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Asked<Value> {
        let user = book.user
        let database = isPublic ? Watchbook.publicDatabase : book.privateDatabase
        return await ask(repeats: true, triesMax: triesMax) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let requester = Requester(Admitted(caller: Caller(user: user)), requestID: "", address: nil)
            var request = DatabaseRequest(
                key: database, requester: requester, in: visit.service.node.directory.snapshot,
                deadline: visit.deadline)
            request.clientID = device
            if let identity {
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: visit.service)
            }
            return try await work(visit, request)
        }
    }

    // MARK: Changes

    private func makeWatchbook(_ book: Watchbook) async {
        guard await makeUser(of: book) else { return book.isUsed = false }
        book.isMade = await change(Watchbook.zoneNames, of: book, isCreation: true)
    }

    private func changePassingZone(of book: Watchbook) async {
        if await change([Watchbook.passingName], of: book, isCreation: !book.isPassingThere) {
            book.isPassingThere.toggle()
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
                _ = try await Zones(visit.service, request).modify(operation, number: number)
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
    private func changeWatched(_ book: Watchbook) async {
        let all = Watchbook.zoneNames.map { book.zone($0) } + [Watchbook.publicZone]
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

    private func newChange(in zone: WatchedHistory.Zone, _ book: Watchbook, not taken: Set<String>)
        -> WatchedHistory.Change
    {
        let records = book.records[zone] ?? [:]
        let present = records.keys.sorted().filter { !taken.contains($0) }.randomElement(using: &world.generator)
        if let name = present, let note = records[name], world.chance(70) {
            if world.chance(40), !book.reborn.contains(name) {
                return .init(name: name, event: .delete, kind: note.kind, value: nil)
            }
            let kind = world.chance(50) ? note.kind : world.pick(Self.kinds)
            return .init(name: name, event: .update, kind: kind, value: newValue())
        }
        let kind = world.chance(80) ? world.pick(Self.kinds) : nil
        var name = book.newName("\(book.accountID)-")
        if world.chance(30), let former = book.gone[zone]?.popLast() {
            book.reborn.insert(former)
            name = former
        }
        return .init(name: name, event: .create, kind: kind, value: newValue())
    }

    private func changeRecords(of zone: WatchedHistory.Zone, _ book: Watchbook) async {
        var changes: [WatchedHistory.Change] = []
        for _ in 0..<world.random(1...3) {
            changes.append(newChange(in: zone, book, not: Set(changes.map(\.name))))
        }
        _ = await save(changes, in: zone, from: world.chance(50) ? world.pick(Watchbook.devices) : nil, book)
    }

    /// - Returns: whether it was done.
    func save(
        _ changes: [WatchedHistory.Change], in zone: WatchedHistory.Zone, from device: String?, _ book: Watchbook
    ) async -> Bool {
        let body = changes.body(zone: zone.name, isAtomic: zone.owner != nil)
        let commit = recorder.watched.begin(changes, in: zone, by: book.user, from: device)
        let answer = await request(
            book, isPublic: zone.owner == nil, device: device, identity: .init(key: newKey(), body: body)
        ) { visit, request throws(RequestFailure) in
            try await RecordModification(visit.service, request).run(try ModifyRecordsRequest(sent: body))
        }
        guard let result = settle(answer, commit, of: book) else { return false }
        var versions: [Version?] = []
        for item in result.items {
            switch item.outcome {
            case .saved(let record, _): versions.append(Version(record.changeTag))
            case .deleted: versions.append(nil)
            case .failed(let error, _):
                complain("a save of \(item.recordName) is refused: \(error)", book)
                return false
            }
        }
        recorder.watched.end(commit, versions: versions)
        recorder.answered()
        for change in changes {
            book.records[zone, default: [:]][change.name] = change.value.map { .init(kind: change.kind, value: $0) }
            if change.value == nil { book.gone[zone, default: []].append(change.name) }
        }
        return true
    }

    // MARK: Subscriptions

    private func newSubscription(_ id: String, isQuery: Bool) -> NotificationTwin.Subscription {
        let zone = world.chance(60) ? world.pick(Watchbook.zoneNames) : nil
        guard isQuery else {
            return .init(id: id, kind: zone == nil ? .database : .zone, zone: zone)
        }
        let isPublic = world.chance(35)
        var events = Set(WatchedHistory.Event.allCases.filter { _ in world.chance(60) })
        if events.isEmpty { events = [.create] }
        return .init(
            id: id, kind: .query, isPublic: isPublic, zone: isPublic ? nil : zone,
            recordKind: world.chance(40) ? world.pick(Self.kinds) : nil, events: events,
            firesOnce: !isPublic && world.chance(25))
    }

    private func saveSubscription(of book: Watchbook) async {
        let others = book.live.values.filter { $0.kind == .query && !$0.firesOnce && !book.doubtful.contains($0.id) }
            .sorted { $0.id < $1.id }
        var subscription: NotificationTwin.Subscription
        if let other = others.randomElement(using: &world.generator), world.chance(25) {
            // Another query in its place.
            subscription = newSubscription(other.id, isQuery: true)
            (subscription.isPublic, subscription.firesOnce) = (other.isPublic, false)
            if other.isPublic { subscription.zone = nil }
        } else if !book.free.isEmpty, world.chance(30) {
            subscription = newSubscription(book.free.removeFirst(), isQuery: true)
            // A notification of the one before would be taken for its own.
            subscription.firesOnce = false
        } else {
            guard book.live.count < 12 else { return await deleteSubscription(of: book) }
            subscription = newSubscription(book.newName("s"), isQuery: world.chance(70))
        }
        await save(subscription, of: book)
    }

    func save(_ subscription: NotificationTwin.Subscription, of book: Watchbook) async {
        let called = recorder.watched.nextPlace()
        let form = subscription.form(text: book.newName("text "))
        guard
            let isFirst = await modify(
                #"{"operationType":"create","subscription":\#(form)}"#, isPublic: subscription.isPublic, of: book)
        else { return }
        recorder.answered()
        if !isFirst { book.doubtful.insert(subscription.id) }
        book.live[subscription.id] = subscription
        book.twin.saved(
            subscription, called: called, returned: recorder.watched.nextPlace(), isRepeated: !isFirst)
    }

    private func deleteSubscription(of book: Watchbook) async {
        // One that fires once may be gone.
        let all = book.live.values.filter { !$0.firesOnce }.sorted { $0.id < $1.id }
        guard let subscription = all.randomElement(using: &world.generator) else { return }
        let called = recorder.watched.nextPlace()
        guard
            let isFirst = await modify(
                #"{"operationType":"delete","subscription":{"subscriptionID":"\#(subscription.id)"}}"#,
                isPublic: subscription.isPublic, of: book)
        else { return }
        recorder.answered()
        book.live[subscription.id] = nil
        book.twin.deleted(subscription.id, called: called, returned: recorder.watched.nextPlace())
        if isFirst, world.chance(30) { await lookForEnd(of: subscription.id, book) }
        // The name says what was there only if nothing else is done under it.
        if subscription.kind == .query, !subscription.isPublic, isFirst, !book.doubtful.contains(subscription.id) {
            book.free.append(subscription.id)
        }
    }

    /// Reads the log to its end: nothing of a subscription that was deleted is entered from here on.
    func lookForEnd(of id: String, _ book: Watchbook) async {
        guard !book.doubtful.contains(id), await follow(book, device: "", pagesMax: 1_000),
            let reader = book.readers[""]
        else { return }
        book.twin.ended(id, last: reader.last)
    }

    /// - Parameter operation: one, or several with commas between them.
    /// - Returns: whether the first try was answered; nil where it was not done.
    func modify(_ operation: String, isPublic: Bool, of book: Watchbook) async -> Bool? {
        let body = Array(#"{"operations":[\#(operation)]}"#.utf8)
        let answer = await request(book, isPublic: isPublic, triesMax: nodes[0].options.isUpgraded ? 4 : 25) {
            visit, request throws(RequestFailure) in
            let form = try SubscriptionsModifyRequest(sent: body)
            return try await Subscriptions(visit.service, request).modify(form.operations)
        }
        switch answer {
        case .answered(let outcomes, let isFirst):
            let errors = outcomes.compactMap { if case .failed(let error) = $0 { error } else { nil } }
            guard let error = errors.first else { return isFirst }
            // The try before has deleted it.
            if !isFirst, error.code == .notFound { return false }
            complain("\(operation) is refused: \(error)", book)
        case .failed(let failure): complain("\(operation) is refused: \(failure.error)", book)
        case .nothing(mayHaveBeenDone: true): book.isUsed = false
        case .nothing(mayHaveBeenDone: false): break
        }
        return nil
    }

    /// Those of the private database; nil without an answer.
    func list(_ book: Watchbook) async -> [Subscription]? {
        let answer = await request(book, triesMax: 4) { visit, request throws(RequestFailure) in
            try await Subscriptions(visit.service, request).list()
        }
        guard case .answered(let found, _) = answer else { return nil }
        return found
    }

    private func listSubscriptions(of book: Watchbook) async {
        guard let found = await list(book) else { return }
        let ids = Set(found.map(\.id))
        let wanted = Set(book.live.values.filter { !$0.isPublic && !$0.firesOnce }.map(\.id))
        let allowed = wanted.union(book.live.values.filter(\.firesOnce).map(\.id))
        let others = ids.subtracting(allowed).subtracting(book.doubtful)
        if !ids.isSuperset(of: wanted) || !others.isEmpty {
            complain("the list has \(ids.sorted()) instead of \(wanted.sorted())", book)
        }
    }

    // MARK: Notifications

    private func followNotifications(of book: Watchbook, pagesMax: Int) async {
        await follow(book, device: world.chance(70) ? "" : world.pick(Watchbook.devices), pagesMax: pagesMax)
    }

    /// Follows the log from where it was left, or from a place before that.
    /// - Parameter device: the empty one is told of everything.
    /// - Returns: whether it was read to its end.
    @discardableResult
    private func follow(_ book: Watchbook, device: String, pagesMax: Int) async -> Bool {
        let limit = pagesMax > 100 ? 200 : world.random(1...6)
        if let earlier = book.readers[device]?.earlier, world.chance(15) {
            await readAgain(book, device: device, from: earlier)
        }
        for _ in 0..<pagesMax where book.isUsed {
            let reader = book.readers[device] ?? Watchbook.Reader()
            guard let page = await page(book, device, after: reader.token, limit: limit) else { return false }
            take(page, onto: reader, device, of: book)
            if !page.hasMore { return book.isUsed }
        }
        return false
    }

    func askForPage(
        of book: Watchbook, _ device: String, after token: String?, limit: Int
    ) async -> Asked<ShardAnswer> {
        let (store, accountID) = (book.store, book.accountID)
        return await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let notifications = Notifications(
                visit.service, store, accountID: accountID, client: device.isEmpty ? nil : device)
            return try await notifications.changes(since: token, limit: limit, by: visit.deadline)
        }
    }

    func page(_ book: Watchbook, _ device: String, after token: String?, limit: Int) async -> NotificationPage? {
        let answer = await askForPage(of: book, device, after: token, limit: limit)
        moveOn()
        switch answer {
        case .answered(let answer, _):
            do throws(UnexpectedAnswer) {
                return try NotificationPage(json: answer.bytes, of: book.user)
            } catch {
                complain("\(error)", book)
            }
        case .failed(let failure): complain("the log of notifications is refused: \(failure.error)", book)
        case .nothing: break
        }
        return nil
    }

    /// What was read before must be there again, as it was.
    private func readAgain(_ book: Watchbook, device: String, from place: (token: String, last: Int64)) async {
        guard let page = await page(book, device, after: place.token, limit: 3) else { return }
        let known = (book.readers[device]?.notices ?? []).filter { $0.sequence > place.last }
        for (entry, other) in zip(page.entries, known) where entry.notice != other {
            return complain("after \(place.last) there is \(entry.notice) instead of \(other)", book)
        }
        if page.entries.count < min(3, known.count) {
            complain("after \(place.last) there are \(page.entries.count) notifications of \(known.count)", book)
        }
    }

    private func take(
        _ page: NotificationPage, onto reader: Watchbook.Reader, _ device: String, of book: Watchbook
    ) {
        var next = reader
        for (notice, payload) in page.entries {
            guard notice.sequence > next.last else { return complain("\(notice) comes after \(next.last)", book) }
            if device.isEmpty, notice.sequence != next.last + 1 {
                return complain("\(notice) comes after \(next.last): numbers are missing", book)
            }
            guard book.see(payload, at: notice.sequence) else {
                return complain("\(notice) was something else before", book)
            }
            next.last = notice.sequence
            next.notices.append(notice)
            if book.live[notice.id]?.firesOnce == true {
                book.live[notice.id] = nil
                world.met(.firedOnce)
            }
        }
        if let token = reader.token, world.chance(30) { next.earlier = (token, reader.last) }
        next.token = page.token
        book.readers[device] = next
        recorder.answered()
    }

    // MARK: The end

    /// Reads the whole log, as soon as everything is delivered, and holds it against what was changed.
    func readBackWatchbook() async {
        let book = watchbook
        guard book.isUsed, book.isMade else { return }
        for device in [""] + Watchbook.devices {
            let ofReader = device.isEmpty ? nil : device
            for _ in 0..<40 where book.isUsed {
                await follow(book, device: device, pagesMax: 1_000)
                guard !faults(of: book, ofReader, isOver: true).isEmpty else { break }
                await sleep(World.second)
            }
            guard book.isUsed else { return }
            let faults = faults(of: book, ofReader, isOver: true)
            for fault in faults.prefix(3) {
                recorder.violated(
                    "client \(number) as \(book.accountID)\(ofReader.map { " on its \($0)" } ?? ""): \(fault)")
            }
            // Other readers would be waited for in vain.
            if !faults.isEmpty { return }
        }
        await listSubscriptions(of: book)
    }

    private func faults(of book: Watchbook, _ device: String?, isOver: Bool) -> [String] {
        book.twin.faults(
            in: book.readers[device ?? ""]?.notices ?? [], recorder.watched, device: device, isOver: isOver)
    }
}

extension [WatchedHistory.Change] {
    /// The request that clients send for it.
    fileprivate func body(zone: String, isAtomic: Bool) -> [UInt8] {
        let operations = map { change in
            guard let value = change.value else {
                return #"{"operationType":"forceDelete","record":{"recordName":"\#(change.name)"}}"#
            }
            let kind = change.kind.map { #","\#(Place.kindField)":{"value":"\#($0)"}"# } ?? ""
            return
                #"{"operationType":"forceReplace","record":{"recordName":"\#(change.name)","recordType":"\#(Place.type)","fields":{"\#(Place.valueField)":{"value":"\#(value)"}\#(kind)}}}"#
        }
        return [UInt8](
            #"{"operations":[\#(operations.joined(separator: ","))],"zoneID":{"zoneName":"\#(zone)"},"atomic":\#(isAtomic)}"#
                .utf8)
    }
}
