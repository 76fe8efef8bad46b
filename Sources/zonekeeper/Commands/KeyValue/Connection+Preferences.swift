import RecordModel
import ServiceClient

extension Connection {
    /// Everything the user's store holds, and what it comes to.
    func preferences() async throws -> (entries: [JSONValue], usage: JSONValue) {
        var entries: [JSONValue] = []
        var usage: JSONValue = .null
        var after: String?
        repeat {
            let page = try await send(
                try preferencesRequest("list", .members(["after": after.map { .string($0) }]))
            ).checked().json()
            entries += page["values"]?.array ?? []
            usage = page["usage"] ?? .null
            after = page["after"]?.string
        } while after != nil
        return (entries, usage)
    }

    /// The store's changes after a token, to the end.
    func preferenceChanges(since: String?) async throws -> (changes: [JSONValue], token: String?) {
        var changes: [JSONValue] = []
        var token = since
        var isMoreComing = true
        while isMoreComing {
            let page = try await send(
                try preferencesRequest("changes", .members(["syncToken": token.map { .string($0) }]))
            ).checked().json()
            changes += page["changes"]?.array ?? []
            token = page["syncToken"]?.string
            isMoreComing = page["moreComing"] == .bool(true)
        }
        return (changes, token)
    }
}
