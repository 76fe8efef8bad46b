import Directory
import GRDB
import RecordModel
import Testing
import Wire

/// The directory's tables in memory.
struct TestDirectory {
    private let database: DatabaseQueue

    init() throws {
        database = try DatabaseQueue()
        try database.write { try DirectoryTables.create(in: $0) }
    }

    /// Applies a command by way of its bytes, as the log carries it.
    @discardableResult
    func apply(_ command: DirectoryCommand) throws -> (outcome: DirectoryOutcome, change: DirectoryChange?) {
        let decoded = try DirectoryCommand(decoding: command.encoded())
        #expect(decoded == command)
        return try database.write { try DirectoryTables.apply(decoded, in: $0) }
    }

    /// The code with which a command is refused; nil if it was done.
    func refusal(of command: DirectoryCommand) throws -> String? {
        guard case .refused(let error) = try apply(command).outcome else { return nil }
        return error.code.rawValue
    }

    func snapshot() throws -> DirectorySnapshot { try database.read { try DirectoryTables.snapshot(of: $0) } }
}
