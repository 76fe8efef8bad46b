import Cluster
import RaftCore
import RecordModel
import RecordStore
import Service
import Wire

// What quotas must come to once nothing goes wrong any more.
extension Client {
    /// Fills a database to its last record, shard after shard, gives room back and fills it again elsewhere. What
    /// shards may hold is what the ledger has given them.
    func readBackHoard() async {
        guard hoard.isMade else { return }
        await judgeLedger()
        for _ in 0..<2 where hoard.isMade {
            await emptyHoard(to: 2)
            await fillHoard()
            await judgeLedger()
        }
    }

    /// Deletes records in some order until so many are left.
    private func emptyHoard(to count: Int) async {
        let left = Set(hoard.stored.sorted().shuffled(using: &world.generator).prefix(count))
        for zone in Hoard.zones where hoard.isMade {
            let names = (0..<12).map { "h\($0)" }.filter { !left.contains("\(zone)/\($0)") }
            await modifyHoard(isDeletion: true, zone: zone, names: names)
        }
    }

    /// Adds a few records at a time in each zone by turns until there is no room for one.
    private func fillHoard() async {
        for zone in Hoard.zones.shuffled(using: &world.generator) {
            for step in [3, 1] {
                var isFull = false
                while hoard.isMade, !isFull {
                    let before = hoard.stored.count
                    let free = (0..<12).map { "h\($0)" }.filter { !hoard.stored.contains("\(zone)/\($0)") }
                    guard !free.isEmpty else { break }
                    await modifyHoard(isDeletion: false, zone: zone, names: Array(free.prefix(step)))
                    // A zone is left with room for others, but by the last one.
                    isFull = hoard.stored.count == before || step == 3 && world.chance(40)
                }
            }
        }
    }

    /// What shards have of the quota, and what of it they use, against what the ledger gave and the client stored.
    func judgeLedger() async {
        let database = hoard.database
        let answer = await ask(repeats: true) { visit throws(RequestFailure) in
            let ledger = try await visit.service.quotas.ledger(of: database, by: visit.deadline)
            var shards: [UInt64: DatabaseUsage] = [:]
            for group in visit.service.cluster.groups(of: database) {
                let answer = try await visit.service.cluster.read(
                    .usage(UsageRequest(of: database)), from: group, by: visit.deadline)
                guard case .found(let found) = answer, let page = try? UsagePage(decoding: found.bytes) else {
                    throw RequestFailure(.internalError, "a page of usage cannot be read")
                }
                shards[group.rawValue] = page.databases.first
            }
            return (ledger, shards)
        }
        guard case .answered(let (ledger, shards), _) = answer else {
            return recorder.violated("client \(number): the quota of \(hoard.user) cannot be read")
        }
        var used: Int64 = 0
        for (shard, usage) in shards.sorted(by: { $0.key < $1.key }) {
            used += usage.used.records
            let share = ledger.shares.first { $0.shard == shard }
            let given = share.map { $0.granted - $0.returned } ?? .zero
            let names = "shard \(shard) of \(hoard.user)"
            if !usage.allotted.fits(in: given) {
                recorder.violated("\(names) may hold \(usage.allotted), and was given \(given)")
            }
            if usage.used.records > usage.allotted.records {
                recorder.violated("\(names) holds \(usage.used), and may hold \(usage.allotted)")
            }
        }
        if used != hoard.stored.count {
            recorder.violated("\(hoard.user) has \(used) records by its usage instead of \(hoard.stored.count)")
        }
        world.met(.judgedLedger)
    }
}
