import RecordModel

/// What happened outside; the shell passes it in with the time.
enum PreferenceEvent: Sendable {
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
    /// There is another session, or the server takes the former one again.
    case sessionBegan
    /// The time asked for by `wakeAt` has come, or any other.
    case woken
}

enum PreferenceUploadAnswer: Hashable, Sendable {
    /// All writes were done: the version of each, in their order; nil for a deleted key that did not exist.
    case applied([ChangeTag?])
    /// Nothing was done: keys have other versions than expected.
    case conflict
    /// Nothing was done and a repeat does not help.
    case refused(PreferenceRefusal.Rule, key: PreferenceKey?, reason: String)
    /// A repeat of the batch does not help: the server does not know its id any more, or something before the server
    /// does not let it through. Whether an earlier attempt was done is not known.
    case forgotten
    /// Whether it was done is not known, or it was not taken up: to be repeated as it is, after this time if one is
    /// given.
    case unknown(retryAfterMilliseconds: Int64?)
}

/// Identifies a request for a page. Pages for any other than the latest request are dropped.
struct PreferenceTicket: Hashable, Sendable {
    /// The user whose feed it is; nil without a user.
    var account: String?
    /// The token that the request carried; nil for the start.
    var since: String?
}

/// A page of a store's change feed.
struct PreferencePage: Hashable, Sendable {
    struct Change: Hashable, Sendable {
        var key: PreferenceKey
        /// Nil if the key was deleted.
        var value: PropertyValue?
        var version: ChangeTag
        var device: String?
    }

    /// In the order of the changes.
    var changes: [Change]
    var token: String
    var isMoreComing: Bool
}

/// What is to be done, in this order: persist, then notify and send.
struct PreferenceEffects: Hashable, Sendable {
    /// The copy changed and has to be on disk before anything is sent.
    var persist = false
    /// To be posted once the app can read the new values.
    var notifications: [PreferenceNotification] = []
    /// Send this batch.
    var upload: PreferenceBatch?
    /// Ask for a page of the feed.
    var fetch: PreferenceTicket?
    /// Wake at this time, unless an event comes first.
    var wakeAt: Int64?
    /// What was refused just now.
    var refusals: [PreferenceRefusal] = []

    /// Adds what a later event asks for; its requests and its time are the ones that count.
    mutating func append(_ later: PreferenceEffects) {
        persist = persist || later.persist
        notifications += later.notifications
        refusals += later.refusals
        (upload, fetch, wakeAt) = (later.upload, later.fetch, later.wakeAt)
    }
}

/// A change that the app did not make.
struct PreferenceNotification: Hashable, Sendable {
    /// Apple's numbers.
    enum Reason: Int, Hashable, Sendable {
        case serverChange = 0
        case initialSync = 1
        case quotaViolation = 2
        case accountChange = 3
    }

    var reason: Reason
    /// The keys whose values changed, deleted ones too, or whose writes were refused; in byte order.
    var keys: [String]

    init(_ reason: Reason, _ keys: some Sequence<PreferenceKey>) {
        self.reason = reason
        self.keys = keys.sorted().map(\.text)
    }
}

/// When an event happened, and the random id that it may need.
struct PreferenceMoment: Sendable {
    /// Of a clock that does not jump.
    var milliseconds: Int64
    /// The id of the batch that the event may lead to; never used before.
    var batchID: String
}

/// Why a write is not in the store.
struct PreferenceRefusal: Hashable, Sendable {
    /// The rule that it breaks; the raw value is the server's name of it.
    enum Rule: String, Hashable, Sendable {
        case keys, storeBytes, valueBytes, keyBytes, valueMembers, valueDepth
        /// A value that is not a property list.
        case type
        /// Another rule of the server's.
        case other

        var isQuota: Bool { self == .keys || self == .storeBytes || self == .valueBytes }
    }

    var key: PreferenceKey
    var rule: Rule
    /// What was wrong, and what to do.
    var reason: String
}

/// The limits of a copy. They are the server's, so that most refusals happen at once.
struct PreferenceLimits: Hashable, Sendable {
    var keysMax = 1024
    var keyBytesMax = 64
    var valueBytesMax = 1_048_576
    var storeBytesMax = 1_048_576
    var valueMembersMax = 10_000
    /// Writes in one upload.
    var writesMax = 1024
    /// Roughly how large an upload may be as JSON; a single write may be larger.
    var uploadBytesMax = 3 * 1_048_576

    /// What is wrong with a write that would turn a store of `before` into one of `after`; nil if nothing. A write that
    /// makes nothing worse passes, so that an overfull store can be emptied.
    func problem(
        _ key: PreferenceKey, _ value: PropertyValue?, before: PreferenceUsage, after: PreferenceUsage
    ) -> PreferenceRefusal? {
        func refusal(_ rule: PreferenceRefusal.Rule, _ reason: String) -> PreferenceRefusal {
            PreferenceRefusal(key: key, rule: rule, reason: reason)
        }
        let (name, length) = (key.text, key.text.utf8.count)
        if length == 0 || length > keyBytesMax {
            return refusal(
                .keyBytes, "the key '\(name.prefix(80))' has \(length) bytes of UTF-8; a key has 1 to \(keyBytesMax)")
        }
        guard let value else { return nil }
        if value.depth > PropertyValue.depthMax {
            return refusal(
                .valueDepth, "the value of '\(name)' is nested deeper than \(PropertyValue.depthMax); keep it as data")
        }
        if value.memberCount > valueMembersMax {
            return refusal(
                .valueMembers, "the value of '\(name)' has more than \(valueMembersMax) members; keep it as data")
        }
        if value.sizeBytes > valueBytesMax {
            return refusal(
                .valueBytes,
                "the value of '\(name)' has \(value.sizeBytes) bytes and may have \(valueBytesMax); shorten it")
        }
        if after.keys > keysMax, after.keys > before.keys {
            return refusal(.keys, "'\(name)' would be key \(after.keys) of \(keysMax); remove another first")
        }
        if after.bytes > storeBytesMax, after.bytes > before.bytes {
            return refusal(
                .storeBytes,
                "with '\(name)' the store would hold \(after.bytes) bytes and may hold \(storeBytesMax); shorten or "
                    + "remove values first")
        }
        return nil
    }
}
