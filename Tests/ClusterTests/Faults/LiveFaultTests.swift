import Foundation
import HistoryChecks
import RecordModel
import TestSupport
import Testing

extension ClusterSuites {
    /// The order of faults is `ZONEKEEPER_FAULT_SEED`; they go on for `ZONEKEEPER_FAULT_SECONDS` at least.
    @Suite("Three processes while nodes are killed and stopped, the network fails, a disk is full and a clock days off")
    struct LiveFaultTests {
        /// In the short form six of the thirteen kinds of faults come once, which ones the seed says; in the soak, all.
        private static let count = Soak.count(6, soak: 150)
        private static let seconds = Int(ProcessInfo.processInfo.environment["ZONEKEEPER_FAULT_SECONDS"] ?? "") ?? 0
        private static let seed =
            UInt64(ProcessInfo.processInfo.environment["ZONEKEEPER_FAULT_SEED"] ?? "")
            ?? UInt64(Date().timeIntervalSince1970)

        private func makeZones(_ faults: FaultCluster) async throws -> [RecordedZone] {
            let names = (0..<4).map { "zone-\($0)" }
            let operations = names.map { #"{"operationType": "create", "zone": {"zoneID": {"zoneName": "\#($0)"}}}"# }
            let made = try await faults.client.post(
                faults.cluster.path("zones/modify"), #"{"operations": [\#(operations.joined(separator: ", "))]}"#,
                node: 0)
            try #require(made.json["zones"]?.array?.allSatisfy { $0["serverErrorCode"] == nil } == true, "\(made)")
            let records = (0..<8).map { "r\($0)" }
            return names.map { RecordedZone(name: $0, isDefault: false, records: records) }
                + [RecordedZone(name: "_defaultZone", isDefault: true, records: records)]
        }

        /// Clients ask until the disturbance is over.
        private func load(
            _ zones: [RecordedZone], _ store: RecordedStore, _ tally: AnswerTally, _ tenant: Tenant,
            on faults: FaultCluster, during disturbance: () async throws -> Void
        ) async throws {
            let (client, nodes) = (faults.client, faults.ids.count)
            let records = faults.cluster.path("")
            let preferences = "/kv/1/\(faults.cluster.container)/development/"
            let seed = Self.seed
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await tenant.run() }
                for number in 0..<10 {
                    let base = FaultClient(number: number, client: client, nodes: nodes, seed: seed, tally: tally) {
                        records + $0
                    }
                    group.addTask {
                        var client = ZoneClient(base, zones: zones)
                        while !Task.isCancelled { await client.step() }
                    }
                }
                for number in 10..<13 {
                    let base = FaultClient(number: number, client: client, nodes: nodes, seed: seed, tally: tally) {
                        preferences + $0
                    }
                    group.addTask {
                        var client = StoreClient(base, store: store)
                        while !Task.isCancelled { await client.step() }
                    }
                }
                try await disturbance()
                group.cancelAll()
                try await group.waitForAll()
            }
        }

        @Test("every client's history is linearizable, every feed complete, and all replicas are equal in the end")
        func histories() async throws {
            let faults = try await FaultCluster()
            try await faults.startAll()
            let zones = try await makeZones(faults)
            let store = RecordedStore()
            let tally = AnswerTally()
            let tenant = Tenant(try await ProcessCluster(sharing: faults.cluster, number: 2))
            var disturbance = Disturbance(faults, tally, tenant, seed: Self.seed)
            let end = ContinuousClock.now + .seconds(Self.seconds)
            var count = 0
            let before = faults.passedBytes
            try await load(zones, store, tally, tenant, on: faults) {
                count = try await disturbance.run(Self.count, until: end)
                // Everyone has answers again.
                try await tally.awaitAnswers(200)
            }
            #expect(faults.passedBytes > before, "the nodes do not use the links")
            var verdicts: [(name: String, calls: Int, unknown: Int, verdict: HistoryVerdict)] = zones.map {
                ($0.name, $0.calls.calls.count, $0.calls.unknownCount, $0.model.verdict(on: $0.calls))
            }
            let calls = store.calls
            verdicts.append(
                ("preferences", calls.calls.count, calls.unknownCount, KeyValueModel().verdict(on: calls)))
            for (name, _, _, verdict) in verdicts {
                #expect(verdict.isLinearizable, "seed \(Self.seed), \(name): \(verdict)")
            }
            #expect(zones.flatMap(\.complaints) + store.complaints + tenant.complaints == [])
            try await tenant.requireAll()
            try await faults.client.awaitEqualStates(of: faults.ids)
            let things = disturbance.counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            let total = verdicts.reduce(0) { $0 + $1.calls }
            let unknown = verdicts.reduce(0) { $0 + $1.unknown }
            print(
                "live faults: \(count), seed \(Self.seed); \(things.joined(separator: ", ")); "
                    + "\(total) calls checked in \(verdicts.count) histories, \(unknown) of unknown outcome; "
                    + "another tenant saved \(tenant.saved) records and repeated \(tenant.retried) tries; \(tally.described)"
            )
            #expect(total > 10 * count && tenant.saved > count)
            #expect(unknown < total / 2, "hardly anything was answered")
        }
    }
}
