/// What apply does, as a number: builds that apply at the same level come to the same result.
///
/// The level in force is replicated state of each group, raised by a command in its own log once every node can follow.
/// So an entry is applied at the same level by all replicas, whichever build they run.
///
/// | level | since | what it brought |
/// | --- | --- | --- |
/// | 1 | 0.1.0 | levels themselves; apply is what it was when they came |
/// | 2 | 0.1.0 | no command moves a shard's time by more than a minute; maintenance moved it by an hour |
/// | 3 | 0.1.0 | the cluster's secret, by which positions are sealed; containers are deleted, restored and purged |
/// | 3 | 0.1.0 | fields that hold assets, and the counts of what names them |
/// | 3 | 0.1.0 | quotas count index rows, tombstones, remembered requests and what deleted zones hold |
/// | 4 | 0.1.0 | outboxes, subscriptions and logs of notifications |
/// | 4 | 0.1.0 | types and fields say with which version of the schema they came |
/// | 4 | 0.1.0 | administrators have roles and passwords, and sessions in the console |
/// | 5 | 0.1.0 | notifications keep their order, come through restores, and losses are of one container and healed |
/// | 5 | 0.1.0 | a command changes a bounded number of rows |
/// | 6 | 0.1.0 | webhooks, and readers whose place in a log of notifications is kept with it |
/// | 7 | 0.1.0 | administrators act as users; notes on containers; histories of schemas; makers and uses of tokens |
/// | 8 | 0.1.0 | answers to idempotency keys of preferences are kept in a few bytes |
/// | 8 | 0.1.0 | a subscription that fires once is not used up by what it matched before it was changed |
/// | 8 | 0.1.0 | a container that is removed ends tokens of its own preferences only |
/// | 8 | 0.1.0 | earlier versions of records |
/// | 9 | 0.1.0 | a batch that is undone leaves the counts of other zones as they were |
/// | 9 | 0.1.0 | a request is remembered by hashes of its records' names, and strangers' requests by 1 MB at most |
/// | 9 | 0.1.0 | tokens end with the log of notifications that is forgotten |
/// | 9 | 0.1.0 | what a subscription is found by, and whose changes wait for each other to be matched |
/// | 9 | 0.1.0 | notifications have collapse IDs and readable dates; a query equals one that is written otherwise |
/// | 9 | 0.1.0 | a log of notifications that is half full keeps the last one of those that say the same of a zone |
/// | 10 | 0.1.0 | thresholds of alerts are among the limits |
/// | 10 | 0.1.0 | an administrator ends a user's lock-out |
/// | 10 | 0.1.0 | an administrator has a test notification of a subscription entered into its user's log |
/// | 10 | 0.1.0 | subscriptions by what a record must not have are found by what it has instead |
/// | 11 | 0.1.0 | a notification has the time of its change, also where its reader's shard was quiet |
/// | 12 | 0.1.0 | a deletion takes along at once what one request may change, and the rest in bounded parts |
/// | 12 | 0.1.0 | the end of a log of notifications ends its own tokens alone |
/// | 12 | 0.1.0 | the deletion of a zone deletes the subscriptions that are bound to it |
/// | 12 | 0.1.0 | a token that is made in the console needs its session until it is there |
/// | 12 | 0.1.0 | administrators' rights to a container end with it |
/// | 12 | 0.1.0 | API tokens and server keys of a container are bounded |
/// | 13 | 0.1.0 | what a change of an administrator does not name stays |
/// | 13 | 0.1.0 | what is allotted for the assets of a container that is purged goes with it |
/// | 13 | 0.1.0 | a subscription that takes long to look at counts for more where changes are matched |
/// | 13 | 0.1.0 | files count among the rows that one request may change |
/// | 13 | 0.1.0 | an hour of the audit log that a clock began which was far ahead ends with the next event |
/// | 14 | 0.1.0 | subscriptions tell distances alike on all machines |
/// | 14 | 0.1.0 | requests that change zones are remembered by a part of the quota, as those that change records |
/// | 14 | 0.1.0 | a record names so many files at most as an answer has room for |
/// | 14 | 0.1.0 | a part of an index's building is no new revision of its schema |
/// | 15 | 0.1.0 | a container that is purged ends tokens of its own databases only |
///
/// What apply does in a new way gets the next number, a line here and a `static let`, and asks for it. A command, or a
/// field of one, that a level brought is not proposed before the level is in force.
package struct FeatureLevel: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The level's number; 1 is the first.
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ value: UInt64) { rawValue = value }
    /// Orders levels by their number.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The level's number in decimal digits.
    package var description: String { String(rawValue) }

    /// What every group begins with.
    package static let first = FeatureLevel(1)
    /// No command moves a shard's time by more than `ShardClock.stepMax`.
    package static let evenSteps = FeatureLevel(2)
    /// Fields hold assets, and shards count what names them.
    package static let assets = FeatureLevel(3)
    /// The directory makes `ClusterSecret`, and deletes, restores and purges containers; shards remove a container's
    /// rows.
    package static let containerDeletion = FeatureLevel(3)
    /// Quotas count every row that a request leaves behind.
    package static let countedRows = FeatureLevel(3)
    /// Effects on other groups, subscriptions and logs of notifications.
    package static let notifications = FeatureLevel(4)
    /// The directory says with which version of a schema each type and field came.
    package static let datedFields = FeatureLevel(4)
    /// The directory has administrators with roles, and their sessions in the console.
    package static let console = FeatureLevel(4)

    /// Notifications in the order of a zone's commits, with losses by container that are healed (decision 0017).
    package static let exactNotifications = FeatureLevel(5)

    /// A request changes `Limits.rowsPerRequestMax` rows at most, and a new schema leaves to maintenance what is more.
    package static let boundedRows = FeatureLevel(5)

    /// The directory has webhooks, which watch the databases of all users, and logs of notifications have readers.
    package static let webhooks = FeatureLevel(6)

    /// `AdministrationCommand`, earlier versions of schemas, and who made a token.
    package static let administration = FeatureLevel(7)

    /// Of an answer to an idempotency key of preferences, what the batch itself says is not kept.
    package static let shortAnswers = FeatureLevel(8)

    /// A subscription that fires once has a generation of its own from each change on.
    package static let renewedSubscriptions = FeatureLevel(8)

    /// Shards remember removed containers, whose later preferences are of another life.
    package static let removedContainers = FeatureLevel(8)

    /// Shards keep earlier versions of records.
    package static let versions = FeatureLevel(8)

    /// A batch that is undone leaves the counts of all zones as they were, also of those that gave up versions for it.
    package static let wholeUndoing = FeatureLevel(9)

    /// What requests of one caller are remembered by is bounded by the database's quota, and is less.
    package static let shortMemories = FeatureLevel(9)

    /// No token of a log of notifications outlives that log, nor skips what a part of its removal took.
    package static let endedLogs = FeatureLevel(9)

    /// Subscriptions are found by any condition, and changes wait to be matched behind those of their database alone.
    package static let filedSubscriptions = FeatureLevel(9)

    /// Notifications have collapse IDs, and show dates as such; equal queries are equal however they are written.
    package static let collapseIDs = FeatureLevel(9)

    /// Logs of notifications are bounded by what is in them, and one that is half full keeps less.
    package static let collapsingLogs = FeatureLevel(9)

    /// Thresholds of alerts are limits.
    package static let alerts = FeatureLevel(10)

    /// Lock-outs are ended by a command of their own.
    package static let unlocking = FeatureLevel(10)

    /// Test notifications are entered into a user's log.
    package static let testNotifications = FeatureLevel(10)

    /// Subscriptions with negative conditions alone are found by what records have instead.
    package static let filedNegations = FeatureLevel(10)

    /// Notifications have the time of the change that they tell of, also where their subscriber's shard was quiet.
    package static let changeTimes = FeatureLevel(11)

    /// What a deletion takes along is bounded by its rows, too; so is a part of maintenance.
    package static let boundedDeletions = FeatureLevel(12)

    /// Logs of notifications begin and end without new lives of the shard's databases.
    package static let ownLives = FeatureLevel(12)

    /// Subscriptions that are bound to a zone end with the life of it that they were saved for.
    package static let boundSubscriptions = FeatureLevel(12)

    /// A session in the console makes its administrator's token by a command that names it.
    package static let sessionTokens = FeatureLevel(12)

    /// A container that is removed is taken from what administrators' roles hold in.
    package static let endedRights = FeatureLevel(12)

    /// A container has so many API tokens and server keys at most.
    package static let boundedTokens = FeatureLevel(12)

    /// Administrators' roles and containers are changed one without the other.
    package static let partialChanges = FeatureLevel(13)

    /// Databases that are removed leave no allotment of assets to those that get their numbers.
    package static let endedAllotments = FeatureLevel(13)

    /// What a command may match is bounded by the work of looking at subscriptions, not by their number alone.
    package static let weighedSubscriptions = FeatureLevel(13)

    /// Files that records come to name, or name no more, count among the rows that a request changes.
    package static let boundedFiles = FeatureLevel(13)

    /// What the audit log tells of an hour is not bounded by an hour that is still to come.
    package static let presentHours = FeatureLevel(13)

    /// Subscriptions tell distances by `Trigonometry.own`.
    package static let ownTrigonometry = FeatureLevel(14)

    /// What requests that change zones are remembered by is bounded by the database's quota, too.
    package static let zoneMemories = FeatureLevel(14)

    /// A record names `Limits.filesPerRecordMax` files at most.
    package static let readableRecords = FeatureLevel(14)

    /// Schemas are revised where an index comes or is ready, not at each part of its building.
    package static let steadySchemas = FeatureLevel(14)

    /// A container that is purged leaves a floor of incarnations of its own.
    package static let ownFloors = FeatureLevel(15)

    /// The end of a zone in which nothing was done is told of under another name than its beginning.
    package static let namedEnds = FeatureLevel(16)

    /// The levels that this build can follow.
    package static let supported = first...FeatureLevel(16)
}
