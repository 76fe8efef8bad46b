import Cluster
import GRDB
import Glibc
import PeerTransport
import RaftCore
import Storage

// One node of a cluster loses what it has, or comes back with something else. The others have everything that was
// acknowledged, so nothing may be lost, and the node must become whole again by itself.
extension Simulation {
    func schedule(_ loss: SimulationOptions.Loss, then second: SimulationOptions.Loss?) {
        let node = world.pick(Array(nodes.prefix(options.nodes)))
        let kept = "\(root)/kept"
        let total = options.seconds * 1_000
        if loss == .oldImage {
            world.schedule(after: world.milliseconds(total / 10...total / 4), .fault, for: nil) {
                node.keepImage(at: kept)
            }
        }
        let time = world.milliseconds(total * 3 / 10...total * 7 / 10)
        world.schedule(after: time, .fault, for: nil) { [unowned self] in
            if loss == .oldImage { return putBack(kept, at: node) }
            guard !isHealed, !node.isRetired else { return }
            lose(loss, at: node, kept: kept)
        }
        guard let second else { return }
        // The same node: two that lose what they have are more than is promised.
        world.schedule(after: time + world.milliseconds(5_000...90_000), .fault, for: nil) { [unowned self] in
            guard !isHealed, !node.isRetired, node.hasLostData else { return }
            world.met(.secondLoss)
            lose(second, at: node, kept: kept)
        }
    }

    /// An old image of the same start is told by what others remember that its node acknowledged, and that goes with
    /// their processes. An image and another failure at the same time are more than is promised (decision 0013, "What
    /// it cannot see"), so all the others are well: from long enough before to know, until they have told it.
    private func putBack(_ kept: String, at node: SimulatedNode) {
        guard !isHealed else { return }
        calmUntil = max(calmUntil, world.now + 100 * World.second)
        mend()
        if world.chance(80) { renewImage(kept, of: node) }
        world.schedule(after: 50 * World.second, .fault, for: nil) { [unowned self] in
            guard !isHealed, !node.isRetired else { return }
            // It starts within half a minute.
            let isKnown = node.running != nil && node.upSince + 20 * World.second < world.now
            let isOlder = node.imageLife < node.life
            lose(.oldImage, at: node, kept: kept)
            if isOlder, isKnown, node.hasLostData { requireFound(node) }
        }
    }

    /// Others know of a later start of the folder, also if they are started again meanwhile. So the node must be told
    /// that its image is an old one.
    private func requireFound(_ node: SimulatedNode) {
        node.hasOldImage = true
        if world.chance(50) {
            disturbed(for: 0)
            for other in nodes where other !== node && other.running != nil { other.stop { other.start() } }
        }
        world.schedule(after: 45 * World.second, .fault, for: nil) { [unowned self] in
            guard node.hasOldImage, !node.isRetired, node.running != nil else { return }
            guard node.upSince + 10 * World.second < world.now else { return }
            violated("node \(node.number) takes part with an old image of its folder, which others know of")
        }
    }

    /// A node that has opened its folder, and lacks what a leader knows that it acknowledged, has an old image. Where
    /// all others are well it is told so.
    func requireFound(_ node: SimulatedNode, _ opened: ClusterNode) {
        guard node.hasLostData, isCalm, let life = node.process?.life else { return }
        for group in groups {
            guard let own = opened.raft(of: group), let reign = raftWatch.reigns[group],
                let leader = nodes[Int(reign.leader.node.rawValue) - 1].witness(of: group)?.raft,
                leader.role == .leader, leader.term == reign.term, own.term <= reign.term,
                let known = leader.status.followers.first(where: { $0.id == own.id }),
                own.status.durableIndex < known.match
            else { continue }
            world.schedule(after: 15 * World.second, .fault, for: nil) { [unowned self] in
                guard isCalm, !isHealed, node.running != nil, node.process?.life == life,
                    let now = raftWatch.reigns[group], now == reign
                else { return }
                violated(
                    "node \(node.number) takes part without what it acknowledged up to \(known.match) in group \(group)"
                )
            }
        }
    }

    /// Takes the image while all is well, of the start that is lost later; or of the one before, of which nobody
    /// remembers more than how often the folder was started.
    private func renewImage(_ kept: String, of node: SimulatedNode) {
        let isOfEarlierStart = world.chance(50)
        world.schedule(after: 5 * World.second, .fault, for: nil) { [unowned self] in
            guard !isHealed, !node.isRetired, node.running != nil else { return }
            removeTree(kept)
            node.keepImage(at: kept)
            guard isOfEarlierStart else { return }
            let life = node.life
            node.stop { [self] in restartSoon(node) }
            world.schedule(after: 20 * World.second, .fault, for: nil) { [unowned self] in
                if !isHealed, node.life == life + 1 { stopAndForget(node) }
            }
        }
    }

    /// Ends a node that was started once since an image, and starts the others again, one after the other: what it
    /// acknowledged to them is forgotten.
    private func stopAndForget(_ node: SimulatedNode) {
        guard !node.isRetired, node.running != nil else { return }
        let life = node.life
        disturbed(for: 30 * World.second)
        node.stop { [self] in
            for (place, other) in nodes.filter({ $0 !== node && $0.running != nil }).enumerated() {
                world.schedule(after: UInt64(place * 4 + 1) * World.second, .fault, for: nil) { [self] in
                    if !isHealed { other.stop { [self] in restartSoon(other) } }
                }
            }
            world.schedule(after: 26 * World.second, .fault, for: nil) { [self] in
                guard node.isDown, node.life == life else { return }
                if !isHealed, node.hasLostData, !node.mayLeave { node.mustBeginAnew = "they are an old image" }
                node.start()
            }
        }
    }

    private func restartSoon(_ node: SimulatedNode) {
        disturbed(for: 10 * World.second)
        world.schedule(after: World.second, .process, for: nil) { node.start() }
    }

    private func lose(_ loss: SimulationOptions.Loss, at node: SimulatedNode, kept: String) {
        if loss == .rotten, !node.mayFail, node.running != nil, world.chance(50) { return spoilEnd(of: node) }
        let wasUp = !node.isDown
        if wasUp { node.crash(.power) }
        guard node.isDown else { return }
        switch loss {
        case .wiped: node.replaceData(by: nil)
        case .oldImage:
            guard access(kept, F_OK) == 0 else { return restartLater(node) }
            node.replaceData(by: kept)
        case .rotten:
            guard flipBit(inLogOf: node) else { return restartLater(node) }
        case .unreadable:
            guard spoilDatabase(of: node) else { return restartLater(node) }
        case .altered:
            guard alterDatabase(of: node) else { return restartLater(node) }
            hasAlteredValue = true
        }
        node.hasLostData = true
        count(loss.rawValue)
        world.note("LOSS node \(node.number): \(loss.rawValue)")
        if wasUp { restartLater(node) }
    }

    /// What its log does not show, as in a power failure, stays away; the file itself is no database.
    private func spoilDatabase(of node: SimulatedNode) -> Bool {
        guard let path = anyDatabase(of: node), let bytes = try? readWholeFile(at: path), bytes.count > 4_096,
            let file = try? DiskFile(path: path, flags: O_RDWR)
        else { return false }
        // The first page as such a disk would have it, and as the write-ahead log would not give it back.
        try? removeFile(at: path + "-wal")
        return (try? writeWhole([UInt8](repeating: 0xA5, count: 4_096), to: file)) != nil
    }

    /// A row that no client sees and no command removes, so that nothing but comparing replicas finds it.
    private func alterDatabase(of node: SimulatedNode) -> Bool {
        guard let path = anyDatabase(of: node), let database = try? DatabaseQueue(path: path) else { return false }
        defer { try? database.close() }
        return (try? database.write { try $0.execute(sql: "INSERT INTO user VALUES (1000000, 'altered')") }) != nil
    }

    func anyDatabase(of node: SimulatedNode) -> String? {
        let shards = "\(node.folder)/shards"
        let names = ((try? listFolder(at: shards)) ?? []).filter { $0.hasSuffix(".sqlite") }
        return names.isEmpty ? nil : "\(shards)/\(world.pick(names))"
    }

    /// Damages a log that was ended in order, when all of it is known to be durable.
    private func spoilEnd(of node: SimulatedNode) {
        calmUntil = max(calmUntil, world.now + 20 * World.second)
        node.beforeDiskCall = nil
        node.stop { [self] in
            restartLater(node)
            guard node.isDown, flipBit(inLogOf: node, atItsEnd: true) else { return }
            node.hasLostData = true
            if !node.mayFail { node.mustBeginAnew = "its log is damaged below what was durable" }
            count("rottenEnd")
            world.note("LOSS node \(node.number): the end of its log")
        }
    }

    /// Only below what the last segment's header vouches for: damage to the last batch before a crash looks like a torn
    /// write. After an orderly end the last record vouches for all before it.
    private func flipBit(inLogOf node: SimulatedNode, atItsEnd: Bool = false) -> Bool {
        let log = "\(node.folder)/log"
        let used = LogImage.used(in: log)
        guard let (name, bytes) = atItsEnd ? used.last : used.count > 1 ? used[0] : nil else { return false }
        // Within the records: the first of them begins behind the header.
        let last = atItsEnd ? LogImage.startOfLastRecord(in: bytes) - 1 : bytes.lastIndex { $0 != 0 } ?? 0
        guard last > 100 else { return false }
        var damaged = bytes
        damaged[world.random(64...(atItsEnd ? last : min(last, 4_000)))] ^= 1 << UInt8(world.random(0...7))
        guard let file = try? DiskFile(path: "\(log)/\(name)", flags: O_RDWR) else { return false }
        return (try? writeWhole(damaged, to: file)) != nil
    }
}
