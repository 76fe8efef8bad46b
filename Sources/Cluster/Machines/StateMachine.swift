package import GRDB
import KeyValueStore
public import RaftCore
package import RecordModel
public import Wire

/// What a group replicates. Apply is a pure function of the database and the command: the same on every replica.
package protocol StateMachine: Sendable {
    /// Creates the tables in a new database.
    func createTables(in db: Database) throws
    /// Brings the tables of an earlier version to what `createTables` makes; does nothing where they are. Called before
    /// anything else once a database is opened or installed. What it makes must follow from the rows alone: replicas do
    /// it at different moments.
    func upgradeTables(in db: Database) throws
    /// Applies commands in order, within the open transaction, and returns the outcome of each that was applied,
    /// encoded: of one at least.
    /// - Parameters:
    ///   - level: in force for all of them.
    ///   - goesOn: asked between two commands; those after a no are left for another transaction.
    /// - Throws: what this replica's disk does wrong, and `UnknownCommand` for a command that only a newer build can
    ///   know whole; a bad command has an outcome that says so.
    func apply(
        _ commands: [[UInt8]], at level: FeatureLevel, in db: Database, while goesOn: () -> Bool
    ) throws -> [[UInt8]]
    /// What of a command only a newer build can know; nil where this one knows all of it, or where it is no command.
    func unknownPart(of command: [UInt8]) -> WireError?
    /// The feature level has risen, within the open transaction: commands that follow are applied at the new one.
    func raise(from old: FeatureLevel, to level: FeatureLevel, in db: Database) throws
    /// The transaction of the last applied commands is in the database.
    func didCommit()
    /// The transaction of the last applied commands failed. It was undone, and they will be applied again, or it was
    /// kept all the same; then `didReplace` follows in place of the next `didCommit`.
    func didRollBack()
    /// Everything in the database may have changed: after the start, after a snapshot was installed, and after a
    /// transaction that failed.
    func didReplace(_ db: Database) throws
    /// Answers a read, encoded. Runs on a reader connection.
    /// - Throws: `DirectoryBehind` where the answer needs more of the directory than this node has; what the disk does
    ///   wrong.
    func read(_ request: [UInt8], in db: Database) throws -> [UInt8]
    /// Folds every row into a hash, in a fixed order, so that replicas can be compared.
    func hashState(in db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws
    /// The command that does a bounded part of the waiting work, made at `now` (milliseconds since 1970); nil without
    /// work. Cheap: the group's leader calls it often.
    /// - Parameters:
    ///   - level: in force for it.
    ///   - random: its random parts; replicas must agree, so they are in the command.
    func maintenance(now: Int64, at level: FeatureLevel, random: () -> UInt64) -> [UInt8]?
    /// Looks for work that came to wait by time alone. Runs on a reader connection.
    func findWork(now: Int64, in db: Database) throws
    /// How many effects on other groups wait to be delivered.
    var waitingEffects: Int { get }
    /// How many changes wait to be matched with subscriptions.
    var waitingMatches: Int { get }
    /// Whether the next maintenance is not to wait for its time: somebody is late for each moment of it.
    var isUrgent: Bool { get }
}

/// What a read needs of the directory has not reached this node yet: learn it, then read again.
package struct DirectoryBehind: Error {
    /// What is answered where the node knows all that was acknowledged: what the answer lacks is lost.
    package var answer: [UInt8]
    /// What is answered where the directory cannot be asked now.
    package var refusal: [UInt8]
}

extension StateMachine {
    /// Does nothing: for a machine whose tables have one version.
    package func upgradeTables(in db: Database) throws {}

    /// The same of what a log entry would hold. Such an entry would stop this replica.
    func unknownPart(ofEntry encoded: [UInt8]) -> WireError? {
        do throws(WireError) {
            switch try GroupCommand(decodingStrictly: encoded) {
            case .machine(let command), .freeing(let command): return unknownPart(of: command)
            case .hashState, .scrub, .raise: return nil
            }
        } catch {
            return error.isOfNewerBuild ? error : nil
        }
    }

    /// What decoding strictly comes to.
    func unknownPart<Command: WireDecodable>(of bytes: [UInt8], as _: Command.Type) -> WireError? {
        do throws(WireError) {
            _ = try Command(decodingStrictly: bytes)
            return nil
        } catch {
            return error.isOfNewerBuild ? error : nil
        }
    }
    /// Nil: for a machine without work of its own.
    package func maintenance(now: Int64, at level: FeatureLevel, random: () -> UInt64) -> [UInt8]? { nil }

    /// Does nothing.
    package func raise(from old: FeatureLevel, to level: FeatureLevel, in db: Database) throws {}
    /// Does nothing.
    package func findWork(now: Int64, in db: Database) throws {}
    /// How many effects on other groups wait to be delivered.
    package var waitingEffects: Int { 0 }
    /// How many changes wait to be matched with subscriptions.
    package var waitingMatches: Int { 0 }
    /// Whether the next maintenance is not to wait for its time.
    package var isUrgent: Bool { false }
}

/// Tells damage of what is stored from requests that cannot be read.
enum StoredValues {
    /// Runs work whose every unreadable value comes from the database.
    /// - Throws: `StorageMismatch` for such a value; otherwise what the work throws.
    static func read<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as WireError {
            throw StorageMismatch("a stored value cannot be read: \(error)")
        } catch let error as KeyValueCorruption {
            throw StorageMismatch(error.message)
        }
    }
}

// The numbers that Raft counts by have the form of their raw values.
extension GroupID: WireValue {}
extension LogIndex: WireValue {}
extension ReplicaID: WireValue {}
extension Term: WireValue {}
