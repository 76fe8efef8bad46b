import KeyValueStore
import Wire

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
