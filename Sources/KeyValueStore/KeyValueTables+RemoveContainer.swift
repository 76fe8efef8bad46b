import Foundation
package import GRDB
import RecordModel

extension KeyValueTables {
    /// Removes a part of a container's stores; repeated until nothing is left of them. A store that is made later has a
    /// greater incarnation than any that went.
    /// - Parameter rowsMax: rows that one part removes.
    /// - Returns: whether nothing is left.
    package static func removeContainer(_ container: String, rowsMax: Int = 500, in db: Database) throws -> Bool {
        let find = try db.cachedStatement(
            sql: "SELECT id, incarnation FROM kv_store WHERE container = ? ORDER BY environment, user LIMIT 1")
        var budget = rowsMax
        while let row = try Row.fetchOne(find, arguments: [blob(container)]) {
            let (id, incarnation): (Int64, Int64) = (row[0], row[1])
            for table in ["kv_pair", "kv_answer"] {
                let removal = try db.cachedStatement(
                    sql: "DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE store = ? LIMIT ?)")
                try removal.execute(arguments: [id, budget])
                budget -= db.changesCount
            }
            guard budget > 0 else { return false }
            budget -= 1
            let raise = try db.cachedStatement(sql: "UPDATE kv_shard SET incarnation = max(incarnation, ?)")
            try raise.execute(arguments: [incarnation + 1])
            let removal = try db.cachedStatement(sql: "DELETE FROM kv_store WHERE id = ?")
            try removal.execute(arguments: [id])
        }
        return true
    }
}
