import Cluster
import Directory
import RaftCore
import RecordModel
import Synchronization
import Telemetry

/// Looks at what this node's rules of alerts come to: once a minute, and whenever somebody asks.
///
/// It reads what the node has at hand: its replicas' state, its counters, its series of requests. Since when something
/// is wrong is kept in memory, until the node is started again.
package final class AlertWatch: Sendable {
    /// What counts of what a node counted since its start is what came since an earlier look.
    struct Sample {
        /// Nanoseconds of the monotonic clock.
        var time: UInt64
        /// That each replica began.
        var elections: [GroupID: UInt64]
        /// Of the Raft log.
        var syncs: HistogramCounts
    }

    private struct State {
        var own = AlertMemory()
        /// Of other nodes.
        var silent = AlertMemory()
        /// Ascending; at least half a minute apart.
        var samples: [Sample] = []
        /// What environments held when their requests were last counted.
        var storage: [SchemaKey: DayUsage.Storage] = [:]
    }

    /// How far back elections and syncs count.
    private static let electionMinutes: UInt64 = 15
    private static let syncMinutes: UInt64 = 5
    /// Environments whose storage is remembered.
    private static let storageMax = 4_000
    private static let minute: UInt64 = 60_000_000_000

    private let state = Mutex(State())
    private let work: PeriodicTask

    init(platform: any NodePlatform) { work = PeriodicTask(platform: platform) }

    /// Begins to look.
    /// - Parameter pause: between two looks, in milliseconds; 0: only when somebody asks.
    package func start(_ service: RecordService, everyMilliseconds pause: UInt64) {
        guard pause > 0 else { return }
        work.start(everyMilliseconds: pause) { [weak self, weak service] in
            guard let self, let service else { return }
            _ = await look(at: service)
            _ = await lookAround(from: service)
        }
    }

    /// Ends that.
    package func stop() { work.stop() }

    /// Takes note of what an environment holds.
    func note(_ storage: DayUsage.Storage, of key: SchemaKey) {
        state.withLock { state in
            if state.storage.count >= Self.storageMax, state.storage[key] == nil,
                let oldest = state.storage.min(by: { $0.value.time < $1.value.time })?.key
            {
                state.storage[oldest] = nil
            }
            state.storage[key] = storage
        }
    }

    /// What is found on this node.
    func look(at service: RecordService) async -> [AlertFinding] {
        let (replicas, directory) = (await service.node.status(), service.directory)
        let sample = Sample(
            time: service.uptime,
            elections: Dictionary(replicas.map { ($0.group, $0.elections) }, uniquingKeysWith: max),
            syncs: service.metrics.histogram(of: "zonekeeper_log_sync_seconds"))
        let (elections, syncs, storage) = state.withLock { state in
            state.storage = state.storage.filter { directory.containers[$0.key.container] != nil }
            let early = Self.take(sample, to: &state.samples)
            return (
                sample.elections.map {
                    (group: $0.key, count: $0.value - min($0.value, early.elections[$0.key] ?? 0))
                },
                sample.syncs.since(early.syncs), state.storage
            )
        }
        let signs = AlertSigns(service: service, directory: directory)
        let findings =
            signs.ofReplicas(replicas, elections: elections) + signs.ofNode(syncs: syncs) + signs.ofRequests()
            + signs.ofStorage(storage)
        return state.withLock { $0.own.judge(findings, at: service.now) { signs.threshold(of: $0) } }
    }

    /// Adds a sample, and gives what of earlier ones those values are counted from: nothing where the node is younger.
    private static func take(
        _ sample: Sample, to samples: inout [Sample]
    ) -> (elections: [GroupID: UInt64], syncs: HistogramCounts) {
        func last(before minutes: UInt64) -> Sample? {
            samples.last { $0.time + minutes * minute <= sample.time }
        }
        let (forElections, forSyncs) = (last(before: electionMinutes), last(before: syncMinutes))
        if let kept = forElections { samples.removeAll { $0.time < kept.time } }
        if sample.time >= (samples.last?.time ?? 0) + minute / 2 || samples.isEmpty { samples.append(sample) }
        return (forElections?.elections ?? [:], forSyncs?.syncs ?? HistogramCounts())
    }

    /// Which nodes do not answer this one.
    func lookAround(from service: RecordService) async -> [AlertFinding] {
        let answers: [NodeAnswer<NodeHealth>] = await NodeInquiries(service: service).askAll(.health)
        let findings = answers.map {
            AlertFinding(.nodeDown, on: $0.node, $0.value == nil ? 1 : 0, $0.problem ?? "")
        }
        let signs = AlertSigns(service: service, directory: service.directory)
        return state.withLock { $0.silent.judge(findings, at: service.now) { signs.threshold(of: $0) } }
    }
}
