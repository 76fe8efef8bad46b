import Foundation
import HistoryChecks
import RecordModel
import TestSupport
import Testing

extension ClusterSuites {
    /// The order of faults is `ZONEKEEPER_FAULT_SEED`.
    @Suite("Three processes while nodes are killed and stopped, the network fails, a disk is full and a clock days off")
    struct LiveFaultTests {
        /// In the short form each kind of fault comes once.
        private static let count = Soak.count(12, soak: 150)
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
            _ zones: [RecordedZone], _ store: RecordedStore, _ tally: AnswerTally, on faults: FaultCluster,
            during disturbance: () async throws -> Void
        ) async throws {
            let (client, nodes) = (faults.client, faults.ids.count)
            let records = faults.cluster.path("")
            let preferences = "/kv/1/\(faults.cluster.container)/development/"
            let seed = Self.seed
            try await withThrowingTaskGroup(of: Void.self) { group in
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
            var disturbance = Disturbance(faults, tally, seed: Self.seed)
            let before = faults.passedBytes
            try await load(zones, store, tally, on: faults) {
                try await disturbance.run(Self.count)
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
            #expect(zones.flatMap(\.complaints) + store.complaints == [])
            try await faults.client.awaitEqualStates(of: faults.ids)
            let things = disturbance.counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
            let total = verdicts.reduce(0) { $0 + $1.calls }
            let unknown = verdicts.reduce(0) { $0 + $1.unknown }
            print(
                "live faults: \(Self.count), seed \(Self.seed); \(things.joined(separator: ", ")); "
                    + "\(total) calls checked in \(verdicts.count) histories, \(unknown) of unknown outcome; \(tally.described)"
            )
            #expect(total > 10 * Self.count)
            #expect(unknown < total / 2, "hardly anything was answered")
        }
    }
}
