/// What a swarm must have met: moments in which faults come to bear, and that no option brings about by itself. A swarm
/// of many seeds that never met one of them fails, as nothing was tested there.
package enum Situation: String, Sendable, CaseIterable, Codable {
    /// A joint configuration was in a log.
    case jointConfiguration
    /// Another entry was sent for an index at which an earlier term had one.
    case overwrittenEntry
    /// A leader handed over, and the other campaigned.
    case transferElection
    case snapshotInstalled
    /// A node gave a replica up, or began one.
    case replicaGivenUp, replicaBegun
    case levelRaised
    /// A write of the log reached the disk in part.
    case tornWrite
    /// What a failed sync had lost was gone after a power failure.
    case lostSync
    /// Names of the log's files that were not synced were lost.
    case lostName
    /// The power took commits of a database back.
    case lostCommits
    /// The log's disk failed a read.
    case failedRead
    /// A leader's machine stood still, with its monotonic clock.
    case suspendedLeader
    /// The name of a database that took another's place was lost.
    case lostDatabaseName
    /// What the log had let go was looked for in what a power failure would leave of a database.
    case judgedDatabase
    /// A client was answered by a leader while another one led.
    case readUnderDeposedLeader
    /// A request that had been sent before was answered.
    case repeatedRequest
    case throttledRequest
    /// A save was refused because its user has no room left.
    case filledQuota
    /// What shards have of a quota was compared with what the ledger gave.
    case judgedLedger
    /// A batch of preferences was refused because its store has no room left.
    case filledStore
    /// A batch of preferences was refused because its store has as many keys as it may have.
    case filledKeys
    /// A batch of preferences came once more.
    case repeatedBatch
    /// Devices that waited for changes of preferences heard of one.
    case heardOfChange
    /// A store of preferences was read for the first time in more than one page.
    case firstReadInPages
    /// A feed of preferences was asked for after deletions that are forgotten.
    case forgottenDeletions
    /// A container's administrator changed something, and a node was asked about it.
    case administered
    /// A token of a session was refused at the node that had been shown a newer one long before.
    case supersededToken
    /// A node that was removed, and had not heard of it, was asked for what was changed since.
    case strayAsked
    /// A container that was purged was looked for at the end.
    case purgedContainer
    /// Somebody signed in by a password.
    case signedIn
    /// Somebody began a session as all sessions of the account ended.
    case signedInMeanwhile
    /// Something changed between the head of a request and its body.
    case lateBody
    /// The time of a command was judged while one clock alone was wrong.
    case judgedTime
    /// Data of a node was lost a second time.
    case secondLoss
    /// A node fetched a file of an asset that it was to have.
    case assetPulled
    /// A node copied a file while it still came in to another.
    case assetCopiedEarly
    /// A file was downloaded at a node that does not have it.
    case readThroughPeer
    /// A node found a damaged file.
    case assetRepaired
    /// A node deleted a file that nothing named any more.
    case assetCollected
    /// A save named a file that was gone, one that its record had, or one of another record; or in a way in which it
    /// must not.
    case savedTooLate, keptFile, copiedFile, refusedReceipt
    /// A subscription that fires once did.
    case firedOnce
    /// The courier handed a notification out.
    case handedOut
    /// Subscriptions were refused as they must be.
    case refusedSubscription
    /// A subscription ended with its zone.
    case endedWithZone
    /// A log was read by a user with another role than before.
    case readWithOtherRole
    /// Somebody changed a record that only its creator may read.
    case changeOfUnreadable
    /// A batch failed as a whole, or came to nothing, where somebody watches.
    case vainChange
    /// The subscriptions of a deleted user were looked for at the end, and none was left.
    case forgottenUser
    /// A group came to another leader while its effects on others waited.
    case leaderWithEffects
    /// A node started with effects that waited.
    case restartWithEffects
    /// A snapshot came with effects that waited.
    case snapshotWithEffects
    /// Notifications were asked for by a token that had expired.
    case expiredToken
    /// A disk was full when a file came in, or became so in the middle of it.
    case fullDiskInUpload
    /// A webhook came to tell of other types or fields, or two administrators changed it at once.
    case changedWebhook, contestedWebhook
    /// A webhook's receiver was sent a delivery once more, or told that notifications were lost.
    case repeatedDelivery, toldOfLoss
    /// Bytes of a connection between nodes waited because too many were on the way.
    case fullConnection
    /// What one node wrote came to another in parts.
    case tornFrame
    /// A save was refused as what it must refer to was not there, or a deletion as something relies on the record.
    case refusedReference
    /// Somebody else than its maker, or another user, changed a record of the public database.
    case changeByOther
    /// A key that was used was refused with another body.
    case reusedKey
    /// A job took away what went with a deleted record in a default zone.
    case laterCascade
    /// What referred to a deleted record stayed, as who deleted that may not delete it.
    case sparedByCascade
    /// A user's own record was not changed, as it must not be.
    case refusedProfile
    /// A container was reset, and the feed of a database asked for by a token from before.
    case resetDatabase
    /// A save to production was refused, as its type is not there.
    case refusedGrowth
    /// A query in descending order for one of several values took several pages.
    case descendingRanges
    /// A page of a query or a feed ended before it was full.
    case endedPage
    /// A backup of the cluster took the place of what came after it, a token of that time was refused, and users who
    /// watch were told all.
    case restoredBackup, refusedForgottenToken, watchedRestored

    /// In how many of a thousand seeds of a swarm it must be met; what is rare is asked of large swarms alone.
    package var seedsPerThousandMin: Int {
        switch self {
        case .toldOfLoss, .lostDatabaseName: 0
        case .lostSync: 2
        case .expiredToken: 5
        case .failedRead: 10
        case .tornWrite, .judgedTime, .secondLoss, .snapshotWithEffects, .readUnderDeposedLeader,
            .readThroughPeer, .filledStore, .forgottenDeletions, .purgedContainer, .strayAsked, .filledKeys,
            .signedIn, .signedInMeanwhile, .lateBody, .endedWithZone, .handedOut, .savedTooLate, .keptFile, .copiedFile,
            .refusedReceipt, .suspendedLeader, .judgedDatabase, .descendingRanges, .laterCascade, .resetDatabase,
            .refusedGrowth:
            20
        default: 100
        }
    }

    /// By what a node says in its log.
    static let said: [(words: String, met: Situation)] = [
        ("installing a snapshot at", .snapshotInstalled), ("has no replica any more", .replicaGivenUp),
        ("joins on this node", .replicaBegun), ("is in force", .levelRaised),
    ]
}
