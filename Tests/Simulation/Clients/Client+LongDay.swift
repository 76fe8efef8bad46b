import Cluster
import KeyValueStore
import RaftCore
import RecordModel
import Service

// What a client does while all clocks are wrong by more than a day.
extension Client {
    private static let writers = 32

    /// Gives a shard so much to do that its time follows the clocks.
    func hasten(_ group: GroupID, commands: Int, until end: UInt64) async {
        guard let map = nodes.lazy.compactMap({ $0.running?.service.node.map }).first else { return }
        let stores = (0..<1_000).lazy.map { number in
            StoreKey(container: Place.container, environment: .development, user: "_busy\(number)")
        }
        guard
            let store = stores.first(where: {
                map.group(of: ZoneKey(database: $0.home, name: "_keyValueStore")) == group
            })
        else { return }
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<Self.writers {
                tasks.addTask { [self] in
                    var done = 0
                    while done < commands / Self.writers, world.now < end, !isEnding {
                        if await deleteNothing(of: store) { done += 1 } else { await sleep(World.second) }
                    }
                }
            }
        }
    }

    /// - Returns: whether the command is known to be done.
    private func deleteNothing(of store: StoreKey) async -> Bool {
        guard let node = nodes.filter({ $0.running != nil }).randomElement(using: &world.generator) else {
            return false
        }
        let answer = await ServerCall.make(to: node, as: UserSession("none"), recorder) {
            visit throws(RequestFailure) in
            try await Preferences(visit.service, store).set(
                [KeyValueCommand.Write(key: "none", value: nil)], idempotencyKey: nil, device: nil, by: visit.deadline)
        }
        if case .value = answer { return true }
        return false
    }
}
