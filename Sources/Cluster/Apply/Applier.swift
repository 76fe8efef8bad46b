import Crypto
import DequeModule
import Foundation
import GRDB
import Logging
import RaftCore
import RecordModel
import Storage
import Synchronization
import Telemetry
import Wire

/// Applies one group's committed entries to its database, in order, many to a transaction. The queue is filled by the
/// lane and drained by one worker thread at a time.
package final class Applier: Sendable {
    enum Item: Sendable {
        /// The current entries, with the callers of their outcomes by position in the array.
        case entries([Entry], completions: [Int: Completion])
        /// Entries that have to be read from the log.
        case logged(from: LogIndex, through: LogIndex)
        /// The received snapshot at `path` takes the place of the database.
        case install(path: String, SnapshotMark)
    }

    private struct State {
        var items: Deque<Item> = []
        var isScheduled = false
        var database: ShardDatabase
        /// At which commands are applied.
        var level: FeatureLevel
        /// Why the first item could not be applied, as it was said.
        var failure: String?
        /// Whether a transaction that failed may have been kept, so that the machine does not know what the database
        /// holds.
        var isUnsure = false
    }

    let group: GroupID
    let machine: any StateMachine
    private let state: Mutex<State>
    private let databasePath: String
    private let databaseOptions: ShardDatabaseOptions
    private let log: RaftLog
    private let settings: ApplySettings
    private let levels: FeatureLevels
    private let logger: Logger

    /// - Throws: what keeps the database from being read.
    init(
        group: GroupID, machine: any StateMachine, database: ShardDatabase, path: String, options: ShardDatabaseOptions,
        log: RaftLog, settings: ApplySettings, levels: FeatureLevels, logger: Logger
    ) throws {
        self.group = group
        self.machine = machine
        self.log = log
        self.settings = settings
        self.levels = levels
        self.logger = logger
        databasePath = path
        databaseOptions = options
        state = Mutex(State(database: database, level: try database.read { try AppliedRow.level(of: $0) }))
    }

    /// The database as it is now; a snapshot may put another in its place.
    var database: ShardDatabase { state.withLock(\.database) }

    /// The feature level at which commands are applied.
    var level: FeatureLevel { state.withLock(\.level) }

    /// Queues work. Returns whether the applier has to be handed to its worker.
    func enqueue(_ item: Item) -> Bool {
        state.withLock { state in
            state.items.append(item)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// What one turn on the worker came to.
    enum Progress {
        /// Applied through this position; `isInstalled` if a snapshot was put in place.
        case applied(LogPosition, installed: SnapshotMark?)
        /// The disk failed, or this build is too old (`BuildTooOld`); the same items wait for another try.
        case failed(any Error)
    }

    /// Applies what waits, one transaction after another, and reports each. Called on the worker thread only.
    func drain(report: (Progress) -> Void) {
        while let item = next() {
            do {
                switch item {
                case .entries(let entries, let completions):
                    try applyKnown(entries, completions: completions, report: report)
                case .logged(let from, let through):
                    try applyLogged(from: from, through: through, report: report)
                case .install(let path, let mark):
                    try install(path: path, mark)
                    report(.applied(mark.position, installed: mark))
                }
                applied()
            } catch {
                machine.didRollBack()
                state.withLock { $0.isUnsure = true }
                logOnce(error)
                giveUpWaiting(because: error)
                report(.failed(error))
                return
            }
        }
    }

    /// The first item is done.
    private func applied() {
        let failure = state.withLock { state in
            state.items.removeFirst()
            defer { state.failure = nil }
            return state.failure
        }
        if failure != nil { logger.notice("group \(group): what could not be applied is applied now") }
    }

    /// A full disk fails many times a minute with the same words.
    private func logOnce(_ error: any Error) {
        let text = "\(error)"
        let isNew = state.withLock { state in
            defer { state.failure = text }
            return state.failure != text
        }
        guard isNew else { return }
        let isFinal = error is BuildTooOld
        let what = isFinal ? "applying stops here" : "applying failed, and is tried again until it succeeds"
        logger.error("group \(group): \(what): \(text)")
    }

    /// Whether something waits that no worker has; then the caller schedules the applier.
    func reschedule() -> Bool {
        state.withLock { state in
            guard !state.items.isEmpty, !state.isScheduled else { return false }
            state.isScheduled = true
            return true
        }
    }

    /// Callers do not wait for a full disk: the entries are committed, so they will be applied.
    private func giveUpWaiting(because error: any Error) {
        let waiting = state.withLock { state in
            state.isScheduled = false
            guard case .entries(let entries, let completions)? = state.items.first else { return [Completion]() }
            state.items[0] = .entries(entries, completions: [:])
            return completions.keys.sorted().compactMap { completions[$0] }
        }
        for completion in waiting {
            completion(.failure(.outcomeUnknown("committed, but the leader could not apply it yet: \(error)")))
        }
    }

    /// The first item, joined with the entries right behind it up to a transaction's number; nil when nothing waits.
    private func next() -> Item? {
        state.withLock { state in
            guard case .entries(var entries, var completions)? = state.items.first else {
                if state.items.isEmpty { state.isScheduled = false }
                return state.items.first
            }
            while state.items.count > 1, entries.count < settings.entriesPerTransactionMax,
                case .entries(let more, let moreCompletions) = state.items[1]
            {
                for (position, completion) in moreCompletions { completions[entries.count + position] = completion }
                entries += more
                state.items.removeFirst()
            }
            state.items[0] = .entries(entries, completions: completions)
            return state.items.first
        }
    }

    /// Applies entries, in as many transactions as it takes; where this build is too old for one, those before it.
    /// - Throws: `BuildTooOld` then.
    private func applyKnown(
        _ entries: [Entry], completions: [Int: Completion], report: (Progress) -> Void
    ) throws {
        // Without those who were answered.
        var (rest, waiting) = (entries, completions)
        var tooOld: BuildTooOld?
        while !rest.isEmpty {
            let known = rest.prefix { entry in tooOld.map { entry.index < $0.index } ?? true }
            if known.isEmpty, let tooOld { throw tooOld }
            let count: Int
            do {
                count = try settings.timers.apply.time {
                    try apply(oneTransaction(of: known), completions: &waiting)
                }
            } catch let error as BuildTooOld {
                machine.didRollBack()
                tooOld = error
                continue
            }
            report(.applied(rest[count - 1].position, installed: nil))
            rest.removeFirst(count)
            waiting = keep(rest, of: waiting, from: count)
        }
    }

    /// As many of the entries as one transaction may have, one at least.
    private func oneTransaction(of entries: ArraySlice<Entry>) -> [Entry] {
        var bytes = 0
        let fitting = entries.prefix(settings.entriesPerTransactionMax).prefix { entry in
            defer { bytes += entry.sizeBytes }
            return bytes == 0 || bytes + entry.sizeBytes <= settings.bytesPerTransactionMax
        }
        return Array(fitting)
    }

    /// The first item is what was not applied of it.
    /// - Returns: who waits for that.
    private func keep(
        _ entries: [Entry], of completions: [Int: Completion], from offset: Int
    ) -> [Int: Completion] {
        var rest: [Int: Completion] = [:]
        for (position, completion) in completions where position >= offset { rest[position - offset] = completion }
        precondition(rest.count == completions.count, "group \(group): who waits for an applied entry is not answered")
        state.withLock { state in
            guard case .entries? = state.items.first else { return }
            state.items[0] = .entries(entries, completions: rest)
        }
        return rest
    }

    /// Applies entries in one transaction, which ends early where it has changed too many rows.
    /// - Returns: how many were applied, one at least.
    private func apply(_ entries: [Entry], completions: inout [Int: Completion]) throws -> Int {
        try Self.check(entries, of: group)
        let (outcomes, level) = try database.write { db in
            // A transaction that failed while it was being ended may have been kept; and nothing may ever be left out.
            let position = try AppliedRow.position(of: db)
            let applied = position.index
            let known = entries.prefix { $0.index <= applied }.count
            var level = try AppliedRow.level(of: db)
            try checkFit(of: entries, known: known, after: position)
            guard known < entries.count else { return ([[UInt8]?](repeating: nil, count: known), level) }
            guard entries[known].index == applied.next else {
                throw StorageMismatch("group \(group): entry \(entries[known].index) does not follow \(applied)")
            }
            let before = level
            let outcomes = try self.outcomes(of: Array(entries[known...]), at: &level, in: db)
            try Invariant.check(
                !outcomes.isEmpty && outcomes.count <= entries.count - known,
                "group \(group): \(entries.count - known) entries came to \(outcomes.count) outcomes")
            try Invariant.check(level >= before, "group \(group): its level would go from \(before) back to \(level)")
            try AppliedRow.setPosition(entries[known + outcomes.count - 1].position, in: db)
            return ([[UInt8]?](repeating: nil, count: known) + outcomes, level)
        }
        state.withLock { $0.level = level }
        if state.withLock(\.isUnsure) { try readAgain() } else { machine.didCommit() }
        // In the order of the log, so that a simulated run repeats.
        for (position, outcome) in outcomes.enumerated() {
            let completion = completions.removeValue(forKey: position)
            completion?(outcome.map { .success($0) } ?? .failure(.outcomeUnknown("applied before")))
        }
        return outcomes.count
    }

    /// The log goes on from where the database stands, not from another leader's entries.
    /// - Parameter known: how many of the entries the database has.
    private func checkFit(of entries: [Entry], known: Int, after position: LogPosition) throws(InvariantViolation) {
        let last = known > 0 ? entries[known - 1] : nil
        try Invariant.check(
            last.map { $0.index < position.index || $0.term == position.term } ?? true,
            "group \(group): the database is at \(position), and the log has \(last?.position ?? .zero) there")
        try Invariant.check(
            known == entries.count || entries[known].term >= position.term,
            "group \(group): an entry of term \(entries.last?.term ?? .zero) would follow \(position)")
    }

    /// Entries come one after the other, of terms that only grow.
    private static func check(_ entries: [Entry], of group: GroupID) throws(InvariantViolation) {
        try Invariant.check(!entries.isEmpty, "group \(group): no entry is to be applied")
        for (before, entry) in zip(entries, entries.dropFirst()) {
            try Invariant.check(
                entry.index == before.index.next && entry.term >= before.term,
                "group \(group): entry \(entry.position) is to be applied after \(before.position)")
        }
    }

    /// Applies the entries within a transaction, until it has changed enough rows: commands of the machine that follow
    /// each other go to it together.
    private func outcomes(
        of entries: [Entry], at level: inout FeatureLevel, in db: Database
    ) throws -> [[UInt8]] {
        var outcomes: [[UInt8]] = []
        outcomes.reserveCapacity(entries.count)
        var commands: [[UInt8]] = []
        let changesMax = db.totalChangesCount + settings.rowsPerTransactionMax
        func flush() throws -> Bool {
            let count = outcomes.count + commands.count
            do {
                if !commands.isEmpty {
                    let results = try machine.apply(commands, at: level, in: db) { db.totalChangesCount < changesMax }
                    try Invariant.check(
                        !results.isEmpty && results.count <= commands.count,
                        "group \(group): \(commands.count) commands came to \(results.count) outcomes")
                    outcomes += results
                }
            } catch let unknown as UnknownCommand {
                throw tooOld(at: entries[outcomes.count + unknown.offset].index, "\(unknown.error)")
            }
            commands = []
            return outcomes.count == count && db.totalChangesCount < changesMax
        }
        for entry in entries {
            let command = try groupCommand(of: entry)
            switch command {
            case .machine(let bytes), .freeing(let bytes): commands.append(bytes)
            case .hashState, .scrub, .raise, nil:
                guard try flush() || outcomes.isEmpty else { return outcomes }
                outcomes.append(try outcome(of: command, entry, at: &level, in: db))
            }
        }
        _ = try flush()
        return outcomes
    }

    /// What an entry asks of the group; nil where it is no command, or one that is damaged, which every build sees.
    private func groupCommand(of entry: Entry) throws -> GroupCommand? {
        guard case .command(let bytes) = entry.payload else { return nil }
        do throws(WireError) {
            return try GroupCommand(decodingStrictly: bytes)
        } catch {
            if error.isOfNewerBuild { throw tooOld(at: entry.index, "\(error)") }
            return nil
        }
    }

    /// Applies an entry that concerns the group itself, not its machine.
    private func outcome(
        of command: GroupCommand?, _ entry: Entry, at level: inout FeatureLevel, in db: Database
    ) throws -> [UInt8] {
        if case .configuration(let configuration) = entry.payload {
            try AppliedRow.setConfiguration(configuration, in: db)
        }
        switch command {
        case .hashState: return try hashState(at: entry.index, in: db)
        case .scrub(let cursor): return try scrub(after: cursor, at: entry.index, in: db)
        case .raise(let next):
            guard next <= levels.supported.upperBound else { throw tooOld(at: entry.index, needs: next, "") }
            guard next > level else { return [] }
            try levels.record(next)
            try AppliedRow.setLevel(next, in: db)
            try machine.raise(from: level, to: next, in: db)
            level = next
            return []
        case .machine, .freeing, nil: return []
        }
    }

    private func tooOld(at index: LogIndex, needs level: FeatureLevel? = nil, _ detail: String) -> BuildTooOld {
        BuildTooOld(
            group: group, index: index, needs: level, supported: levels.supported.upperBound, detail: detail)
    }

    private func hashState(at index: LogIndex, in db: Database) throws -> [UInt8] {
        var hasher = SHA256()
        try machine.hashState(in: db) { hasher.update(bufferPointer: $0) }
        let hash = Array(hasher.finalize())
        try AppliedRow.record(hash: hash, at: index, in: db)
        return hash
    }

    private func scrub(after cursor: [UInt8], at index: LogIndex, in db: Database) throws -> [UInt8] {
        var hasher = SHA256()
        // Bytes that are no cursor are the same on every replica, and so is this outcome.
        let next: [UInt8]
        do {
            next = try TableWalk.fold(after: cursor, in: db) { hasher.update(bufferPointer: $0) }
        } catch is WireError {
            return []
        }
        let hash = Array(hasher.finalize())
        try AppliedRow.record(hash: hash, at: index, in: db)
        return ScrubOutcome(index: index, hash: hash, cursor: next).encoded()
    }

    /// Has the machine take over what the database has, after a transaction of which it is not known what was kept.
    private func readAgain() throws {
        try database.read { try machine.didReplace($0) }
        state.withLock { $0.isUnsure = false }
    }

    private func applyLogged(from: LogIndex, through: LogIndex, report: (Progress) -> Void) throws {
        let position = try database.read { try AppliedRow.position(of: $0) }
        var next = position.index.next
        precondition(next >= from, "group \(group): applied through \(next.previous), asked to go on from \(from)")
        if next > through {
            // The last transaction was kept, and told as failed.
            try readAgain()
            return report(.applied(position, installed: nil))
        }
        while next <= through {
            guard let entries = try log.entries(of: group, from: next, through: through, bytesMax: 4 << 20),
                let last = entries.last
            else {
                throw StorageMismatch(
                    "the log of group \(group) has no entry \(next), which is not in the database either")
            }
            try applyKnown(entries, completions: [:], report: report)
            next = last.index.next
        }
    }

    private func install(path: String, _ mark: SnapshotMark) throws {
        let old = database
        // The folder says so before the database is in its place.
        if FileManager.default.fileExists(atPath: path) { try levels.record(try SnapshotInstall.level(ofFileAt: path)) }
        let new = try SnapshotInstall.replaceDatabase(
            at: databasePath, by: path, mark: mark, old: old, options: databaseOptions, on: log.disk)
        state.withLock { $0.database = new }
        try new.write { try machine.upgradeTables(in: $0) }
        let level = try new.read { db in
            try machine.didReplace(db)
            return try AppliedRow.level(of: db)
        }
        state.withLock { $0.level = level }
    }
}

/// The log and a database do not fit together; the node must not go on with either.
package struct StorageMismatch: Error, CustomStringConvertible, Sendable {
    /// What does not fit, in words for the log and the status of the group.
    package var description: String
    init(_ description: String) { self.description = description }
}
