import RecordModel

/// Keeps one user's preferences on this device and on the server the same.
///
/// Events go in with the time, effects come out; nothing here waits, reads or writes. `copy` has to survive a restart;
/// the rest starts empty.
///
/// The rules: an edit shows at once and is uploaded soon, many at a time, each with the version last seen. If the
/// server has another version, or the feed brings one, the server's value replaces the edit, and the app is told. Edits
/// before the first download lose to any value of the server's, unless they are explicit. A batch whose outcome is
/// unknown is repeated under its idempotency key until it is known; what this device wrote is recognised by its version
/// and is not reported to the app.
struct PreferenceSync: Hashable, Sendable {
    /// The user; nil while no user is signed in, or the user is not known yet.
    var account: String?
    var copy: PreferenceCopy
    var limits = PreferenceLimits()
    /// Writes that were refused, latest last, at most one a key.
    var refusals: [PreferenceRefusal] = []

    var isUploading = false
    var fetching: PreferenceTicket?
    /// Whether the feed is to be fetched.
    var wantsFetch = true
    /// While the feed is read from its start: the position, and the keys found so far.
    var cursor: String?
    var seen: Set<PreferenceKey> = []
    /// When the first and the last of the edits happened that wait for an upload; nil if none waits.
    var firstEdit: Int64?
    var lastEdit: Int64?
    var uploadPause = Pause()
    var fetchPause = Pause()
    /// The server has what is not known here: fetch it before the next upload.
    var isHeldForFetch = false
    var isQuotaSuspect = false
    /// Conflicts since the last batch that was done.
    var conflictsInARow = 0
    /// The most writes of the next upload. It shrinks while batches are refused without naming the write at fault.
    var batchMax: Int?

    /// How long after the last edit an upload begins, in milliseconds.
    static let quietMilliseconds: Int64 = 500
    /// How long after the first edit an upload begins at the latest, in milliseconds.
    static let delayMilliseconds: Int64 = 5000
    /// The feed is read from its start after this many conflicts in a row.
    static let conflictsMax = 4
    /// Refusals that are remembered.
    static let refusalsMax = 64

    /// Handles an event, and returns what is to be done.
    mutating func handle(_ event: PreferenceEvent, at moment: PreferenceMoment) -> PreferenceEffects {
        var effects = PreferenceEffects()
        let now = moment.milliseconds
        switch event {
        case .edited(let key, let value, let isExplicit):
            edited(key, value, isExplicit: isExplicit, at: now, &effects)
        case .uploadAnswered(let id, let answer): uploadAnswered(id, answer, at: now, &effects)
        case .pageArrived(let ticket, let page): pageArrived(ticket, page, &effects)
        case .tokenExpired(let ticket): tokenExpired(ticket, at: now, &effects)
        case .fetchFailed(let ticket, let retryAfter):
            guard fetching == ticket else { break }
            fetching = nil
            wantsFetch = true
            fetchPause.failed(at: now, retryAfter: retryAfter)
        case .changesSuspected: wantsFetch = true
        case .syncRequested:
            wantsFetch = true
            (firstEdit, lastEdit) = (nil, nil)
            uploadPause.hurry(isUnderWay: isUploading)
            fetchPause.hurry(isUnderWay: fetching != nil)
        case .sessionBegan:
            // What the session before was told to wait for does not hold for this one.
            wantsFetch = true
            (uploadPause, fetchPause) = (Pause(), Pause())
        case .woken: break
        }
        plan(moment, &effects)
        return effects
    }

    /// Where the feed goes on; nil at its start.
    var position: String? { copy.token ?? cursor }

    /// The feed's place for a watch; nil while there is nothing to watch from.
    var watchTicket: PreferenceTicket? {
        account == nil || copy.token == nil ? nil : PreferenceTicket(account: account, since: copy.token)
    }

    /// Whether everything the app did is on the server and everything the server said is here.
    var isSettled: Bool {
        account != nil && copy.token != nil && !wantsFetch && fetching == nil && copy.batchID == nil && !hasEdits
    }

    /// Until when nothing happens, because requests failed; nil while a request is under way or may begin at once.
    func stalledUntil(_ now: Int64) -> Int64? {
        guard account != nil, !isSettled, !isUploading, fetching == nil else { return nil }
        return [uploadPause.until, fetchPause.until].compactMap { $0 }.filter { $0 > now }.min()
    }

    var hasEdits: Bool { copy.rows.values.contains { $0.edit != nil } }

    func status(of key: PreferenceKey) -> NSUbiquitousKeyValueStore.KeyStatus {
        if let refusal = refusals.last(where: { $0.key == key }) { return .refused(.init(refusal)) }
        guard let row = copy.rows[key] else { return .absent }
        if let edit = row.edit { return copy.isInitialSyncDone || edit.isExplicit ? .pending : .provisional }
        if let sent = row.sent, !sent.isSuperseded { return .pending }
        return row.server?.value == nil ? .absent : .synced
    }

    /// Begins what is due, and sets the time of the next step.
    private mutating func plan(_ moment: PreferenceMoment, _ effects: inout PreferenceEffects) {
        guard account != nil else { return }
        let now = moment.milliseconds
        var wakes: [Int64] = []
        // A reading from the start is told apart from our own writes only while none is under way.
        let isReadingHeld = copy.token == nil && copy.batchID != nil
        if fetching == nil, wantsFetch || copy.token == nil, !isReadingHeld {
            if let from = fetchPause.until, now < from {
                wakes.append(from)
            } else {
                let ticket = PreferenceTicket(account: account, since: position)
                wantsFetch = false
                fetching = ticket
                fetchPause.begun()
                effects.fetch = ticket
            }
        }
        if !isUploading, let due = uploadDue() {
            if now < due {
                wakes.append(due)
            } else {
                if copy.batchID == nil { formBatch(moment.batchID, &effects) }
                if let batch = copy.batch {
                    isUploading = true
                    uploadPause.begun()
                    effects.upload = batch
                }
            }
        }
        effects.wakeAt = wakes.min()
    }

    /// When the next upload may begin; nil if there is nothing to upload, or not yet.
    private func uploadDue() -> Int64? {
        let from = uploadPause.until ?? .min
        if copy.batchID != nil { return from }
        guard copy.token != nil, !isHeldForFetch, hasEdits else { return nil }
        guard let firstEdit, let lastEdit else { return from }
        return max(from, min(firstEdit + Self.delayMilliseconds, lastEdit + Self.quietMilliseconds))
    }

    mutating func refuse(_ refusal: PreferenceRefusal, _ effects: inout PreferenceEffects) {
        refusals.removeAll { $0.key == refusal.key }
        refusals.append(refusal)
        if refusals.count > Self.refusalsMax { refusals.removeFirst() }
        effects.refusals.append(refusal)
    }

    /// A time before which no request is sent.
    struct Pause: Hashable, Sendable {
        private(set) var until: Int64?
        private var failures = 0
        private var isServers = false
        /// Whether a caller wanted it now while it was under way. If the attempt fails, the cause may already be gone.
        private var isWantedAgain = false

        static let firstMilliseconds: Int64 = 1000
        static let lastMilliseconds: Int64 = 60_000
        static let dayMilliseconds: Int64 = 86_400_000

        /// An attempt failed: the server's pause counts, else one that doubles.
        mutating func failed(at now: Int64, retryAfter: Int64?) {
            isServers = retryAfter != nil
            let own = min(Self.lastMilliseconds, Self.firstMilliseconds << Int64(min(failures, 10)))
            let pause = Self.length(own: own, retryAfter: retryAfter)
            until = isWantedAgain && !isServers ? nil : now + pause
            isWantedAgain = false
            failures += 1
        }

        /// Bounded on both sides, whatever the server asks for.
        static func length(own: Int64, retryAfter: Int64?) -> Int64 {
            retryAfter.map { min(max($0, own), dayMilliseconds) } ?? own
        }

        mutating func succeeded() { self = Pause() }

        mutating func begun() { isWantedAgain = false }

        /// A caller wants it now: our own pause ends, and if an attempt under way fails, the next one follows at once.
        /// A pause that the server asked for stays.
        mutating func hurry(isUnderWay: Bool) {
            if !isServers { until = nil }
            isWantedAgain = isUnderWay
        }
    }
}

extension PreferenceSync {
    /// Another user signed in, or the user signed out.
    ///
    /// The copy so far is replaced. Values set while no user was signed in (`unclaimed`) become the new user's edits
    /// where the user has no value; the caller empties their files once this copy is on disk.
    /// - Parameter copy: what this device has of the account.
    mutating func accountChanged(
        to account: String?, copy: PreferenceCopy, unclaimed: [PreferenceCopy] = [], at moment: PreferenceMoment
    ) -> PreferenceEffects {
        let before = self
        self = PreferenceSync(account: account, copy: copy, limits: limits)
        return take(unclaimed, after: before, at: moment)
    }

    /// Values set while no user was signed in become the user's, as in `accountChanged`, when the user stays the same.
    mutating func claimed(_ unclaimed: [PreferenceCopy], at moment: PreferenceMoment) -> PreferenceEffects {
        take(unclaimed, after: self, at: moment)
    }

    private mutating func take(
        _ unclaimed: [PreferenceCopy], after before: PreferenceSync, at moment: PreferenceMoment
    ) -> PreferenceEffects {
        var effects = PreferenceEffects()
        for copy in unclaimed {
            for (key, edit) in copy.rows.compactMap({ key, row in row.edit.map { (key, $0) } })
                .sorted(by: { $0.1.order < $1.1.order })
            where edit.isExplicit || self.copy.rows[key]?.value == nil {
                edited(key, edit.value, isExplicit: edit.isExplicit, at: moment.milliseconds, &effects)
            }
        }
        // What was set a while ago need not wait for more.
        (firstEdit, lastEdit) = (nil, nil)
        effects.persist = true
        let changed = before.copy.differences(to: self.copy)
        if before.account != nil && before.account != account || !changed.isEmpty {
            effects.notifications.insert(PreferenceNotification(.accountChange, changed), at: 0)
        }
        effects.append(handle(.woken, at: moment))
        return effects
    }

    /// Another process changed the copy on disk: takes it over, and replays the edits that are not on disk yet.
    mutating func adopt(
        _ other: PreferenceCopy, replaying edits: [PreferenceEdit], at moment: PreferenceMoment
    ) -> PreferenceEffects {
        var effects = PreferenceEffects()
        let before = copy
        copy = other
        if copy.batchID != before.batchID { isUploading = false }
        if copy.token != nil {
            cursor = nil
            seen = []
        }
        for edit in edits {
            edited(edit.key, edit.value, isExplicit: edit.isExplicit, at: moment.milliseconds, &effects)
        }
        // What was refused was told already.
        let refused = Set(effects.refusals.map(\.key))
        let changed = before.differences(to: copy).filter { !refused.contains($0) }
        if !changed.isEmpty {
            let isInitial = !before.isInitialSyncDone && copy.isInitialSyncDone
            effects.notifications.insert(
                PreferenceNotification(isInitial ? .initialSync : .serverChange, changed), at: 0)
        }
        return effects
    }

    /// An edit of which nothing is begun yet; a `woken` begins what is due.
    mutating func edit(_ edit: PreferenceEdit, at moment: PreferenceMoment) -> PreferenceEffects {
        var effects = PreferenceEffects()
        edited(edit.key, edit.value, isExplicit: edit.isExplicit, at: moment.milliseconds, &effects)
        return effects
    }
}

extension PreferenceCopy {
    /// The keys whose values the app sees differ, in byte order.
    func differences(to other: PreferenceCopy) -> [PreferenceKey] {
        Set(rows.keys).union(other.rows.keys).filter { !value($0).isSame(as: other.value($0)) }.sorted()
    }
}

/// What the app did to a key.
struct PreferenceEdit: Hashable, Sendable {
    var key: PreferenceKey
    /// Nil to remove it.
    var value: PropertyValue?
    var isExplicit = false
}
