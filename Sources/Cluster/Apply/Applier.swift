import Crypto
import DequeModule
import GRDB
import Logging
package import RaftCore
import Storage
import Synchronization
import Wire

/// Why a group did not do what it was asked.
package enum ReplicaError: Error, Hashable, Sendable {
    /// This node does not lead the group; nothing was appended.
    case notLeader(hint: ReplicaID?)
    /// The leader has as much waiting as it may; nothing was appended.
    case overloaded
    /// The leader's disk has no space; nothing was appended.
    case diskFull
    /// The leader cannot do its work at the moment; nothing was appended.
    case unavailable(String)
    /// Another leader's entry took the place of this one, so it will never be applied.
    case superseded
    /// The node is stopping, or lost track: the command may or may not be applied.
    case outcomeUnknown(String)
    /// The read was not done in time, or nobody wants it any more.
    case readEnded
    /// The read failed on this node's disk.
    case failed(String)
    /// The request or its answer is larger than nodes take.
    case tooLarge(Oversize)
}

/// What is called, once, with the encoded outcome of a command or a read.
package typealias Completion = @Sendable (Result<[UInt8], ReplicaError>) -> Void

extension ReplicaError {
    init(_ error: ProposalError) {
        switch error {
        case .notLeader(let hint): self = .notLeader(hint: hint)
        case .overloaded: self = .overloaded
        }
    }
}

/// Applies one group's committed entries to its database, in order, many to a transaction. The queue is filled by the lane and
/// drained by one worker thread at a time.
package final class Applier: Sendable {
    enum Item: Sendable {
        /// Entries in hand, with what is to be told of their outcomes by position in the array.
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
        /// Why the first item could not be applied, as it was said.
        var failure: String?
        /// Whether a transaction that failed may have been kept, so that the machine does not know what the database holds.
        var isUnsure = false
    }

    let group: GroupID
    let machine: any StateMachine
    private let state: Mutex<State>
    private let databasePath: String
    private let databaseOptions: ShardDatabaseOptions
    private let log: RaftLog
    private let settings: ApplySettings
    private let logger: Logger

    init(
        group: GroupID, machine: any StateMachine, database: ShardDatabase, path: String, options: ShardDatabaseOptions,
        log: RaftLog, settings: ApplySettings, logger: Logger
    ) {
        self.group = group
        self.machine = machine
        self.log = log
        self.settings = settings
        self.logger = logger
        databasePath = path
        databaseOptions = options
        state = Mutex(State(database: database))
    }

    /// The database as it is now; a snapshot may put another in its place.
    var database: ShardDatabase { state.withLock(\.database) }

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
        /// The disk failed; the same items wait for another try.
        case failed(any Error)
    }

    /// Applies what waits, one transaction after another, and reports each. Called on the worker thread only.
    func drain(report: (Progress) -> Void) {
        while let item = next() {
            do {
                switch item {
                case .entries(let entries, let completions):
                    try apply(entries, completions: completions)
                    report(.applied(entries[entries.count - 1].position, installed: nil))
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
                sayOnce(error)
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
    private func sayOnce(_ error: any Error) {
        let text = "\(error)"
        let isNew = state.withLock { state in
            defer { state.failure = text }
            return state.failure != text
        }
        if isNew { logger.error("group \(group): applying failed, and is tried again until it succeeds: \(text)") }
    }

    /// Whether something waits that no worker has; then the caller schedules the applier.
    func reschedule() -> Bool {
        state.withLock { state in
            guard !state.items.isEmpty, !state.isScheduled else { return false }
            state.isScheduled = true
            return true
        }
    }

    /// Those who wait for outcomes are not kept waiting for the disk. The entries are committed, so they will be applied.
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

    /// The first item, joined with the entries right behind it up to a transaction's size; nil when nothing waits.
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

    private func apply(_ entries: [Entry], completions: [Int: Completion]) throws {
        let outcomes = try database.write { db in
            // A transaction that failed while it was being ended may have been kept; and nothing may ever be left out.
            let applied = try AppliedState.position(of: db).index
            let known = entries.prefix { $0.index <= applied }.count
            guard known < entries.count else { return [[UInt8]?](repeating: nil, count: known) }
            guard entries[known].index == applied.next else {
                throw StorageMismatch("group \(group): entry \(entries[known].index) does not follow \(applied)")
            }
            try AppliedState.setPosition(entries[entries.count - 1].position, in: db)
            return [[UInt8]?](repeating: nil, count: known) + (try self.outcomes(of: Array(entries[known...]), in: db))
        }
        if state.withLock(\.isUnsure) {
            try database.read { try machine.didReplace($0) }
            state.withLock { $0.isUnsure = false }
        } else {
            machine.didCommit()
        }
        // In the order of the log, so that a simulated run repeats.
        for (position, outcome) in outcomes.enumerated() {
            completions[position]?(outcome.map { .success($0) } ?? .failure(.outcomeUnknown("applied before")))
        }
    }

    /// Applies the entries within a transaction: commands of the machine that follow each other go to it together.
    private func outcomes(of entries: [Entry], in db: Database) throws -> [[UInt8]] {
        var outcomes: [[UInt8]] = []
        outcomes.reserveCapacity(entries.count)
        var commands: [[UInt8]] = []
        func flush() throws {
            if !commands.isEmpty { outcomes += try machine.apply(commands, in: db) }
            commands = []
        }
        for entry in entries {
            if let command = machineCommand(of: entry) {
                commands.append(command)
                continue
            }
            try flush()
            outcomes.append(try outcome(ofGroup: entry, in: db))
        }
        try flush()
        return outcomes
    }

    private func machineCommand(of entry: Entry) -> [UInt8]? {
        guard case .command(let bytes) = entry.payload else { return nil }
        switch try? GroupCommand(decoding: bytes) {
        case .machine(let command), .freeing(let command): return command
        case .hashState, .scrub, nil: return nil
        }
    }

    /// Applies an entry that concerns the group itself, not its machine.
    private func outcome(ofGroup entry: Entry, in db: Database) throws -> [UInt8] {
        switch entry.payload {
        case .configuration(let configuration): try AppliedState.setConfiguration(configuration, in: db)
        case .command(let bytes):
            switch try? GroupCommand(decoding: bytes) {
            case .hashState: return try hashState(at: entry.index, in: db)
            case .scrub(let cursor): return try scrub(after: cursor, at: entry.index, in: db)
            case .machine, .freeing, nil: break
            }
        case .empty: break
        }
        return []
    }

    private func hashState(at index: LogIndex, in db: Database) throws -> [UInt8] {
        var hasher = SHA256()
        try machine.hashState(in: db) { hasher.update(bufferPointer: $0) }
        let hash = Array(hasher.finalize())
        try AppliedState.record(hash: hash, at: index, in: db)
        return hash
    }

    private func scrub(after cursor: [UInt8], at index: LogIndex, in db: Database) throws -> [UInt8] {
        var hasher = SHA256()
        // A cursor that is none is the same on every replica, and so is the end that it comes to.
        let next: [UInt8]
        do {
            next = try TableWalk.fold(after: cursor, in: db) { hasher.update(bufferPointer: $0) }
        } catch is WireError {
            return []
        }
        let hash = Array(hasher.finalize())
        try AppliedState.record(hash: hash, at: index, in: db)
        return ScrubOutcome(index: index, hash: hash, cursor: next).encoded()
    }

    private func applyLogged(from: LogIndex, through: LogIndex, report: (Progress) -> Void) throws {
        var next = try database.read { try AppliedState.position(of: $0).index.next }
        precondition(next >= from, "group \(group): applied through \(next.previous), asked to go on from \(from)")
        while next <= through {
            guard let entries = try log.entries(of: group, from: next, through: through, bytesMax: 4 << 20),
                let last = entries.last
            else {
                throw StorageMismatch(
                    "the log of group \(group) has no entry \(next), which is not in the database either")
            }
            try apply(entries, completions: [:])
            report(.applied(last.position, installed: nil))
            next = last.index.next
        }
    }

    private func install(path: String, _ mark: SnapshotMark) throws {
        let old = database
        let new = try SnapshotInstall.replaceDatabase(
            at: databasePath, by: path, mark: mark, old: old, options: databaseOptions)
        state.withLock { $0.database = new }
        try new.write { try machine.upgradeTables(in: $0) }
        try new.read { try machine.didReplace($0) }
    }
}

/// The log and a database do not fit together; the node must not go on with either.
package struct StorageMismatch: Error, CustomStringConvertible, Sendable {
    package var description: String
    init(_ description: String) { self.description = description }
}
