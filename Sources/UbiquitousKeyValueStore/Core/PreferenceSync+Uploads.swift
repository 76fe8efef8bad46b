import RecordModel

extension PreferenceSync {
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
        case .applied(let versions):
            // An answer that does not fit the batch says nothing.
            if versions.count == batch.writes.count { applied(batch, versions) } else { requeue(batch) }
        case .conflict: conflicted(batch, at: now, &effects)
        case .refused(let rule, let key, let reason): refused(batch, rule, key, reason, &effects)
        case .forgotten, .unknown: requeue(batch)
        }
        if !hasEdits { batchMax = nil }
    }

    private mutating func applied(_ batch: PreferenceBatch, _ versions: [ChangeTag?]) {
        isQuotaSuspect = false
        conflictsInARow = 0
        for (write, version) in zip(batch.writes, versions) {
            copy.update(write.key) { row in
                guard let sent = row.sent else { return }
                row.sent = nil
                if !sent.isSuperseded {
                    row.server = version.map { PreferenceCopy.Server(value: sent.value, version: $0) }
                }
            }
        }
    }

    /// The keys have other versions than expected: the feed says what they are and who wrote it, so the next upload waits for it.
    /// (A conflict does not name the writer; after a batch that was forgotten it may be this device.)
    private mutating func conflicted(
        _ batch: PreferenceBatch, at now: Int64, _ effects: inout PreferenceEffects
    ) {
        requeue(batch)
        isHeldForFetch = true
        wantsFetch = true
        conflictsInARow += 1
        if conflictsInARow <= Self.conflictsMax { return }
        // The feed has nothing to say about it: what is known of the server is wrong.
        uploadPause.failed(at: now, retryAfter: Int64(conflictsInARow - Self.conflictsMax) * Pause.firstMilliseconds)
        readAnew(&effects)
    }

    /// Nothing was written: the write at fault is undone, where it is known; else it is sought.
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
            isHeldForFetch = true
            wantsFetch = true
        } else {
            batchMax = max(1, batch.writes.count / 2)
        }
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
}
