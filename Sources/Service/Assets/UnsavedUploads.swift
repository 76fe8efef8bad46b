import Cluster
import Directory
import RecordModel
import Synchronization

/// What users have uploaded and no record has: so that nobody fills disks with files that nothing counts.
///
/// Nodes tell each other of whole files. Of what is under way each knows its own. It is in memory, and forgotten at a
/// restart; the files themselves go a day after the upload, unless a record has them.
package final class UnsavedUploads: Sendable {
    /// Whose uploads they are; all anonymous callers of a container are one.
    struct Owner: Hashable, Sendable {
        var container: String
        var user: String
    }

    private struct Account {
        /// Uploads that are under way.
        var open = 0
        /// Bytes of those, and of the files that are done.
        var bytes: Int64 = 0
        /// When each file ceases to count, in milliseconds since 1970.
        var files: [AssetReference: Int64] = [:]

        mutating func remove(_ asset: AssetReference) {
            guard files.removeValue(forKey: asset) != nil else { return }
            bytes -= UnsavedUploads.counted(asset.size)
        }
    }

    private struct State {
        var accounts: [Owner: Account] = [:]
        /// Uploads that are under way, by container, and all of them.
        var open: [String: Int] = [:]
        var openInAll = 0

        mutating func account(of owner: Owner) -> Account {
            if let account = accounts[owner] { return account }
            if accounts.count >= UnsavedUploads.ownersMax { accounts = accounts.filter { $0.value.open > 0 } }
            return Account()
        }

        mutating func change(_ owner: Owner, _ body: (inout Account) -> Void) {
            var account = account(of: owner)
            body(&account)
            accounts[owner] = account.open == 0 && account.files.isEmpty ? nil : account
        }
    }

    /// Uploads that may be under way at once on this node.
    private let openMax: Int
    /// Uploads of one container that may be under way at once: half of what the node takes, and less while others have
    /// much (`mayTake`).
    package let containerOpenMax: Int
    /// Uploads of one user that may be under way at once: half of those of a container, and less while its other users
    /// have much.
    package let userOpenMax: Int
    /// Users whose uploads are counted; beyond them the counts start over.
    private static let ownersMax = 100_000
    /// What the smallest file counts for: files cost more than their bytes.
    package static let bytesMin: Int64 = 65_536

    private let state = Mutex(State())

    /// - Parameter uploadsMax: uploads that the node takes at once.
    init(uploadsMax: Int) {
        openMax = uploadsMax
        containerOpenMax = max(1, uploadsMax / 2)
        userOpenMax = max(1, containerOpenMax / 2)
    }

    /// Whether one of several that share places may take another: up to half of them, up to a quarter once half is
    /// taken, and of the last eighth only its first one.
    private static func mayTake(another own: Int, of placesMax: Int, taken: Int) -> Bool {
        if own == 0 { return taken < placesMax }
        if taken >= placesMax - placesMax / 8 { return false }
        return own < placesMax / (taken >= placesMax / 2 ? 4 : 2)
    }

    private static func counted(_ size: UInt64) -> Int64 { max(Int64(clamping: size), bytesMin) }

    /// Begins an upload; `end` must follow.
    /// - Parameter limit: the most bytes that may be unsaved.
    /// - Throws: `THROTTLED` where the user or the container has too many under way, `QUOTA_EXCEEDED` where too much is
    ///   not saved.
    func begin(_ owner: Owner, limit: Int64, now: Int64) throws(RequestFailure) {
        try state.withLock { state throws(RequestFailure) in
            var account = state.account(of: owner)
            for (asset, expires) in account.files where expires <= now { account.remove(asset) }
            defer { state.accounts[owner] = account }
            let open = state.open[owner.container] ?? 0
            guard Self.mayTake(another: account.open, of: containerOpenMax, taken: open) else {
                throw open < containerOpenMax
                    ? Self.tooMany(account.open, of: "user") : Self.tooMany(open, of: "container")
            }
            guard Self.mayTake(another: open, of: openMax, taken: state.openInAll) else {
                throw Self.tooMany(open, of: "container")
            }
            if account.bytes + Self.bytesMin > limit { throw Self.tooMuch(limit) }
            state.open[owner.container] = open + 1
            state.openInAll += 1
            account.open += 1
            account.bytes += Self.bytesMin
        }
    }

    /// What a user has under way on this node, or has sent to any node and saved in no record.
    /// - Returns: its bytes, and how many uploads are under way here.
    package func use(of user: String, in container: String, now: Int64) -> (bytes: Int64, open: Int) {
        state.withLock { state in
            guard let account = state.accounts[Owner(container: container, user: user)] else { return (0, 0) }
            let expired = account.files.filter { $0.value <= now }.keys
            return (account.bytes - expired.reduce(0) { $0 + Self.counted($1.size) }, account.open)
        }
    }

    /// Uploads of a container that are under way on this node.
    package func open(in container: String) -> Int { state.withLock { $0.open[container] ?? 0 } }

    /// Counts bytes of an upload as they arrive.
    /// - Parameter size: its bytes with these.
    /// - Throws: `QUOTA_EXCEEDED` where too much would be unsaved.
    func grow(_ owner: Owner, by bytes: Int, to size: UInt64, limit: Int64) throws(RequestFailure) {
        let growth = Self.counted(size) - Self.counted(size - UInt64(bytes))
        try state.withLock { state throws(RequestFailure) in
            guard (state.accounts[owner]?.bytes ?? 0) + growth <= limit else { throw Self.tooMuch(limit) }
            state.accounts[owner]?.bytes += growth
        }
    }

    func end(_ owner: Owner, size: UInt64) {
        state.withLock { state in
            let open = (state.open[owner.container] ?? 0) - 1
            state.open[owner.container] = open > 0 ? open : nil
            state.openInAll -= 1
            state.change(owner) { account in
                account.open = max(account.open - 1, 0)
                account.bytes -= Self.counted(size)
            }
        }
    }

    /// Files came to a node, or records have them now.
    func heard(_ news: SavedAssets) {
        state.withLock { state in
            state.change(Owner(container: news.container, user: news.user)) { account in
                for asset in news.assets {
                    account.remove(asset)
                    guard let time = news.unsavedUntil else { continue }
                    account.files[asset] = time
                    account.bytes += Self.counted(asset.size)
                }
            }
        }
    }

    private static func tooMany(_ open: Int, of whom: String) -> RequestFailure {
        RequestFailure(
            ServiceError(
                .throttled,
                "\(open) uploads of this \(whom) are under way on this node, which are as many as may be beside others: "
                    + "wait for one to end",
                retryAfterSeconds: 1))
    }

    private static func tooMuch(_ limit: Int64) -> RequestFailure {
        RequestFailure(
            .quotaExceeded,
            "this user's uploads that no record has would come to more than "
                + "\(ContainerLimit.unsavedAssetBytes.rawValue), which is \(limit) bytes: save records with them, or wait a day"
        )
    }
}
