import Cluster
import GRDB
import Storage

/// A read of a database that takes long: as long as it goes on, checkpoints cannot move what was committed since.
final class LongRead: @unchecked Sendable {
    // Touched on the simulation's thread only.
    private let database: DatabaseQueue

    /// Begins a read of a database that a process has open; nil where it cannot be read.
    init?(of path: String) {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        configuration.allowsUnsafeTransactions = true
        guard let database = try? DatabaseQueue(path: path, configuration: configuration) else { return nil }
        self.database = database
        do {
            try database.inDatabase { db in
                try db.execute(sql: "BEGIN")
                _ = try Row.fetchOne(db, sql: "SELECT count(*) FROM meta")
            }
        } catch {
            try? database.close()
            return nil
        }
    }

    func end() {
        try? database.inDatabase { try $0.execute(sql: "ROLLBACK") }
        try? database.close()
    }
}

// Reads go on while databases are checkpointed and exchanged.
extension Simulation {
    /// Has a shard of a node be read for a while, now and then.
    func scheduleLongReads() {
        world.schedule(after: world.milliseconds(2_000...12_000), .fault, for: nil) { [unowned self] in
            guard !isHealed else { return }
            readForLong()
            scheduleLongReads()
        }
    }

    private func readForLong() {
        let present = nodes.filter { $0.running != nil }
        guard !present.isEmpty else { return }
        let node = world.pick(present)
        if let path = anyDatabase(of: node) { readForLong(path, of: node) }
    }

    /// Has the database be read that is about to give way to a snapshot.
    /// - Parameter words: what the node says of it.
    func readAsSnapshotComes(to node: SimulatedNode, _ words: String) {
        guard !isHealed, world.chance(50), let shard = groups.first(where: { words.hasPrefix("group \($0):") })?.shard,
            let name = try? listFolder(at: "\(node.folder)/shards").first(where: {
                Int($0.prefix { $0 != "." }) == shard
            })
        else { return }
        readForLong("\(node.folder)/shards/\(name.prefix { $0 != "." }).sqlite", of: node)
    }

    private func readForLong(_ path: String, of node: SimulatedNode) {
        guard let process = node.process, let read = LongRead(of: path) else { return }
        world.note("a long read of \(path)")
        let watch = process.onDeath { read.end() }
        let length = world.milliseconds(3_000...15_000)
        // What checkpoints could not move is lost with the power.
        let losesPower = options.faults.contains(.power) && !isCalm && world.chance(15)
        world.schedule(after: length, .fault, for: nil) { [unowned self] in
            guard !process.isDead else { return }
            if losesPower, !isHealed, !isCalm { return crash(node, .power) }
            process.forgetWatch(watch)
            read.end()
        }
    }
}
