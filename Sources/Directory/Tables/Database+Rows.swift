import Foundation
import GRDB
import RecordModel
import Wire

extension Database {
    /// The message in the only column of a constant query's first row; nil without rows.
    func message<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> Message? {
        try Data.fetchOne(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// The messages in the only column of a constant query's rows.
    func messages<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> [Message] {
        try Data.fetchAll(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// Whether a constant query has a row.
    func has(_ sql: String, _ arguments: StatementArguments = []) throws -> Bool {
        try Row.fetchOne(cachedStatement(sql: sql), arguments: arguments) != nil
    }

    /// Runs a constant statement that gives no rows.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Makes sure that the statement before changed the row that it was for, and no other.
    func checkOneRow(_ what: @autoclosure () -> String) throws(InvariantViolation) {
        try Invariant.check(changesCount == 1, "\(what()): \(changesCount) rows changed")
    }
}

extension Row {
    /// A stored environment.
    func environment(at column: Int) throws -> Environment {
        guard let environment = Environment(rawValue: try decode(atIndex: column)) else {
            throw WireError.invalidValue(field: column + 1)
        }
        return environment
    }

    /// A stored message.
    func message<Message: WireDecodable>(at column: Int) throws -> Message {
        let body: Data = try decode(atIndex: column)
        return try Message(decoding: [UInt8](body))
    }
}

extension WireEncodable {
    /// The binary form, as a row has it.
    var body: Data { Data(encoded()) }
}
