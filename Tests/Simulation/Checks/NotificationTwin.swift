import HistoryChecks

/// What a user asked to be told of, and a naive computation of what the log must then hold.
///
/// A change is told of if the subscription was there, by its answer, before the change was asked for, and is not asked
/// to go before the change was answered. It may be told of where the two overlap. All notifications of a zone are in
/// the order of its commits.
struct NotificationTwin: Sendable {
    typealias Zone = WatchedHistory.Zone

    /// What a user wants to be told of.
    struct Subscription: Hashable, Sendable {
        /// The raw value is the member of a payload that tells what changed.
        enum Kind: String, Sendable {
            case query = "qry"
            case zone = "fet"
            case database = "met"
        }

        var id: String
        var kind: Kind
        /// Of a query: whether it looks at the public database.
        var isPublic = false
        /// Nil is every zone.
        var zone: String?
        /// Of a query: whose records it looks at; of others nil is all of them.
        var type: String? = Place.type
        /// Of a query: records that meet all of these.
        var filters: [WatchedFilter] = []
        /// Of a query.
        var events: Set<WatchedHistory.Event> = []
        var firesOnce = false
        /// What its notifications look like.
        var looks = NotificationForm()
    }

    /// A subscription was saved, or deleted.
    struct Step: Sendable {
        /// Nil: it was deleted.
        var subscription: Subscription?
        let called: Int
        /// Nil: nobody knows, or it may happen again later.
        var returned: Int?
        /// Of a deletion: the last number of the log when it was answered, where somebody looked.
        var last: Int64?
    }

    /// One entry of the log.
    struct Notice: Hashable, Sendable, CustomStringConvertible {
        var sequence: Int64
        var id: String
        var kind: Subscription.Kind
        var zone: Zone
        /// For a query.
        var record: String?
        var event: WatchedHistory.Event?
        var value: String?
        /// What the log calls the change.
        var changeID = ""
        /// All that it says but that, in order; nil where nobody looked.
        var payload: String?

        var description: String {
            let what = record.map { " of \(event.map { "\($0)" } ?? "?") \($0) \(value ?? "")" } ?? ""
            return "notification \(sequence) of \(id)\(what) in \(zone)"
        }
    }

    let user: String
    /// By the subscription's ID, in order.
    private(set) var steps: [String: [Step]] = [:]
    /// Subscriptions whose saving may happen once more, after they are gone.
    private var repeated: Set<String> = []

    /// Types of which nobody may read a record that somebody else made: nothing of that is entered.
    private static let ofCreators: Set<String> = [Place.diary, Place.closed]
    /// Types of which the user may not: what is entered of that is not shown.
    var unreadable: Set<String> = [Place.report]
    /// Whom payloads name; nil is the user.
    var addressee: String?
    /// Whether a zone's beginning and its end may have one name, as below `FeatureLevel.namedEnds`.
    var mayShareNames = false

    init(user: String) { self.user = user }

    private func isForeign(_ change: WatchedHistory.Change, in commit: WatchedHistory.Commit) -> Bool {
        commit.zone.owner == nil && (change.creator ?? commit.user) != user
    }

    fileprivate func isEntered(_ change: WatchedHistory.Change, of commit: WatchedHistory.Commit) -> Bool {
        !isForeign(change, in: commit) || !Self.ofCreators.contains(change.type)
    }

    fileprivate func isShown(_ change: WatchedHistory.Change, of commit: WatchedHistory.Commit) -> Bool {
        !isForeign(change, in: commit) || !unreadable.contains(change.type)
    }

    /// - Parameter isRepeated: whether an earlier try may be done later.
    mutating func saved(_ subscription: Subscription, called: Int, returned: Int, isRepeated: Bool) {
        steps[subscription.id, default: []].append(
            Step(subscription: subscription, called: called, returned: returned))
        if isRepeated { repeated.insert(subscription.id) }
    }

    mutating func deleted(_ id: String, called: Int, returned: Int) {
        let isOver = !repeated.contains(id)
        steps[id, default: []].append(Step(subscription: nil, called: called, returned: isOver ? returned : nil))
    }

    /// What it looked at was deleted: it may tell of what comes later until its home hears of that.
    mutating func ends(_ id: String, called: Int) {
        steps[id, default: []].append(Step(subscription: nil, called: called, returned: nil))
    }

    /// The log was read to its end after a subscription's deletion was answered, and before it was made anew for long:
    /// nothing of its former life is entered any more.
    mutating func ended(_ id: String, last: Int64) {
        guard let place = steps[id]?.lastIndex(where: { $0.subscription == nil }) else { return }
        steps[id]?[place].last = last
    }

    // MARK: Lives

    /// A subscription from when it was made until it is deleted, with what took its place meanwhile.
    fileprivate struct Life {
        var stages: [(subscription: Subscription, called: Int, returned: Int)] = []
        var end: (called: Int, returned: Int?, last: Int64?)?

        /// Whether a change is told of for certain, and whether it may be.
        func holds(
            _ called: Int, _ returned: Int?, _ matches: (Subscription) -> Bool
        ) -> (isCertain: Bool, isPossible: Bool) {
            var (isCertain, isPossible) = (false, false)
            for (place, stage) in stages.enumerated() where matches(stage.subscription) {
                let next = place + 1 < stages.count ? stages[place + 1] : nil
                let endCalled = next?.called ?? end?.called ?? .max
                let endReturned = next?.returned ?? (end.map { $0.returned ?? .max } ?? .max)
                if let returned, called > stage.returned, returned < endCalled { isCertain = true }
                if (returned ?? .max) > stage.called, called < endReturned { isPossible = true }
            }
            return (isCertain, isPossible)
        }
    }

    private func lives(of id: String) -> [Life] {
        var lives: [Life] = []
        for step in steps[id] ?? [] {
            guard let subscription = step.subscription else {
                if !lives.isEmpty { lives[lives.count - 1].end = (step.called, step.returned, step.last) }
                continue
            }
            if lives.isEmpty || lives[lives.count - 1].end != nil { lives.append(Life()) }
            lives[lives.count - 1].stages.append((subscription, step.called, step.returned ?? .max))
        }
        return lives
    }

    // MARK: Judgement

    /// What is wrong with a log that was read to its end, as a reader saw it.
    /// - Parameters:
    ///   - device: of the reader, who is not told of its own changes.
    ///   - isOver: whether nothing is on its way any more: what is missing then is lost.
    func faults(
        in notices: [Notice], _ history: WatchedHistory, device: String?, isOver: Bool
    ) -> [String] {
        let commits = history.commits.filter { $0.zone.owner == nil || $0.zone.owner == user }
        func isOwn(_ commit: WatchedHistory.Commit) -> Bool {
            device != nil && commit.user == user && commit.device == device
        }
        var faults: [String] = []
        for notice in notices where steps[notice.id] == nil {
            faults.append("\(notice): there never was such a subscription")
        }
        var placed: [Zone: [Placed]] = [:]
        for id in steps.keys.sorted() {
            let own = notices.filter { $0.id == id }
            let stages = lives(of: id).flatMap(\.stages).map(\.subscription)
            if let strange = own.first(where: { notice in !stages.contains { $0.kind == notice.kind } }) {
                faults.append("\(strange) is of another kind than its subscription")
            } else if steps[id]?.first?.subscription?.kind == .query {
                var judgement = QueryJudgement(twin: self, id: id, lives: lives(of: id), commits, isHidden: isOwn)
                faults += judgement.faults(in: own, isOver: isOver)
                for (zone, found) in judgement.placed { placed[zone, default: []] += found }
            } else {
                faults += countFaults(of: id, own, commits.filter { !isOwn($0) }, isOver: isOver)
            }
        }
        for zone in placed.keys.sorted(by: { $0.description < $1.description }) {
            if let fault = Self.disorder(placed[zone] ?? []) ?? Self.confusion(placed[zone] ?? []) {
                faults.append(fault)
            }
        }
        return faults
    }

    /// A notification with the change that it tells of.
    fileprivate struct Placed {
        var notice: Notice
        var life: Int?
        var called: Int
        var returned: Int
        var version: Version?
    }

    /// Notifications of a zone in another order than its commits.
    private static func disorder(_ placed: [Placed]) -> String? {
        var lastCalled: Placed?
        var lastVersion: Placed?
        for item in placed.sorted(by: { $0.notice.sequence < $1.notice.sequence }) {
            if let lastCalled, lastCalled.called > item.returned {
                return "\(item.notice) comes after \(lastCalled.notice), which was asked for when it was done"
            }
            if let version = item.version {
                if let last = lastVersion, let other = last.version, other > version {
                    return "\(item.notice), \(version), comes after \(last.notice), \(other)"
                }
                lastVersion = item
            }
            if lastCalled.map({ $0.called < item.called }) ?? true { lastCalled = item }
        }
        return nil
    }

    /// One change is called the same by all subscriptions that tell of it, and no other is.
    private static func confusion(_ placed: [Placed]) -> String? {
        var (changes, names): ([String: String], [String: String]) = ([:], [:])
        for notice in placed.map(\.notice) {
            let change = "\(notice.event.map { "\($0)" } ?? "") \(notice.record ?? "") \(notice.value ?? "")"
            if let other = changes.updateValue(change, forKey: notice.changeID), other != change {
                return "\(notice) is called \(notice.changeID), as \(other) is"
            }
            if let other = names.updateValue(notice.changeID, forKey: change), other != notice.changeID {
                return "\(notice) is called \(notice.changeID), and elsewhere \(other)"
            }
        }
        return nil
    }

    /// A notification that says something else than one of its subscriptions would, as it was when the change was
    /// matched and when it was told of.
    fileprivate func disguise(of notice: Notice, telling change: WatchedHistory.Change?) -> String? {
        guard let payload = notice.payload else { return nil }
        let stages = (steps[notice.id] ?? []).compactMap(\.subscription?.looks)
        for (place, matched) in stages.enumerated() {
            let occasion = NotificationForm.Occasion(
                subscription: notice.id, kind: notice.kind, user: addressee ?? user, zone: notice.zone, change: change,
                kept: matched.shownFields)
            if stages[place...].contains(where: { $0.payload(of: occasion) == payload }) { return nil }
        }
        return "\(notice) says \(payload)"
    }

    /// Notifications of zones do not say of which change they tell, so they are counted, zone by zone. Each has a name
    /// of its own.
    private func countFaults(
        of id: String, _ notices: [Notice], _ commits: [WatchedHistory.Commit], isOver: Bool
    ) -> [String] {
        guard let life = lives(of: id).first else { return [] }
        var bounds: [Zone: (least: Int, most: Int)] = [:]
        for commit in commits {
            let (isCertain, isPossible) = life.holds(commit.called, commit.returned) { $0.looks(at: commit) }
            if isPossible { bounds[commit.zone, default: (0, 0)].most += 1 }
            if isCertain, life.end == nil { bounds[commit.zone, default: (0, 0)].least += 1 }
        }
        for notice in notices where bounds[notice.zone] == nil { bounds[notice.zone] = (0, 0) }
        if let fault = notices.lazy.compactMap({ disguise(of: $0, telling: nil) }).first { return [fault] }
        var names: Set<String> = []
        // One whose payload has no room for its name is nameless.
        let named = notices.filter { !$0.changeID.isEmpty }
        if !mayShareNames, let second = named.first(where: { !names.insert($0.changeID).inserted }) {
            return ["\(second) is called \(second.changeID), as an earlier one is"]
        }
        return bounds.sorted { $0.key.description < $1.key.description }.compactMap { zone, bounds in
            let count = notices.count { $0.zone == zone }
            if count > bounds.most {
                return "\(id) has told of \(count) changes in \(zone), of which there were \(bounds.most)"
            }
            guard isOver, count < bounds.least else { return nil }
            return "\(id) has told of \(count) changes in \(zone) instead of \(bounds.least)"
        }
    }
}

/// The notifications of one query subscription, each of which says of which change it tells.
private struct QueryJudgement {
    typealias Notice = NotificationTwin.Notice
    typealias Zone = NotificationTwin.Zone
    typealias Life = NotificationTwin.Life

    /// A change of which the subscription tells, or may.
    fileprivate struct Expected {
        var commit: WatchedHistory.Commit
        var change: WatchedHistory.Change
        /// In which life it is told of for certain; else in which it may be.
        var life: Int
        /// The last life in which it may be told of.
        var lastLife: Int
        var isCertain: Bool
        /// Whether the reader made it itself.
        var isHidden: Bool
        var notice: Notice?
    }

    private struct Key: Hashable {
        var zone: Zone
        var name: String
        var event: WatchedHistory.Event
        var value: String?
    }

    private let twin: NotificationTwin
    private let id: String
    private let lives: [Life]
    private let isRepeated: Bool
    private var expected: [Key: Expected] = [:]
    /// The notifications with their changes.
    private(set) var placed: [Zone: [NotificationTwin.Placed]] = [:]

    init(
        twin: NotificationTwin, id: String, lives: [Life], _ commits: [WatchedHistory.Commit],
        isHidden: (WatchedHistory.Commit) -> Bool
    ) {
        self.twin = twin
        self.id = id
        self.lives = lives
        isRepeated = twin.isRepeated(id)
        for commit in commits {
            for change in commit.changes {
                for (number, life) in lives.enumerated() {
                    let (isCertain, isPossible) = life.holds(commit.called, commit.returned) {
                        $0.looks(at: change, in: commit.zone)
                    }
                    guard isPossible, twin.isEntered(change, of: commit) else { continue }
                    let key = Key(zone: commit.zone, name: change.name, event: change.event, value: change.value)
                    expected[key]?.lastLife = number
                    if expected[key] != nil, !isCertain { continue }
                    expected[key] = Expected(
                        commit: commit, change: change, life: number, lastLife: number, isCertain: isCertain,
                        isHidden: isHidden(commit) || !twin.isShown(change, of: commit))
                }
            }
        }
    }

    mutating func faults(in notices: [Notice], isOver: Bool) -> [String] {
        var faults: [String] = []
        for notice in notices {
            guard let name = notice.record, let event = notice.event else {
                faults.append("\(notice) does not say of what it tells")
                continue
            }
            let key = Key(zone: notice.zone, name: name, event: event, value: notice.value)
            guard let found = expected[key], !found.isHidden else {
                faults.append("\(notice): it was not to be told of")
                continue
            }
            if let earlier = found.notice {
                faults.append("\(notice): it was told of before, as \(earlier.sequence)")
                continue
            }
            if let fault = twin.disguise(of: notice, telling: found.change) { faults.append(fault) }
            if let last = lives[found.lastLife].end?.last, notice.sequence > last {
                faults.append("\(notice): its subscription had been deleted when the log ended at \(last)")
            }
            expected[key]?.notice = notice
            placed[notice.zone, default: []].append(
                .init(
                    notice: notice, life: found.life, called: found.commit.called,
                    returned: found.commit.returned ?? .max, version: found.change.version))
        }
        for life in lives.indices {
            let own = expected.values.filter { $0.life == life }
                .sorted { ($0.commit.called, $0.change.name) < ($1.commit.called, $1.change.name) }
            faults += lives[life].isOnce ? onceFaults(own, life, isOver: isOver) : losses(own, life, isOver: isOver)
        }
        return faults + stale()
    }

    /// Changes that were not told of, and should have been.
    private func losses(_ expected: [Expected], _ life: Int, isOver: Bool) -> [String] {
        let missing = expected.filter { $0.isCertain && !$0.isHidden && $0.notice == nil }
        return missing.compactMap { item in
            // Streams keep their order: what comes later cannot be there.
            let later = expected.first { other in
                other.notice != nil && other.commit.zone == item.commit.zone
                    && (item.commit.returned ?? .max) < other.commit.called
            }
            if let later, let notice = later.notice {
                return "\(id) never told of \(item.text), and later there was \(notice)"
            }
            // What was on its way when the subscription was deleted is dropped.
            guard isOver, lives[life].end == nil else { return nil }
            return "\(id) never told of \(item.text)"
        }
    }

    /// Tells once: of the first change in one of its zones.
    private func onceFaults(_ expected: [Expected], _ life: Int, isOver: Bool) -> [String] {
        let told = expected.filter { $0.notice != nil }
        if told.count > 1, !isRepeated { return ["\(id) fires once, and told of \(told.map(\.text))"] }
        guard let first = told.first else {
            // A change of the reader's own may have been the first.
            guard isOver, lives[life].end == nil, !expected.contains(where: \.isHidden),
                let missed = expected.first(where: \.isCertain)
            else { return [] }
            return ["\(id), which fires once, never told of \(missed.text)"]
        }
        let earlier = expected.first { other in
            other.isCertain && other.notice == nil && other.commit.zone == first.commit.zone
                && (other.commit.returned ?? .max) < first.commit.called
        }
        return earlier.map { ["\(id), which fires once, told of \(first.text) instead of \($0.text)"] } ?? []
    }

    /// Changes that the subscription's earlier life matched, told of in a later one.
    private func stale() -> [String] {
        guard lives.count > 1, !isRepeated else { return [] }
        var newest = 0
        for item in placed.values.joined().sorted(by: { $0.notice.sequence < $1.notice.sequence }) {
            guard let life = item.life else { continue }
            if life < newest {
                return ["\(item.notice) is of a change from before the subscription was deleted and made anew"]
            }
            newest = life
        }
        return []
    }
}

extension NotificationTwin {
    fileprivate func isRepeated(_ id: String) -> Bool { repeated.contains(id) }
}

extension NotificationTwin.Life {
    fileprivate var isOnce: Bool { stages.first?.subscription.firesOnce ?? false }
}

extension QueryJudgement.Expected {
    fileprivate var text: String {
        "\(change.event) \(change.name) \(change.value ?? "")\(change.version.map { " \($0)" } ?? "") in \(commit.zone)"
    }
}

extension NotificationTwin.Subscription {
    fileprivate func isOf(_ place: WatchedHistory.Zone) -> Bool {
        isPublic == (place.owner == nil) && (zone == nil || zone == place.name)
    }

    /// Whether a query tells of a change.
    fileprivate func looks(at change: WatchedHistory.Change, in place: WatchedHistory.Zone) -> Bool {
        isOf(place) && events.contains(change.event) && type == change.type && filters.allSatisfy { $0.holds(change) }
    }

    /// Whether a subscription to zones tells of a request.
    fileprivate func looks(at commit: WatchedHistory.Commit) -> Bool {
        isOf(commit.zone) && commit.zone.owner?.isEmpty == false
            && (type == nil || commit.changes.contains { $0.type == type })
    }
}
