import Crypto
import RecordModel
import Synchronization

/// Finds accounts by their user record names. A name is a hash that differs by container, so looking one up backwards
/// needs an index of the container, which is built when it is first needed and kept while there is room.
struct UserNames: Sendable {
    /// Every account's id in the order in which they were made; removed ones stay until `compact`. Copies of one value
    /// differ only in how far they reach, so that they share the indexes.
    private var accountIDs: [String] = []
    private var indexes = SharedIndexes()

    mutating func add(accountID: String) { accountIDs.append(accountID) }

    /// Begins anew with the ids that there are, if too many are of accounts removed.
    mutating func compact(ifAbove count: Int, _ remaining: () -> [String]) {
        guard accountIDs.count > count else { return }
        accountIDs = remaining()
        indexes = SharedIndexes()
    }

    /// The id of the account with a name; it may have been removed.
    func accountID(of name: String, in container: String) -> String? {
        for position in indexes.positions(of: name, in: container, accountIDs)
        where position < accountIDs.count
            && Account.userRecordName(accountID: accountIDs[position], container: container) == name
        {
            return accountIDs[position]
        }
        return nil
    }
}

/// The indexes of the containers that were asked about last.
private final class SharedIndexes: Sendable {
    /// One container's: where in the list of ids a name is, by a hash of the name.
    private struct Index {
        /// Positions by the hash's first eight digits' value; two of one hash are both kept.
        var positions: [UInt64: Int32] = [:]
        var collisions: [Int32] = []
        /// How many ids of the list are in it.
        var count = 0
        var lastUse: UInt64 = 0
    }

    private struct State {
        var indexes: [Bytewise: Index] = [:]
        var uses: UInt64 = 0
    }

    /// Entries of all indexes together: about 24 MB. A single index may be larger, then it is the only one.
    private static let entriesMax = 1_000_000

    private let state = Mutex(State())

    /// The positions at which the account may be.
    func positions(of name: String, in container: String, _ accountIDs: [String]) -> [Int] {
        guard let hash = Self.hash(name) else { return [] }
        return state.withLock { state in
            var index = state.indexes.removeValue(forKey: Bytewise(container)) ?? Index()
            while index.count < accountIDs.count {
                let name = Account.userRecordName(accountID: accountIDs[index.count], container: container)
                guard let hash = Self.hash(name) else { preconditionFailure("'\(name)' is no user record name") }
                if index.positions[hash] == nil {
                    index.positions[hash] = Int32(index.count)
                } else {
                    index.collisions.append(Int32(index.count))
                }
                index.count += 1
            }
            state.uses += 1
            index.lastUse = state.uses
            while state.indexes.values.reduce(index.count, { $0 + $1.count }) > Self.entriesMax,
                let oldest = state.indexes.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.indexes[oldest.key] = nil
            }
            let found = ([index.positions[hash]].compactMap(\.self) + index.collisions).map(Int.init)
            state.indexes[Bytewise(container)] = index
            return found
        }
    }

    /// The first half of the 32 digits of a user record name; nil for any other text.
    private static func hash(_ name: String) -> UInt64? {
        guard name.utf8.count == 33, name.utf8.first == UInt8(ascii: "_") else { return nil }
        return UInt64(name.dropFirst().prefix(16), radix: 16)
    }
}
