import Authorization
import GRDB

/// User record names by their numbers, remembered for the length of one transaction or read.
struct UserNameCache {
    /// The number that stands for an anonymous caller.
    static let anonymous: Int64 = 0
    private let rows: Rows
    private var names: [Int64: String] = [Self.anonymous: Caller.anonymousName]

    init(_ db: Database) { rows = Rows(db: db) }

    mutating func name(_ id: Int64) throws -> String {
        if let known = names[id] { return known }
        let name = try rows.userName(id) ?? Caller.anonymousName
        names[id] = name
        return name
    }

    mutating func remember(_ name: String, id: Int64) { names[id] = name }
}
