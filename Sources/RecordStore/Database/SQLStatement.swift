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
    func run(_ values: any SQLValue...) throws { try forEach(values) { _ in true } }

    /// The first row, mapped by `body`.
    func first<Result>(_ values: [any SQLValue], body: (SQLRow) throws -> Result) throws -> Result? {
        var result: Result?
        try forEach(values) { row in
            result = try body(row)
            return false
        }
        return result
    }

    /// Calls `body` for each row until it returns false.
    func forEach(_ values: [any SQLValue], body: (SQLRow) throws -> Bool) throws {
        bind(values)
        defer { sqlite3_reset(handle) }
        while try step() { if try !body(SQLRow(handle: handle)) { return } }
    }

    private func bind(_ values: [any SQLValue]) {
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

/// Statements of constant texts, from the connection's cache.
extension GRDB.Database {
    /// Runs a statement that returns no rows.
    func run(_ sql: String, _ values: any SQLValue...) throws { try forEach(sql, values: values) { _ in true } }

    /// The first row, mapped by `body`.
    func first<Result>(_ sql: String, _ values: any SQLValue..., body: (SQLRow) throws -> Result) throws -> Result? {
        try SQLStatement(cached: sql, in: self).first(values, body: body)
    }

    /// What `body` makes of each row.
    func all<Result>(_ sql: String, _ values: any SQLValue..., body: (SQLRow) throws -> Result) throws -> [Result] {
        var results: [Result] = []
        try forEach(sql, values: values) { row in
            results.append(try body(row))
            return true
        }
        return results
    }

    /// Calls `body` for each row until it returns false.
    func forEach(_ sql: String, _ values: any SQLValue..., body: (SQLRow) throws -> Bool) throws {
        try forEach(sql, values: values, body: body)
    }

    /// Calls `body` for each row until it returns false.
    func forEach(_ sql: String, values: [any SQLValue], body: (SQLRow) throws -> Bool) throws {
        try SQLStatement(cached: sql, in: self).forEach(values, body: body)
    }
}

/// A value for a placeholder. An integer is kept as 64 bits, an unsigned one with the same bits, and nil as NULL.
protocol SQLValue {
    /// SQLite copies the bytes before the call returns.
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt
}

extension Int64: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt { sqlite3_bind_int64(handle, index, self) }
}

extension UInt64: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt { Int64(bitPattern: self).bind(to: handle, at: index) }
}

extension Int: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt { Int64(self).bind(to: handle, at: index) }
}

extension String: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt {
        // No pointer would mean NULL.
        if isEmpty { return sqlite3_bind_text(handle, index, "", 0, copiedBySQLite) }
        var text = self
        return text.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { characters in
                sqlite3_bind_text(handle, index, characters.baseAddress, CInt(characters.count), copiedBySQLite)
            }
        }
    }
}

extension [UInt8]: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt {
        if isEmpty { return sqlite3_bind_zeroblob(handle, index, 0) }
        return withUnsafeBytes { sqlite3_bind_blob(handle, index, $0.baseAddress, CInt($0.count), copiedBySQLite) }
    }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    func bind(to handle: OpaquePointer, at index: CInt) -> CInt {
        self?.bind(to: handle, at: index) ?? sqlite3_bind_null(handle, index)
    }
}

/// The constant is a C macro that casts -1 to a function pointer, which Swift does not import.
private var copiedBySQLite: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

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
