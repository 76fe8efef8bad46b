import RecordModel

extension PreferenceSync {
    /// A page of the feed.
    mutating func pageArrived(
        _ ticket: PreferenceTicket, _ page: PreferencePage, _ effects: inout PreferenceEffects
    ) {
        let isAnswer = fetching == ticket
        if isAnswer { fetching = nil }
        // A page to an older question, to another user's, or one that came twice.
        guard account != nil, ticket.account == account, ticket.since == position else {
            // What the question was asked for is still to be learnt.
            if isAnswer { wantsFetch = true }
            return
        }
        let isReading = copy.token == nil
        // Tokens that expire again and again are asked for later and later.
        if isAnswer, !isReading { fetchPause.succeeded() }
        let reason: PreferenceNotification.Reason = copy.isInitialSyncDone ? .serverChange : .initialSync
        let before = copy
        var changed: Set<PreferenceKey> = []
        for change in page.changes {
            if isReading { seen.insert(change.key) }
            if apply(change, isReading: isReading) { changed.insert(change.key) }
        }
        if page.isMoreComing {
            if isReading { cursor = page.token } else { copy.token = page.token }
            wantsFetch = true
        } else {
            if isReading { finishReading(&changed) }
            copy.token = page.token
            isHeldForFetch = false
        }
        if copy != before { effects.persist = true }
        if !changed.isEmpty { effects.notifications.append(PreferenceNotification(reason, changed)) }
    }

    /// The token cannot be followed: all is to be read again.
    mutating func tokenExpired(_ ticket: PreferenceTicket, at now: Int64, _ effects: inout PreferenceEffects) {
        if fetching == ticket { fetching = nil }
        wantsFetch = true
        guard ticket.account == account, ticket.since == position else { return }
        fetchPause.failed(at: now, retryAfter: nil)
        readAnew(&effects)
    }

    /// Begins to read the feed from its start.
    mutating func readAnew(_ effects: inout PreferenceEffects) {
        if copy.token != nil { effects.persist = true }
        copy.token = nil
        cursor = nil
        seen = []
        wantsFetch = true
    }

    /// Takes over what the feed says of a key.
    /// - Returns: whether the app sees another value now.
    private mutating func apply(_ change: PreferencePage.Change, isReading: Bool) -> Bool {
        let known = copy.rows[change.key]?.server
        if let known, known.version == change.version || !isReading && change.version.isOlder(than: known.version) {
            // An echo, or older than an answer that overtook it. A deletion need not be remembered once the feed repeats it.
            if known.value == nil, known.version == change.version { copy.update(change.key) { $0.server = nil } }
            return false
        }
        let before = copy.value(change.key)
        let isOwn = change.device == copy.device
        copy.update(change.key) { row in
            row.server = change.value.map { PreferenceCopy.Server(value: $0, version: change.version) }
            row.yield(to: change.value, isOwn: isOwn)
        }
        return !copy.value(change.key).isSame(as: before)
    }

    /// The reading from the start is complete: what it did not meet is gone.
    private mutating func finishReading(_ changed: inout Set<PreferenceKey>) {
        for key in copy.rows.keys.sorted() where !seen.contains(key) {
            guard let row = copy.rows[key], let server = row.server else { continue }
            copy.update(key) { row in
                row.server = nil
                // A deletion of our own that was waiting to be repeated is no news.
                if server.value != nil { row.yield(to: nil, isOwn: false) }
            }
            if !copy.value(key).isSame(as: row.value) { changed.insert(key) }
        }
        cursor = nil
        seen = []
        copy.isInitialSyncDone = true
    }
}

extension PreferenceCopy.Row {
    /// The server has another value than this device knew of: it takes the place of what was to be written, unless that is
    /// explicit, or the value is this device's own.
    /// - Parameter isOwn: whether this device wrote the value, in a batch whose answer never came: what is to be written was
    ///   set after that.
    mutating func yield(to value: PropertyValue?, isOwn: Bool) {
        var isKnown = isOwn
        if let sent, !sent.isSuperseded {
            // What comes after our own write was made knowing it.
            if sent.value.isSame(as: value) { isKnown = true } else if isOwn || sent.edit.isExplicit { keepSent() }
            self.sent?.isSuperseded = true
        }
        guard let edit, !isKnown else { return }
        if !edit.isExplicit || edit.value.isSame(as: value) { self.edit = nil }
    }

    /// Makes the write under way an edit again, except where there is a later one.
    mutating func keepSent() {
        guard let sent, !sent.isSuperseded else { return }
        if edit == nil {
            edit = sent.edit
        } else if sent.edit.isExplicit {
            edit?.isExplicit = true
        }
    }
}

extension ChangeTag {
    /// Whether the same life of the store had the other version later. After a restore nothing is known.
    func isOlder(than other: ChangeTag) -> Bool { incarnation == other.incarnation && sequence < other.sequence }
}
