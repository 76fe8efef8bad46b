package import RecordModel

/// What happened outside; the shell passes it in with the time.
package enum PreferenceEvent: Sendable {
    /// The app set a key, or removed it (nil).
    case edited(PreferenceKey, PropertyValue?, isExplicit: Bool)
    /// A batch's answer, by its id.
    case uploadAnswered(String, PreferenceUploadAnswer)
    /// A page of the server's feed that was asked for, or that a watch brought.
    case pageArrived(PreferenceTicket, PreferencePage)
    /// The feed cannot be followed from the ticket's token.
    case tokenExpired(PreferenceTicket)
    /// A fetch got no answer, or one that says when to come back.
    case fetchFailed(PreferenceTicket, retryAfterMilliseconds: Int64?)
    /// The server said, or the network's return suggests, that there may be news.
    case changesSuspected
    /// The app asked to send and fetch now.
    case syncRequested
    /// The time asked for by `wakeAt` has come, or any other.
    case woken
}

/// What became of a batch.
package enum PreferenceUploadAnswer: Hashable, Sendable {
    /// All of it was done: a version a write, in their order; nil where a key was to be deleted that was not there.
    case applied([ChangeTag?])
    /// Nothing was done: these keys have other versions than expected.
    case conflict([Conflict])
    /// Nothing was done and a repeat does not help.
    case refused(PreferenceRefusal.Rule, key: PreferenceKey?, reason: String)
    /// A repeat of the batch does not help: the server does not know its id any more, or something before the server
    /// does not let it through. Whether an earlier attempt was done is not known.
    case forgotten
    /// Whether it was done is not known, or it was not taken up: to be repeated as it is, after this time if one is
    /// given.
    case unknown(retryAfterMilliseconds: Int64?)

    package struct Conflict: Hashable, Sendable {
        package var key: PreferenceKey
        /// Nil if the key has none.
        package var value: PropertyValue?
        /// Nil if the server does not remember the key.
        package var version: ChangeTag?

        package init(key: PreferenceKey, value: PropertyValue?, version: ChangeTag?) {
            self.key = key
            self.value = value
            self.version = version
        }
    }
}

/// Which question a page answers. Pages to other questions than the present one are dropped.
package struct PreferenceTicket: Hashable, Sendable {
    /// Whose feed; nil for nobody's.
    package var account: String?
    /// The token that it was asked with; nil for the start.
    package var since: String?

    package init(account: String?, since: String?) {
        self.account = account
        self.since = since
    }
}

/// A page of a store's change feed.
package struct PreferencePage: Hashable, Sendable {
    package struct Change: Hashable, Sendable {
        package var key: PreferenceKey
        /// Nil if the key was deleted.
        package var value: PropertyValue?
        package var version: ChangeTag
        package var device: String?

        package init(key: PreferenceKey, value: PropertyValue?, version: ChangeTag, device: String?) {
            self.key = key
            self.value = value
            self.version = version
            self.device = device
        }
    }

    /// In the order of the changes.
    package var changes: [Change]
    package var token: String
    package var isMoreComing: Bool

    package init(changes: [Change], token: String, isMoreComing: Bool) {
        self.changes = changes
        self.token = token
        self.isMoreComing = isMoreComing
    }
}

/// What is to be done, in this order: persist, then notify and send.
package struct PreferenceEffects: Hashable, Sendable {
    /// The copy changed and has to be on disk before anything is sent.
    package var persist = false
    /// To be posted once the app can read the new values.
    package var notifications: [PreferenceNotification] = []
    /// Send this batch.
    package var upload: PreferenceBatch?
    /// Ask for a page of the feed.
    package var fetch: PreferenceTicket?
    /// Wake at this time, unless an event comes first.
    package var wakeAt: Int64?
    /// What was refused just now.
    package var refusals: [PreferenceRefusal] = []

    package init() {}

    /// Adds what a later event asks for; its requests and its time are the ones that count.
    mutating func append(_ later: PreferenceEffects) {
        persist = persist || later.persist
        notifications += later.notifications
        refusals += later.refusals
        (upload, fetch, wakeAt) = (later.upload, later.fetch, later.wakeAt)
    }
}

/// A change that the app did not make.
package struct PreferenceNotification: Hashable, Sendable {
    /// Apple's numbers.
    package enum Reason: Int, Hashable, Sendable {
        case serverChange = 0
        case initialSync = 1
        case quotaViolation = 2
        case accountChange = 3
    }

    package var reason: Reason
    /// The keys whose values changed, deleted ones too, or whose writes were refused; in byte order.
    package var keys: [String]

    package init(_ reason: Reason, _ keys: some Sequence<PreferenceKey>) {
        self.reason = reason
        self.keys = keys.sorted().map(\.text)
    }
}

/// When an event happened, and what it may need that is made at random.
package struct PreferenceMoment: Sendable {
    /// Of a clock that does not jump.
    package var milliseconds: Int64
    /// Names the batch that the event may lead to; never used before.
    package var batchID: String

    package init(milliseconds: Int64, batchID: String) {
        self.milliseconds = milliseconds
        self.batchID = batchID
    }
}

/// Why a write is not in the store.
package struct PreferenceRefusal: Hashable, Sendable {
    /// The rule that it breaks; the raw value is the server's name of it.
    package enum Rule: String, Hashable, Sendable {
        case keys, storeBytes, valueBytes, keyBytes, valueMembers, valueDepth
        /// Something that is no property list.
        case type
        /// Another rule of the server's.
        case other

        /// Whether the store is too full.
        package var isQuota: Bool { self == .keys || self == .storeBytes || self == .valueBytes }
    }

    package var key: PreferenceKey
    package var rule: Rule
    /// What was wrong, and what to do.
    package var reason: String

    package init(key: PreferenceKey, rule: Rule, reason: String) {
        self.key = key
        self.rule = rule
        self.reason = reason
    }
}

/// What a copy is held to: the server's limits, so that most refusals happen at once.
package struct PreferenceLimits: Hashable, Sendable {
    package var keysMax = 1024
    package var keyBytesMax = 64
    package var valueBytesMax = 1_048_576
    package var storeBytesMax = 1_048_576
    package var valueMembersMax = 10_000
    /// Writes in one upload.
    package var writesMax = 1024
    /// Roughly how large an upload may be as JSON; a single write may be larger.
    package var uploadBytesMax = 3 * 1_048_576

    package init() {}

    /// What is wrong with a write that would turn a store of `before` into one of `after`; nil if nothing. A write that
    /// makes nothing worse passes, so that an overfull store can be emptied.
    func problem(
        _ key: PreferenceKey, _ value: PropertyValue?, before: PreferenceUsage, after: PreferenceUsage
    ) -> PreferenceRefusal? {
        let length = key.text.utf8.count
        if length == 0 || length > keyBytesMax {
            return PreferenceRefusal(
                key: key, rule: .keyBytes,
                reason: "the key '\(key.text.prefix(80))' has \(length) bytes of UTF-8; a key has 1 to \(keyBytesMax)")
        }
        guard let value else { return nil }
        if value.depth > PropertyValue.depthMax {
            return PreferenceRefusal(
                key: key, rule: .valueDepth,
                reason: "the value of '\(key.text)' is nested deeper than \(PropertyValue.depthMax); keep it as data")
        }
        if value.memberCount > valueMembersMax {
            return PreferenceRefusal(
                key: key, rule: .valueMembers,
                reason: "the value of '\(key.text)' has more than \(valueMembersMax) members; keep it as data")
        }
        if value.sizeBytes > valueBytesMax {
            return PreferenceRefusal(
                key: key, rule: .valueBytes,
                reason:
                    "the value of '\(key.text)' has \(value.sizeBytes) bytes and may have \(valueBytesMax); shorten it")
        }
        if after.keys > keysMax, after.keys > before.keys {
            return PreferenceRefusal(
                key: key, rule: .keys,
                reason: "'\(key.text)' would be key \(after.keys) of \(keysMax); remove another first")
        }
        if after.bytes > storeBytesMax, after.bytes > before.bytes {
            return PreferenceRefusal(
                key: key, rule: .storeBytes,
                reason: "with '\(key.text)' the store would hold \(after.bytes) bytes and may hold \(storeBytesMax); "
                    + "shorten or remove values first")
        }
        return nil
    }
}
