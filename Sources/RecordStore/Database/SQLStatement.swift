import GRDB
import GRDBSQLite

/// One prepared statement driven through SQLite's C calls.
///
/// Why not GRDB's rows and arguments: they cost a third of a save, and GRDB binds a String up to its first NUL, so that
/// two record names could become one. Text and bytes are bound with their length here. A statement is reset before each
/// run and must be run to its end or reset (`first`, `run` and `forEach` do), so that no cursor outlives a call.
struct SQLStatement {
    /// Keeps the prepared statement alive.
    private let owner: GRDB.Statement
    private let handle: OpaquePointer

    /// A statement from the connection's cache: for texts that are constants.
    init(cached sql: String, in db: GRDB.Database) throws {
        owner = try db.cachedStatement(sql: sql)
        handle = owner.sqliteStatement
    }

    /// Runs a statement that returns no rows.
    func run(_ values: SQLValue...) throws {
        bind(values)
        defer { sqlite3_reset(handle) }
        while try step() {}
    }

    /// The first row, mapped by `body`.
    func first<Result>(_ values: SQLValue..., body: (SQLRow) throws -> Result) throws -> Result? {
        bind(values)
        defer { sqlite3_reset(handle) }
        return try step() ? try body(SQLRow(handle: handle)) : nil
    }

    /// Calls `body` for each row until it returns false.
    func forEach(_ values: [SQLValue], body: (SQLRow) throws -> Bool) throws {
        bind(values)
        defer { sqlite3_reset(handle) }
        while try step() { if try !body(SQLRow(handle: handle)) { return } }
    }

    /// What `body` makes of each row.
    func all<Result>(_ values: SQLValue..., body: (SQLRow) throws -> Result) throws -> [Result] {
        var results: [Result] = []
        try forEach(values) { row in
            results.append(try body(row))
            return true
        }
        return results
    }

    private func bind(_ values: [SQLValue]) {
        sqlite3_reset(handle)
        precondition(Int(sqlite3_bind_parameter_count(handle)) == values.count, "arguments: \(values.count)")
        for (offset, value) in values.enumerated() {
            let code = value.bind(to: handle, at: CInt(offset + 1))
            precondition(code == SQLITE_OK || code == SQLITE_NOMEM || code == SQLITE_TOOBIG, "bind: \(code)")
        }
    }

    private func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let message = String(cString: sqlite3_errmsg(sqlite3_db_handle(handle)))
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: owner.sql)
        }
    }
}

/// A value for a placeholder.
enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    /// SQLite copies the bytes before the call returns.
    fileprivate func bind(to handle: OpaquePointer, at index: CInt) -> CInt {
        // The constant is a C macro that casts -1 to a function pointer, which Swift does not import.
        let copy = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch self {
        case .null: return sqlite3_bind_null(handle, index)
        case .integer(let number): return sqlite3_bind_int64(handle, index, number)
        case .text(var text):
            // No pointer would mean NULL.
            if text.isEmpty { return sqlite3_bind_text(handle, index, "", 0, copy) }
            return text.withUTF8 { utf8 in
                utf8.withMemoryRebound(to: CChar.self) { characters in
                    sqlite3_bind_text(handle, index, characters.baseAddress, CInt(characters.count), copy)
                }
            }
        case .blob(let bytes):
            if bytes.isEmpty { return sqlite3_bind_zeroblob(handle, index, 0) }
            return bytes.withUnsafeBytes { sqlite3_bind_blob(handle, index, $0.baseAddress, CInt($0.count), copy) }
        }
    }
}

/// The current row of a statement; valid inside the closure that it was given to.
struct SQLRow {
    fileprivate let handle: OpaquePointer

    var columnCount: Int32 { sqlite3_column_count(handle) }
    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    func isInteger(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_INTEGER }

    /// Text or bytes of a column, copied.
    func bytes(_ column: Int32) -> [UInt8] {
        let count = Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    func text(_ column: Int32) -> String {
        let count = Int(sqlite3_column_bytes(handle, column))
        guard count > 0, let start = sqlite3_column_blob(handle, column) else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
    }
}
