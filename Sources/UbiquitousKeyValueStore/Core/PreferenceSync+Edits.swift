import RecordModel

extension PreferenceSync {
    /// The app set a key, or removed it.
    mutating func edited(
        _ key: PreferenceKey, _ value: PropertyValue?, isExplicit: Bool, at now: Int64,
        _ effects: inout PreferenceEffects
    ) {
        let row = copy.rows[key] ?? PreferenceCopy.Row()
        // An explicit edit says something where nothing seems to change: before the first download, and of a pending value.
        let mustTell = isExplicit && (!copy.isInitialSyncDone || row.edit?.isExplicit == false)
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
        let isBack = row.sent == nil && (row.server?.value).isSame(as: value) && !mustTell
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

    /// Undoes edits that there is no room for, since other devices filled the store meanwhile: the earlier ones stay.
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

    /// Turns edits into the batch that is sent next. Those that make room come first, so that a batch that does not hold them all
    /// is not refused for want of them.
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
}
