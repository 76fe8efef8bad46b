package import Directory
package import GRDB
package import KeyValueStore
package import RecordModel
package import RecordStore
import Synchronization
package import Wire

/// A shard: the records and preferences of the zones and stores in its slots, in one database.
package final class ShardMachine: StateMachine {
    private struct State {
        /// Belongs to the open database file; a snapshot brings another.
        var tables = RecordTables()
        /// Whether jobs wait for `maintain` commands, as the last transaction left it.
        var hasJobs = false
        /// Whether time alone made something due, as far as anybody looked; only a `maintain` that left nothing ends
        /// it.
        var isDue = false
        /// What the open transaction will leave.
        var pendingJobs: Bool?
        var pendingDue: Bool?
        /// The key-value stores that the open transaction wrote to, in order and perhaps several times.
        var pendingStores: [StoreKey] = []
        /// Whether the open transaction began new incarnations of all stores.
        var pendingAll = false
        /// Files that the open transaction named.
        var pendingAssets: [AssetReference] = []
        /// How many effects wait for other groups, as the last transaction left it.
        var waiting = 0
        var pendingWaiting: Int?
        /// What waits to be matched with subscriptions, as the last transaction left it.
        var matches = WaitingMatches()
        var pendingMatches: WaitingMatches?
        /// The containers with earlier versions of records that are too old, when somebody looked last.
        var oldVersions: [String] = []
    }

    /// The key-value stores that a transaction changed.
    package enum StoreChange: Hashable, Sendable {
        case stores([StoreKey])
        /// Perhaps all of them.
        case all
    }

    private let state = Mutex(State())
    private let vault: FieldVault
    private let storesChanged: @Sendable (StoreChange) -> Void
    private let effectsWait: @Sendable () -> Void
    private let worked: @Sendable (_ container: String) -> Void
    private let versionAge: @Sendable (_ container: String) -> VersionAge?

    private let assets: AssetNews
    private let retention: Retention

    /// - Parameters:
    ///   - assets: is told what records name.
    ///   - storesChanged: called once changes of users' preferences or notifications are in the database.
    ///   - effectsWait: called once effects on other groups are in the database.
    ///   - worked: called when a request of a container is carried out.
    ///   - versionAge: for how long a container keeps earlier versions of records; nil where that is not known.
    package init(
        vault: FieldVault, assets: AssetNews = AssetNews(), assetGrace: Int64 = AssetReference.graceMilliseconds,
        effectsWait: @escaping @Sendable () -> Void = {},
        worked: @escaping @Sendable (_ container: String) -> Void = { _ in },
        versionAge: @escaping @Sendable (_ container: String) -> VersionAge? = { _ in nil },
        storesChanged: @escaping @Sendable (StoreChange) -> Void = { _ in }
    ) {
        self.effectsWait = effectsWait
        self.worked = worked
        self.versionAge = versionAge
        self.vault = vault
        self.assets = assets
        var retention = Retention()
        retention.assetGrace = assetGrace
        self.retention = retention
        self.storesChanged = storesChanged
    }

    /// Makes the tables of records and of key-value stores.
    package func createTables(in db: Database) throws {
        try RecordTables.create(in: db)
        try KeyValueTables.create(in: db)
    }

    /// Brings the tables of records and of key-value stores to what `createTables` makes.
    /// - Throws: `StorageMismatch` for a stored value that cannot be read; errors of the database.
    package func upgradeTables(in db: Database) throws {
        try RecordTables.upgrade(in: db)
        try StoredValues.read { try KeyValueTables.upgrade(in: db) }
    }

    /// Applies encoded `ShardCommand` values, and collects what `didCommit` tells.
    /// - Returns: the outcome of each in the form of its kind of command; `RecordOutcome.refused` where the command
    ///   cannot be read.
    /// - Throws: `UnknownCommand`; `StorageMismatch` for a stored value that cannot be read; errors of the database.
    package func apply(
        _ commands: [[UInt8]], at level: FeatureLevel, in db: Database, while goesOn: () -> Bool
    ) throws -> [[UInt8]] {
        try StoredValues.read { () throws -> [[UInt8]] in
            let tables = state.withLock(\.tables)
            var transaction = try tables.begin(in: db, level: level)
            var outcomes: [[UInt8]] = []
            outcomes.reserveCapacity(commands.count)
            var isDue: Bool?
            for (offset, command) in commands.enumerated() {
                if offset > 0, !goesOn() { break }
                let decoded: ShardCommand
                do throws(WireError) {
                    decoded = try ShardCommand(decodingStrictly: command)
                } catch {
                    if error.isOfNewerBuild { throw UnknownCommand(offset: offset, error: error) }
                    let refusal = ServiceError(.internalError, "unreadable command: \(error)")
                    outcomes.append(RecordOutcome.refused(refusal).encoded())
                    continue
                }
                if let container = decoded.container { worked(container) }
                outcomes.append(try apply(decoded, in: &transaction, of: tables, db, isDue: &isDue))
            }
            try transaction.finish()
            let (hasJobs, named) = (transaction.hasWork, transaction.namedAssets)
            let notified = transaction.notified.map { StoreKey(home: $0) }
            let waiting = transaction.level < .notifications ? nil : try WaitingEffects.count(in: db)
            let matches = transaction.level < .exactNotifications ? nil : try WaitingMatches(in: db)
            state.withLock { state in
                state.pendingJobs = hasJobs
                state.pendingAssets += named
                // Another call may have come before in this transaction, with an entry between that concerns the group.
                state.pendingDue = isDue ?? state.pendingDue
                state.pendingStores += notified
                state.pendingWaiting = waiting
                state.pendingMatches = matches
            }
            return outcomes
        }
    }

    private func apply(
        _ command: ShardCommand, in transaction: inout RecordTransaction, of tables: RecordTables, _ db: Database,
        isDue: inout Bool?
    ) throws -> [UInt8] {
        switch command {
        case .record(let command):
            let outcome = try transaction.apply(command)
            if case .maintained(let hasMore) = outcome { isDue = hasMore || transaction.isToGoOn(command) }
            return outcome.encoded()
        case .keyValue(let command):
            let time = transaction.observe(command.time)
            let outcome = try KeyValueTables.apply(command, at: time, level: transaction.level, in: db)
            if case .applied = outcome { state.withLock { $0.pendingStores.append(command.store) } }
            return outcome.encoded()
        case .startIncarnation(let incarnation):
            // It changes rows that an open transaction holds copies of.
            try transaction.finish()
            try RecordTables.startNewIncarnation(incarnation, level: transaction.level, in: db)
            transaction = try tables.begin(in: db, level: transaction.level)
            _ = try KeyValueTables.startNewIncarnation(incarnation, in: db)
            state.withLock { $0.pendingAll = true }
            // As after a loss.
            isDue = true
            return []
        case .subscriptions(let command): return try transaction.modify(command).encoded()
        case .deliver(let delivery):
            let receipt = try transaction.deliver(delivery)
            if receipt.hasLost { state.withLock { $0.pendingAll = true } }
            // Subscriptions are to be sent again.
            if receipt.hasLost || delivery.effects.contains(.resend) { isDue = true }
            return receipt.encoded()
        case .acknowledge(let acknowledgement):
            try transaction.acknowledge(acknowledgement)
            return []
        case .reader(let command): return try command.apply(in: transaction).encoded()
        case .removeContainer(let name):
            let isBare = try transaction.removeContainer(name)
            return try removePreferences(of: name, at: transaction.level, isLast: isBare, in: db).encoded()
        }
    }

    /// Removes a part of a container's preferences.
    /// - Parameter isLast: whether nothing else is left of the container here.
    private func removePreferences(
        of container: String, at level: FeatureLevel, isLast: Bool, in db: Database
    ) throws -> ContainerRemoval {
        let isDone = try KeyValueTables.removeContainer(container, level: level, in: db)
        return ContainerRemoval(isDone: isDone && isLast)
    }

    /// The part of an encoded `ShardCommand` that only a newer build can know, as `StateMachine` says.
    package func unknownPart(of command: [UInt8]) -> WireError? { unknownPart(of: command, as: ShardCommand.self) }

    /// Prepares the record tables for the new level, and has maintenance proposed if that leaves work.
    package func raise(from old: FeatureLevel, to level: FeatureLevel, in db: Database) throws {
        if try RecordTables.raise(from: old, to: level, in: db) { state.withLock { $0.pendingDue = true } }
    }

    /// Tells of waiting effects, named files and changed stores, each store once, in the order of their first change.
    package func didCommit() {
        let (stores, isAll, named, waiting) = state.withLock { state in
            state.hasJobs = state.pendingJobs ?? state.hasJobs
            state.isDue = state.pendingDue ?? state.isDue
            state.waiting = state.pendingWaiting ?? state.waiting
            state.matches = state.pendingMatches ?? state.matches
            state.pendingJobs = nil
            state.pendingDue = nil
            state.pendingWaiting = nil
            state.pendingMatches = nil
            defer { (state.pendingStores, state.pendingAll, state.pendingAssets) = ([], false, []) }
            return (state.pendingStores, state.pendingAll, state.pendingAssets, state.waiting)
        }
        if waiting > 0 { effectsWait() }
        if !named.isEmpty { assets.named(named) }
        if isAll { return storesChanged(.all) }
        guard !stores.isEmpty else { return }
        var seen: Set<StoreKey> = []
        storesChanged(.stores(stores.filter { seen.insert($0).inserted }))
    }

    /// Forgets what the failed transaction collected, and the cached parts of the tables.
    package func didRollBack() {
        state.withLock { state in
            state.tables = RecordTables()
            state.pendingJobs = nil
            state.pendingDue = nil
            state.pendingWaiting = nil
            state.pendingMatches = nil
            (state.pendingStores, state.pendingAll, state.pendingAssets) = ([], false, [])
        }
    }

    /// Begins with empty caches, counts what waits, and tells that all stores and files may have changed.
    package func didReplace(_ db: Database) throws {
        let tables = RecordTables()
        let hasJobs = try tables.hasWork(now: .min, in: db)
        let waiting = try WaitingEffects.count(in: db)
        let matches = try WaitingMatches(in: db)
        state.withLock { $0 = State(tables: tables, hasJobs: hasJobs, waiting: waiting, matches: matches) }
        storesChanged(.all)
        assets.changed()
    }

    /// A `maintain` command while jobs wait or something is due; nothing in it is random.
    package func maintenance(now: Int64, at level: FeatureLevel, random: () -> UInt64) -> [UInt8]? {
        let (isDue, containers) = state.withLock { ($0.hasJobs || $0.isDue, $0.oldVersions) }
        guard isDue else { return nil }
        var command = Maintain(time: now, retention: retention)
        if level >= .versions { command.versions = containers.compactMap(versionAge) }
        return ShardCommand.record(.maintain(command)).encoded()
    }

    /// Looks for rows that are past their age, and for a shard whose time is far from `now`; the leader's next
    /// `maintenance` takes care of them.
    /// - Parameter now: in milliseconds since 1970.
    package func findWork(now: Int64, in db: Database) throws {
        let oldVersions = try EarlierVersions.old(now: now, age: versionAge, in: db).map(\.container)
        let isDue =
            try !oldVersions.isEmpty || RecordTables.isAstray(from: now, in: db)
            || state.withLock(\.tables).hasWork(now: now, retention: retention, in: db)
        state.withLock { state in
            state.oldVersions = oldVersions
            if isDue { state.isDue = true }
        }
    }

    /// How many effects on other groups wait to be delivered.
    package var waitingEffects: Int { state.withLock(\.waiting) }
    /// How many changes wait to be matched with subscriptions.
    package var waitingMatches: Int { state.withLock(\.matches.count) }
    /// Whether some of these wait for nothing but maintenance.
    package var isUrgent: Bool { state.withLock(\.matches.isReady) }

    /// Folds the tables of records, then those of key-value stores.
    package func hashState(in db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws {
        try RecordTables.stateHash(in: db) { bytes in bytes.withUnsafeBytes { fold($0) } }
        try KeyValueTables.stateHash(in: db, into: fold)
    }

    /// Answers an encoded `ShardRead` with an encoded `ReadAnswer`.
    /// - Throws: `WireError` for a request that cannot be read; `StorageMismatch` for such a stored value;
    ///   `DirectoryBehind`, after which a retry helps once the directory is caught up with; errors of the database.
    package func read(_ request: [UInt8], in db: Database) throws -> [UInt8] {
        let answers = ShardReader(tables: state.withLock(\.tables), vault: vault, db: db)
        let question = try ShardRead(decoding: request)
        return try StoredValues.read { try answers.answer(to: question) }.encoded()
    }
}

extension VersionAge {
    /// For how long a container keeps earlier versions of records; nil where a directory does not know the container.
    init?(of container: String, in directory: DirectorySnapshot) {
        guard directory.containers[container] != nil else { return nil }
        let days = directory.limits(of: container)[.recordVersionDays]
        self.init(container: container, ageMax: days * 86_400_000, epoch: directory.limitsEpoch(of: container))
    }
}
