import Cluster
import Directory
import RecordModel
import Service
import Wire

// Users with subscriptions are deleted, and nothing may be left of these.
extension Client {
    /// Makes the account of a watchbook's user.
    /// - Returns: whether it is known to be there.
    func makeUser(of book: Watchbook) async -> Bool {
        let account = Account(id: book.accountID, name: book.accountID, created: SimulatedClock.wallOrigin)
        return await settle([.createAccount(account)])
    }

    func deleteUser(of book: Watchbook) async {
        book.isUsed = false
        if await settle([.deleteAccount(name: book.accountID)]) { deletedUsers.append(book) }
    }

    /// Looks, once nothing goes wrong any more, whether anything of users who were deleted is left.
    func readBackDeletedUsers() async {
        var left = deletedUsers
        for _ in 0..<40 where !left.isEmpty {
            for node in nodes {
                _ = await ServerCall.make(to: node, as: UserSession("nobody"), recorder) { visit in
                    // Who is unknown is looked for twice.
                    _ = await visit.service.deletedSubscribers.forgetAll(in: visit.service)
                    return await visit.service.deletedSubscribers.forgetAll(in: visit.service)
                }
            }
            let answer = await ask(repeats: true, triesMax: 25) { visit throws(RequestFailure) in
                try await Self.subscribers(visit)
            }
            guard case .answered(let users, _) = answer else { continue }
            let found = Set(users)
            for book in left where !found.contains(book.user) { world.met(.forgottenUser) }
            left.removeAll { !found.contains($0.user) }
            if !left.isEmpty { await sleep(World.second) }
        }
        for book in left {
            recorder.violated("client \(number): \(book.accountID) was deleted, and is a subscriber still")
        }
    }

    private static func subscribers(_ visit: Visit) async throws(RequestFailure) -> [String] {
        let key = SchemaKey(container: Place.container, environment: .development)
        var users: [String] = []
        for group in visit.service.node.map.groups.dropFirst() {
            let answer = try await visit.service.cluster.read(
                .subscribers(.init(in: key, after: "", limit: 10_000)), from: group, by: visit.deadline)
            guard case .found(let found) = answer else { continue }
            do {
                users += try SubscriberPage(decoding: found.bytes).users
            } catch {
                throw RequestFailure(.internalError, "a page of subscribers cannot be read: \(error)")
            }
        }
        return users
    }
}
