package import RecordModel

extension PreferenceSync {
    /// Another user signed in, or nobody is any more.
    ///
    /// Nothing of the copy so far stays. What was set while nobody was signed in (`unclaimed`) becomes the new user's edits where
    /// the user has no value; the caller empties it once this copy is on disk.
    /// - Parameter copy: what this device has of the account.
    package mutating func accountChanged(
        to account: String?, copy: PreferenceCopy, unclaimed: [PreferenceCopy] = [], at moment: PreferenceMoment
    ) -> PreferenceEffects {
        let before = self
        self = PreferenceSync(account: account, copy: copy, limits: limits)
        return take(unclaimed, after: before, at: moment)
    }

    /// What was set while nobody was signed in becomes the user's, as in `accountChanged`, where the user is the same as before.
    package mutating func claimed(_ unclaimed: [PreferenceCopy], at moment: PreferenceMoment) -> PreferenceEffects {
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

    /// Another process of the user's changed the copy on disk: goes on with that, and with the edits that are not on disk yet.
    package mutating func adopt(
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
    package mutating func edit(_ edit: PreferenceEdit, at moment: PreferenceMoment) -> PreferenceEffects {
        var effects = PreferenceEffects()
        edited(edit.key, edit.value, isExplicit: edit.isExplicit, at: moment.milliseconds, &effects)
        return effects
    }
}

extension PreferenceCopy {
    /// The keys whose values the app sees differ, in byte order.
    package func differences(to other: PreferenceCopy) -> [PreferenceKey] {
        Set(rows.keys).union(other.rows.keys).filter { !value($0).isSame(as: other.value($0)) }.sorted()
    }
}

/// What the app did to a key.
package struct PreferenceEdit: Hashable, Sendable {
    package var key: PreferenceKey
    /// Nil to remove it.
    package var value: PropertyValue?
    package var isExplicit: Bool

    package init(_ key: PreferenceKey, _ value: PropertyValue?, isExplicit: Bool = false) {
        self.key = key
        self.value = value
        self.isExplicit = isExplicit
    }
}
