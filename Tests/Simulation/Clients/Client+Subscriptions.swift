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
            case 15 where world.chance(50): await tryWrongSubscriptions(of: book)
            case 16 where world.chance(50): await useCourier(of: book)
            case 16 where world.chance(30): await readWithoutRole(book)
            default: await followNotifications(of: book, pagesMax: world.random(1...8))
            }
        }
    }

    func complain(_ text: String, _ book: Watchbook) {
        recorder.violated("client \(number) as \(book.accountID): \(text)")
        book.isUsed = false
    }

    /// Asks as the user; the user's rate and sessions are not what is looked at here.
    func request<Value: Sendable>(
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
                visit.service, key: database, requester: requester, in: visit.service.node.directory.snapshot,
                deadline: visit.deadline)
            request.clientID = device
            if let identity {
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: visit.service)
            }
            return try await work(visit, request)
        }
    }

    // MARK: Subscriptions

    private func newSubscription(_ id: String, isQuery: Bool) -> NotificationTwin.Subscription {
        let names =
            Watchbook.zoneNames
            + (watchbook.isPassingThere && !isPlain ? [Watchbook.passingName, Watchbook.passingName] : [])
        let zone = world.chance(60) ? world.pick(names) : nil
        let types = isPlain ? [Place.type] : [Place.type, Place.memo, Place.memo]
        guard isQuery else {
            return .init(
                id: id, kind: zone == nil ? .database : .zone, zone: zone,
                type: !isPlain && world.chance(40) ? world.pick(types) : nil)
        }
        let isPublic = world.chance(35)
        var events = Set(WatchedHistory.Event.allCases.filter { _ in world.chance(60) })
        if events.isEmpty { events = [.create] }
        var new = NotificationTwin.Subscription(
            id: id, kind: .query, isPublic: isPublic, zone: isPublic ? nil : zone,
            type: isPublic && !isPlain ? world.pick(types + [Place.diary, Place.report]) : world.pick(types),
            events: events, firesOnce: (!isPublic || !isPlain) && world.chance(25))
        let hasAllFields = new.type != Place.type
        new.filters = (0..<world.pick([0, 1, 1, hasAllFields ? 2 : 1])).map { _ in
            isPlain ? .kind("EQUALS", [world.pick(Self.kinds)]) : .random(hasAllFields: hasAllFields, using: world)
        }
        return new
    }

    /// Whether nodes may run builds that know less than the twin.
    var isPlain: Bool { nodes[0].options.isUpgraded }

    private func saveSubscription(of book: Watchbook) async {
        let others = book.live.values.filter {
            $0.kind == .query && !$0.firesOnce && !book.doubtful.contains($0.id) && $0.zone != Watchbook.passingName
        }
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

    func save(_ new: NotificationTwin.Subscription, of book: Watchbook) async {
        let subscription = dressed(new, book)
        let called = recorder.watched.nextPlace()
        guard
            let isFirst = await modify(
                #"{"operationType":"create","subscription":\#(subscription.form)}"#, isPublic: subscription.isPublic,
                of: book)
        else { return }
        recorder.answered()
        if subscription.type == Place.report { book.mayHaveHidden = true }
        if !isFirst { book.doubtful.insert(subscription.id) }
        book.live[subscription.id] = subscription
        book.twin.saved(
            subscription, called: called, returned: recorder.watched.nextPlace(), isRepeated: !isFirst)
    }

    /// Gives a subscription looks that no other one of the user has.
    func dressed(_ new: NotificationTwin.Subscription, _ book: Watchbook) -> NotificationTwin.Subscription {
        var subscription = new
        let more = [Place.kindField, Place.numberField, Place.textField, Place.labelsField, Place.placeField]
        let fields = new.type == Place.type ? [Place.valueField, Place.kindField] : [Place.valueField] + more
        subscription.looks =
            isPlain
            ? NotificationForm(
                texts: ["alertBody": book.newName("text ")], fields: new.kind == .query ? [Place.valueField] : nil)
            : .random(text: book.newName("text "), fields: new.kind == .query ? fields : [], using: world)
        return subscription
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
        guard !book.mayMiss, !book.doubtful.contains(id), await follow(book, device: "", pagesMax: 1_000),
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
            return try await Subscriptions(request).modify(form.operations)
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

    /// Those of one of the databases, or some of them; nil without an answer.
    func list(_ book: Watchbook, isPublic: Bool = false, ids: [String]? = nil) async -> [Subscription]? {
        let answer = await request(book, isPublic: isPublic, triesMax: 4) { visit, request throws(RequestFailure) in
            let subscriptions = Subscriptions(request)
            if let ids { return try await subscriptions.lookUp(ids) }
            return try await subscriptions.list()
        }
        guard case .answered(let found, _) = answer else { return nil }
        return found
    }

    func listSubscriptions(of book: Watchbook) async {
        for isPublic in [false, true] where book.isUsed {
            let names = book.live.keys.sorted().filter { _ in world.chance(50) }
            let ids = world.chance(30) ? names : nil
            guard let found = await list(book, isPublic: isPublic, ids: ids) else { return }
            judge(found, isPublic: isPublic, ids: ids, of: book)
        }
    }

    private func judge(_ found: [Subscription], isPublic: Bool, ids: [String]?, of book: Watchbook) {
        let live = book.live.filter { $0.value.isPublic == isPublic && ids?.contains($0.key) ?? true }
        let wanted = Set(live.filter { !$0.value.firesOnce }.keys)
        let allowed = Set(live.keys).union(book.ending)
        let seen = Set(found.map(\.id))
        if !seen.isSuperset(of: wanted) || !seen.subtracting(allowed).subtracting(book.doubtful).isEmpty {
            return complain("the list has \(seen.sorted()) instead of \(wanted.sorted())", book)
        }
        for subscription in found where !book.doubtful.contains(subscription.id) {
            guard let known = live[subscription.id] else { continue }
            var writer = JSONWriter()
            writer.subscription(subscription) { ZoneID(name: $0) }
            let text = (try? JSONParser.parse(writer.bytes))?.inOrder ?? ""
            if text != known.listed { return complain("the list has \(text) instead of \(known.listed)", book) }
        }
    }

    /// Whether nothing is left of those that end with their zone.
    func haveEnded(_ book: Watchbook) async -> Bool {
        guard let found = await list(book) else { return false }
        return book.ending.subtracting(book.doubtful).isDisjoint(with: found.map(\.id))
    }

    /// Sends operations that must be refused, each for a reason of its own, and does no harm by it.
    private func tryWrongSubscriptions(of book: Watchbook) async {
        guard !isPlain else { return }
        let others = book.live.values.filter {
            !$0.isPublic && !$0.firesOnce && !book.doubtful.contains($0.id) && $0.zone != Watchbook.passingName
        }.sorted { $0.id < $1.id }
        var wrong: [(operation: String, code: ErrorCode)] = [
            (#"{"operationType":"delete","subscription":{"subscriptionID":"none"}}"#, .notFound)
        ]
        func add(_ code: ErrorCode, _ subscription: NotificationTwin.Subscription) {
            wrong.append((#"{"operationType":"create","subscription":\#(dressed(subscription, book).form)}"#, code))
        }
        add(.zoneNotFound, .init(id: "w1", kind: .query, zone: "nowhere", events: [.create]))
        add(.zoneNotFound, .init(id: "w2", kind: .zone, zone: "nowhere", type: nil))
        add(.badRequest, .init(id: "w3", kind: .zone, zone: "_defaultZone", type: nil))
        add(.badRequest, .init(id: "w4", kind: .query, type: "Unknown", events: [.create]))
        if var twin = others.randomElement(using: &world.generator) {
            twin.id = "w5"
            wrong.append((#"{"operationType":"create","subscription":\#(twin.form)}"#, .exists))
        }
        await refuse(wrong, isPublic: false, book)
        wrong = []
        add(.accessDenied, .init(id: "w6", kind: .query, type: Place.closed, events: [.create]))
        add(.badRequest, .init(id: "w7", kind: .database, type: nil))
        await refuse(wrong, isPublic: true, book)
    }

    private func refuse(_ wrong: [(operation: String, code: ErrorCode)], isPublic: Bool, _ book: Watchbook) async {
        let body = Array(#"{"operations":[\#(wrong.map(\.operation).joined(separator: ","))]}"#.utf8)
        let answer = await request(book, isPublic: isPublic, triesMax: 4) { visit, request throws(RequestFailure) in
            let form = try SubscriptionsModifyRequest(sent: body)
            return try await Subscriptions(request).modify(form.operations)
        }
        switch answer {
        case .answered(let outcomes, _):
            for (item, outcome) in zip(wrong, outcomes) {
                if case .failed(let error) = outcome, error.code == item.code { continue }
                return complain("\(item.operation) is answered \(outcome) instead of \(item.code)", book)
            }
            world.met(.refusedSubscription)
        case .failed(let failure): complain("subscriptions are refused: \(failure.error)", book)
        case .nothing: break
        }
    }
}
