import GRDB
import GRDBSQLite

/// Ends what a connection does once nobody wants it any more.
final class ReadCancellation {
    private let isWanted: () -> Bool

    /// How many steps of SQLite's virtual machine there are between two questions: some tens of microseconds.
    private static let steps: CInt = 1_000

    init(_ isWanted: @escaping () -> Bool) { self.isWanted = isWanted }

    /// Does something on a connection, of which SQLite ends the statement that is underway when it is not wanted any
    /// more.
    /// - Throws: `ShardDatabaseError.readEnded` for such a statement, and what `body` throws.
    func watch<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
        let connection = db.sqliteConnection
        // The connection calls back only until the handler is taken away again, and so long this value lives.
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_progress_handler(
            connection, Self.steps,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ReadCancellation>.fromOpaque(context).takeUnretainedValue().isWanted() ? 0 : 1
            }, context)
        defer { sqlite3_progress_handler(connection, 0, nil, nil) }
        do {
            return try withExtendedLifetime(self) { try body() }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            throw ShardDatabaseError.readEnded
        }
    }
}
