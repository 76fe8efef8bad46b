import RecordModel

extension PreferenceSync {
    mutating func edited(
        _ key: PreferenceKey, _ value: PropertyValue?, isExplicit: Bool, at now: Int64,
        _ effects: inout PreferenceEffects
    ) {
        let row = copy.rows[key] ?? PreferenceCopy.Row()
        // An explicit edit says something where nothing seems to change: before the first download, and of a value that
        // is pending or under way.
        let mustTell = isExplicit && (!copy.isInitialSyncDone || (row.edit ?? row.sent?.edit)?.isExplicit == false)
        if row.value.isSame(as: value), !mustTell {
            forgetRefusals(of: key)
            return
        }
        let before = copy.usage
        var after = before
        if let size = row.sizeBytes {
            after.keys -= 1
            after.bytes -= size
        }
        if let value {
            after.keys += 1
            after.bytes += value.sizeBytes
        }
        if let refusal = limits.problem(key, value, before: before, after: after) {
            refuse(refusal, &effects)
            if refusal.rule.isQuota { effects.notifications.append(PreferenceNotification(.quotaViolation, [key])) }
            return
        }
        forgetRefusals(of: key)
        // While the feed is still to be looked at, what is known of the server may be older than a write of this
        // device.
        let isBack = row.sent == nil && !isHeldForFetch && (row.server?.value).isSame(as: value) && !mustTell
        let order = copy.nextOrder()
        copy.update(key) { row in
            row.edit = isBack ? nil : PreferenceCopy.Edit(value: value, isExplicit: isExplicit, order: order)
        }
        firstEdit = firstEdit ?? now
        lastEdit = now
        if !hasEdits { (firstEdit, lastEdit) = (nil, nil) }
        effects.persist = true
    }

    private mutating func forgetRefusals(of key: PreferenceKey) { refusals.removeAll { $0.key == key } }

    /// Undoes edits that no longer fit, because other devices filled the store. The earlier edits stay.
    private mutating func enforceLimits(_ effects: inout PreferenceEffects) {
        var usage = PreferenceUsage()
        var growing: [(key: PreferenceKey, edit: PreferenceCopy.Edit, serverBytes: Int?)] = []
        for (key, row) in copy.rows {
            let serverBytes = row.server.flatMap { $0.value == nil ? nil : $0.sizeBytes }
            if let edit = row.edit, grows(row) { growing.append((key, edit, serverBytes)) }
            guard let size = grows(row) ? serverBytes : row.sizeBytes else { continue }
            usage.keys += 1
            usage.bytes += size
        }
        var refused: [PreferenceKey] = []
        for (key, edit, serverBytes) in growing.sorted(by: { $0.edit.order < $1.edit.order }) {
            var after = usage
            if serverBytes == nil { after.keys += 1 }
            after.bytes += edit.sizeBytes - (serverBytes ?? 0)
            if let refusal = limits.problem(key, edit.value, before: usage, after: after) {
                refuse(refusal, &effects)
                copy.update(key) { $0.edit = nil }
                refused.append(key)
            } else {
                usage = after
            }
        }
        if refused.isEmpty { return }
        effects.persist = true
        effects.notifications.append(PreferenceNotification(.quotaViolation, refused))
    }

    /// Whether a row's edit makes the store fuller than the server's is.
    private func grows(_ row: PreferenceCopy.Row) -> Bool {
        guard let edit = row.edit, edit.value != nil else { return false }
        guard let server = row.server, server.value != nil else { return true }
        return edit.sizeBytes > server.sizeBytes
    }

    /// Turns edits into the next batch. Edits that free space come first, so that a batch that cannot hold all edits is
    /// not refused for lack of space.
    mutating func formBatch(_ id: String, _ effects: inout PreferenceEffects) {
        enforceLimits(&effects)
        let candidates = copy.rows.compactMap { key, row in row.edit.map { (key: key, edit: $0, grows: grows(row)) } }
            .sorted { ($0.grows ? 1 : 0, $0.key) < ($1.grows ? 1 : 0, $1.key) }
        var writes = 0
        var bytes = 0
        for (key, edit, _) in candidates where writes < batchMax ?? limits.writesMax {
            let server = copy.rows[key]?.server
            if (server?.value).isSame(as: edit.value) {
                copy.update(key) { $0.edit = nil }
                continue
            }
            // Members and keys cost more in JSON than they count for.
            let size = 160 + 2 * edit.sizeBytes + 48 * (edit.value?.memberCount ?? 0)
            if writes > 0, bytes + size > limits.uploadBytesMax { break }
            let expected = server.flatMap { $0.value == nil ? nil : $0.version } ?? PreferenceCopy.absent
            copy.update(key) { row in
                row.edit = nil
                row.sent = PreferenceCopy.Sent(edit: edit, expected: expected)
            }
            writes += 1
            bytes += size
        }
        (firstEdit, lastEdit) = (nil, nil)
        effects.persist = true
        if writes > 0 { copy.batchID = id }
    }

    /// The answer to a batch; answers to others than the one under way are dropped.
    mutating func uploadAnswered(
        _ id: String, _ answer: PreferenceUploadAnswer, at now: Int64, _ effects: inout PreferenceEffects
    ) {
        guard id == copy.batchID, let batch = copy.batch else { return }
        isUploading = false
        if case .unknown(let retryAfter) = answer {
            uploadPause.failed(at: now, retryAfter: retryAfter)
            return
        }
        // A batch that is forgotten at once, as by a wrong clock, is not to come again at once.
        if answer == .forgotten { uploadPause.failed(at: now, retryAfter: nil) } else { uploadPause.succeeded() }
        copy.batchID = nil
        effects.persist = true
        switch answer {
        case .applied(let versions) where versions.count == batch.writes.count: applied(batch, versions, &effects)
        case .conflict: conflicted(batch, at: now, &effects)
        case .refused(let rule, let key, let reason): refused(batch, rule, key, reason, &effects)
        case .applied, .forgotten, .unknown:
            // An answer that does not fit the batch says nothing.
            requeue(batch)
            holdForFetch()
        }
        if !hasEdits { batchMax = nil }
    }

    private mutating func applied(
        _ batch: PreferenceBatch, _ versions: [ChangeTag?], _ effects: inout PreferenceEffects
    ) {
        isQuotaSuspect = false
        conflictsInARow = 0
        let before = copy
        for (write, version) in zip(batch.writes, versions) {
            copy.update(write.key) { row in
                guard let sent = row.sent else { return }
                row.sent = nil
                if !sent.isSuperseded {
                    row.server = version.map { PreferenceCopy.Server(value: sent.value, version: $0) }
                } else if row.edit?.order == sent.edit.order, row.hasNewer(than: sent, version) {
                    row.edit = nil
                }
            }
        }
        let changed = before.differences(to: copy)
        if !changed.isEmpty { effects.notifications.append(PreferenceNotification(.serverChange, changed)) }
    }

    /// The keys have other versions than expected: the feed says what they are and who wrote it, so the next upload
    /// waits for it. (A conflict does not name the writer; after a batch that was forgotten it may be this device.)
    private mutating func conflicted(
        _ batch: PreferenceBatch, at now: Int64, _ effects: inout PreferenceEffects
    ) {
        requeue(batch)
        holdForFetch()
        conflictsInARow += 1
        if conflictsInARow <= Self.conflictsMax { return }
        // The feed has nothing to say about it: what is known of the server is wrong.
        uploadPause.failed(at: now, retryAfter: Int64(conflictsInARow - Self.conflictsMax) * Pause.firstMilliseconds)
        readAnew(&effects)
    }

    /// Nothing was written. The write at fault is undone if it is known, and searched for otherwise.
    private mutating func refused(
        _ batch: PreferenceBatch, _ rule: PreferenceRefusal.Rule, _ key: PreferenceKey?, _ reason: String,
        _ effects: inout PreferenceEffects
    ) {
        let culprit = batch.writes.count == 1 ? batch.writes[0].key : key
        if let culprit, let row = copy.rows[culprit], let sent = row.sent {
            copy.update(culprit) { $0.sent = nil }
            requeue(batch)
            // Where there is a newer value, or a newer edit, this one does not matter any more.
            if sent.isSuperseded || row.edit != nil { return }
            refuse(PreferenceRefusal(key: culprit, rule: rule, reason: reason), &effects)
            if rule.isQuota || !copy.value(culprit).isSame(as: row.value) {
                effects.notifications.append(
                    PreferenceNotification(rule.isQuota ? .quotaViolation : .serverChange, [culprit]))
            }
            return
        }
        requeue(batch)
        if rule.isQuota, !isQuotaSuspect {
            // What others wrote shows which edits there is no room for.
            isQuotaSuspect = true
            holdForFetch()
        } else {
            batchMax = max(1, batch.writes.count / 2)
        }
    }

    /// The next upload waits for what the feed says.
    private mutating func holdForFetch() {
        isHeldForFetch = true
        wantsFetch = true
    }

    /// Makes the writes of a batch edits again, except where there is a later one, or a newer value.
    private mutating func requeue(_ batch: PreferenceBatch) {
        for write in batch.writes {
            copy.update(write.key) { row in
                row.keepSent()
                row.sent = nil
            }
        }
        (firstEdit, lastEdit) = (nil, nil)
    }

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

    /// The token cannot be followed: the feed is to be read from its start.
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
            // An echo, or older than an answer that overtook it. A deletion need not be remembered once the feed
            // repeats it.
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
                // The feed repeats a deletion of our own; the app knows it.
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
    /// The server has a value that this device did not know of. It replaces what was to be written, unless that is
    /// explicit or the value is this device's own.
    /// - Parameter isOwn: whether this device wrote the value, in a batch whose answer never came. The pending edit was
    ///   then made later.
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

    /// Whether what took the place of a write that was done came after it, from somebody who knew it. Before it came
    /// only what had gone again, as the write found what it expected.
    func hasNewer(than sent: PreferenceCopy.Sent, _ version: ChangeTag?) -> Bool {
        if sent.expected != PreferenceCopy.absent { return true }
        guard let version, let server else { return false }
        return version.isOlder(than: server.version)
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
