import Cluster
import Directory
import RaftCore
import RecordModel

// Nodes of several builds, and clocks that all jump at once.
extension Simulation {
    /// Has the first nodes run a build of the first feature level, and the present one after a while, each by itself.
    func scheduleUpgrade() {
        // Nodes that join may have the former build, too, though the cluster is beyond it.
        let joining = nodes.dropFirst(options.nodes).filter {
            $0.number == options.nodes + 1 || world.chance(50)
        }
        for node in nodes.prefix(options.nodes) + joining {
            node.levels = FeatureLevel.first...FeatureLevel.first
            if joining.contains(where: { $0 === node }) { joinLate(node) }
            let share = UInt64(world.random(20...80))
            world.schedule(after: options.seconds * World.second / 100 * share, .fault, for: nil) { [unowned self] in
                if node.isEnlisted { upgrade(node) }
            }
        }
        // Shards whose time lags behind are where the levels differ.
        for _ in 0..<4 {
            let share = UInt64(world.random(10...95))
            world.schedule(after: options.seconds * World.second / 100 * share, .fault, for: nil) { [unowned self] in
                setAllClocks(ahead: 2 * 3_600_000)
            }
        }
    }

    /// Has a node of the former build ask to join once the others may be beyond it, unless it has joined before.
    private func joinLate(_ node: SimulatedNode) {
        world.schedule(after: options.seconds * World.second / 100 * 84, .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm, !node.isEnlisted, manager.hasEnded else { return }
            count("add")
            node.start()
            change(.addNode(Self.member(UInt64(node.number))))
        }
        world.schedule(after: options.seconds * World.second / 100 * 92, .fault, for: nil) { [unowned self] in
            if node.levels == FeatureLevel.first...FeatureLevel.first { upgrade(node) }
        }
    }

    /// Sets all clocks ahead by more than a day, and right again: shards forget the keys of the day before.
    func scheduleLongDay() {
        let share = UInt64(world.random(12...22))
        world.schedule(after: options.seconds * World.second / 100 * share, .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            world.note("all clocks are wrong by 30 hours for a while")
            count("longDay")
            longDay = LongDay(began: world.now, logs: raftProofs.committed)
            for node in nodes { node.setWall(common: commonOffset, error: 30 * 3_600_000) }
            hastenShards()
            world.schedule(after: Self.longDayNanoseconds, .fault, for: nil) { [unowned self] in
                disturbed(for: 0)
                wrongSince = world.now
                let commands = commandsOfLongDay
                longDay?.commands = commands
                for node in nodes { node.setWall(common: commonOffset, error: 0) }
            }
        }
    }

    private static let longDayNanoseconds = 90 * World.second

    private func hastenShards() {
        guard clients[0].hasEnded, recorder.isSetUp else { return }
        let (groups, end) = (groups.filter { $0 != .directory }, world.now + Self.longDayNanoseconds)
        let commands = options.longDayCommands
        clients[0].perform { client in
            for group in groups { await client.hasten(group, commands: commands, until: end) }
        }
    }

    /// Whether all clocks are wrong by more than a day, or were within the time that a client repeats a request.
    var isLongDay: Bool {
        longDay.map { world.now < $0.began + Self.longDayNanoseconds + 180 * World.second } ?? false
    }

    /// Whether shards may have forgotten keys of the day before: each command moved their time by a minute, or by more
    /// where a build of before made it.
    var mayForgetOfLongDay: Bool {
        guard let longDay else { return false }
        return options.isUpgraded || (longDay.commands ?? commandsOfLongDay) > LongDay.commandsMax
    }

    private var commandsOfLongDay: UInt64 {
        let logs = longDay?.logs ?? [:]
        return raftProofs.committed.map { $1.index.rawValue - (logs[$0]?.index.rawValue ?? 0) }.max() ?? 0
    }

    private func upgrade(_ node: SimulatedNode) {
        node.levels = FeatureLevel.supported
        world.note("UPGRADE of node \(node.number)")
        count("upgrade")
        disturbed(for: 40 * World.second)
        restart(node)
    }

    /// Has a node that is at work take over what it is told at a start.
    private func restart(_ node: SimulatedNode) {
        guard !node.isRetired, node.runningLevels != node.levels else { return }
        if node.running != nil {
            node.stop { [self] in restartLater(node) }
        } else {
            world.schedule(after: 3 * World.second, .process, for: nil) { [unowned self] in restart(node) }
        }
    }

    /// Whether every node runs the build that it shall.
    var isUpgraded: Bool {
        nodes.allSatisfy { !$0.isEnlisted || $0.isRetired || ($0.running != nil && $0.runningLevels == $0.levels) }
    }

    private func setAllClocks(ahead milliseconds: Int64) {
        guard !isHealed else { return }
        world.note("all clocks go ahead by \(milliseconds) ms")
        commonOffset += milliseconds
        recorder.commonOffset = commonOffset
        disturbed(for: 0)
        for node in nodes { node.setWall(common: commonOffset, error: node.wallError) }
    }
}

/// A day on which all clocks are ahead.
struct LongDay {
    var began: UInt64
    /// Where the logs of groups ended then.
    var logs: [GroupID: LogPosition]
    /// How many commands the busiest group was given; nil until the clocks are right again.
    var commands: UInt64?

    /// As many do not have a shard forget the keys of the day before: 24 hours are 1,440 minutes, and a commit may be
    /// seen a moment after it was answered.
    static let commandsMax: UInt64 = 1_300
}
