import Cluster
import Foundation
import RaftCore
import RecordModel
import Synchronization
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("Quotas over shards, nodes and kills")
    struct QuotaTests {
        @Test(
            "writers on all nodes, nodes killed meanwhile: never a byte over the quota, and the counters are true",
            .timeLimit(.minutes(Soak.isOn ? 60 : 10)))
        func neverOver() async throws {
            let cluster = try await ProcessCluster.prepared()
            let space = try await Space(cluster, userBytes: 600_000, publicBytes: 180_000)
            let shared = Shared()
            var writers = (0..<12).map { Writer($0, zone: space.zones[$0 % space.zones.count]) }
            for round in 0..<Soak.count(1, soak: 12) {
                for (turn, mode) in [Mode.growing, .mixed].enumerated() {
                    let victim = cluster.ids[(round + turn) % 3]
                    writers = try await write(mode, writers, space, shared) {
                        try await Self.restart(victim, in: cluster, shared)
                    }
                    try await space.checkUsage(node: round % 3)
                }
            }
            let tally = shared.tally.withLock { $0 }
            #expect(tally["grow", "QUOTA_EXCEEDED"] > 20, "the quota was hardly met: \(tally.text)")
            #expect(tally["grow", "done"] > 100, "hardly anything was written: \(tally.text)")
            for kind in ["shrink", "delete", "read", "usage"] {
                #expect(tally[kind, "done"] > 3, "\(kind): \(tally.text)")
                #expect(tally[kind, "QUOTA_EXCEEDED"] == 0, "\(kind): \(tally.text)")
            }
            #expect(tally["usage", "over"] == 0, "\(tally.text)")
            #expect(tally.unexpected.isEmpty, "\(tally.unexpected): \(tally.text)")
            for node in 0..<3 { try await space.checkUsage(node: node) }
        }

        private static func restart(_ id: Int, in cluster: ProcessCluster, _ shared: Shared) async throws {
            try await shared.awaitRequests(400)
            cluster.kill(id)
            try await shared.awaitRequests(200)
            try cluster.start(id)
            try await cluster.awaitReady(id)
            try await shared.awaitRequests(200)
        }

        /// Lets writers write while `disturb` runs, and reads the usage all the while.
        private func write(
            _ mode: Mode, _ writers: [Writer], _ space: Space, _ shared: Shared, disturb: () async throws -> Void
        ) async throws -> [Writer] {
            shared.isWriting.store(true, ordering: .relaxed)
            let place = space.place
            return try await withThrowingTaskGroup(of: Writer?.self) { group in
                for writer in writers {
                    group.addTask {
                        var writer = writer
                        while shared.isWriting.load(ordering: .relaxed) {
                            await writer.step(mode, place, shared)
                        }
                        return writer
                    }
                }
                group.addTask {
                    while shared.isWriting.load(ordering: .relaxed) {
                        // Shards are read one after another, so only where nothing shrinks is the sum what is at least
                        // there.
                        let isOver = try await place.usage().contains { $0.bytes > $0.limit }
                        shared.note(mode == .growing ? "usage" : "usage in between", isOver ? "over" : "done")
                    }
                    return nil
                }
                defer { shared.isWriting.store(false, ordering: .relaxed) }
                try await disturb()
                shared.isWriting.store(false, ordering: .relaxed)
                return try await group.reduce(into: []) { if let writer = $1 { $0.append(writer) } }
            }
        }
    }
}

extension ClusterSuites.Shared {
    @Suite("Quotas that are filled")
    struct FullQuotaTests {
        private typealias Space = ClusterSuites.QuotaTests.Space
        private typealias Zone = ClusterSuites.QuotaTests.Zone

        @Test(
            "a quota is filled to its last record over zones on several shards, and makes room at once",
            .timeLimit(.minutes(10)))
        func lastRecord() async throws {
            let space = try await Space(SharedCluster.tenant(), userBytes: 360_000, publicBytes: 120_000)
            for isPublic in [false, true] { try await checkLastRecord(space, isPublic, prefix: "r") }
            try await checkOverQuota(space)
            try await checkRoom(space)
            try await checkDeletedZone(space)
            // What was allotted, and what was deleted, under limits that were changed since, is room too.
            for isPublic in [false, true] { try await checkLastRecord(space, isPublic, prefix: "late") }
            try await space.setQuota(userBytes: 1_000_000, publicBytes: 1_000_000)
            try await space.checkUsage(node: 0)
        }

        /// Fills a database until what is left is less than what the next record takes, and raises its quota for that.
        private func checkLastRecord(_ space: Space, _ isPublic: Bool, prefix: String) async throws {
            let zones = space.zones.filter { $0.isPublic == isPublic }
            let refused = try await fill(zones, space, prefix: prefix)
            let full = try await space.usage(of: zones[0])
            #expect(full.bytes <= full.limit && full.isEqual == nil, "\(full)")
            try await space.setQuota(userBytes: 1_000_000, publicBytes: 1_000_000)
            #expect(await space.place.modify("create", refused, in: zones[0], node: 1) == nil)
            let size = try await space.usage(of: zones[0]).bytes - full.bytes
            #expect(full.limit - full.bytes < size, "\(prefix): \(full), and \(size) bytes were refused")
            try await space.setQuota(userBytes: 360_000, publicBytes: 120_000)
        }

        /// Creates records of four sizes in one zone after the other, each until it is refused.
        /// - Returns: the name of the last one, which is the smallest.
        @discardableResult
        private func fill(_ zones: [Zone], _ space: Space, prefix: String) async throws -> String {
            var name = ""
            for length in [3_000, 300, 30, 0] {
                var (number, refusal) = (0, String?.none)
                while refusal == nil {
                    name = "\(prefix)\(length)-\(number)"
                    let zone = zones[number % zones.count]
                    refusal = await space.place.modify("create", name, length, in: zone, node: number / 2 % 3)
                    number += 1
                }
                #expect(refusal == "QUOTA_EXCEEDED", "\(name)")
            }
            return name
        }

        /// Over the quota everything works but what grows.
        private func checkOverQuota(_ space: Space) async throws {
            try await space.setQuota(userBytes: 1_000, publicBytes: 1_000)
            let place = space.place
            for (number, zone) in space.zones.enumerated() {
                let node = number % 3
                let (name, next) = ("r3000-\(zone.isPublic ? 0 : number)", "r3000-\(zone.isPublic ? 1 : number + 5)")
                #expect(await place.modify("create", "more", 0, in: zone, node: node) == "QUOTA_EXCEEDED")
                #expect(await place.modify("forceUpdate", name, 3_100, in: zone, node: node) == "QUOTA_EXCEEDED")
                #expect(
                    await place.modify("forceUpdate", name, 2_000, in: zone, node: node) == nil,
                    "what shrinks is saved"
                )
                #expect(try await place.length(of: name, in: zone, node: node) == 2_000)
                #expect(await place.modify("forceDelete", next, in: zone, node: node) == nil)
                #expect(try await place.length(of: next, in: zone, node: node) == -1)
                let id = #""zoneID": {"zoneName": "\#(zone.name)"}"#
                let query = #"{\#(id), "query": {"recordType": "Note"}}"#
                #expect(try await space.count("records/query", query, in: zone, node: node) > 3)
                if zone.isPublic { continue }
                #expect(try await space.count("changes/zone", #"{"zones": [{\#(id)}]}"#, in: zone, node: node) > 3)
            }
            try await space.checkUsage(node: 1, isOver: true)
            try await space.setQuota(userBytes: 360_000, publicBytes: 120_000)
        }

        /// What is deleted on one shard is room on another, through another node, with the next request.
        private func checkRoom(_ space: Space) async throws {
            let zones = space.zones.filter { !$0.isPublic }
            try await fill([zones[0]], space, prefix: "again")
            for number in 10..<20 {
                let (old, new) = (zones[number % zones.count], zones[(number + 1 + number / 5) % zones.count])
                #expect(await space.place.modify("forceDelete", "r3000-\(number)", in: old, node: number % 3) == nil)
                let refusal = await space.place.modify(
                    "create", "room\(number)", 2_900, in: new, node: (number + 1) % 3)
                #expect(refusal == nil, "a record of \(old) made no room in \(new)")
            }
            try await space.checkUsage(node: 2)
        }

        /// A zone's deletion frees what was in it, as its rows are removed.
        private func checkDeletedZone(_ space: Space) async throws {
            let zones = space.zones.filter { !$0.isPublic }
            let before = try await space.usage(of: zones[0])
            try await space.zone("delete", zones[1].name)
            let place = space.place
            _ = try await awaitState("the rows of the deleted zone are removed") {
                try await place.usage().first { $0.scope == zones[0].database }?.bytes ?? 0
            } until: {
                $0 < before.bytes - 9_000
            }
            #expect(await space.place.modify("create", "instead", 3_000, in: zones[2], node: 2) == nil)
            try await space.zone("create", zones[1].name)
        }
    }
}

extension ClusterSuites.QuotaTests {
    fileprivate enum Mode { case growing, mixed }

    fileprivate struct Zone: Hashable, Sendable {
        var name: String
        var isPublic: Bool
        var database: String { isPublic ? "public" : "private" }
    }

    /// What a database holds, and may.
    fileprivate struct Usage: Sendable {
        var scope: String
        var bytes: Int64
        var limit: Int64
        /// Nil where nothing was counted anew.
        var isEqual: Bool?
    }

    /// What became of requests, by what they were.
    fileprivate struct Tally: Sendable {
        private var counts: [String: [String: Int]] = [:]
        private static let expected: Set = ["done", "over", "QUOTA_EXCEEDED", "TRY_AGAIN_LATER", "connection"]

        subscript(kind: String, outcome: String) -> Int {
            get { counts[kind]?[outcome] ?? 0 }
            set { counts[kind, default: [:]][outcome] = newValue }
        }

        /// Requests of all kinds.
        var total: Int { counts.values.reduce(0) { $0 + $1.values.reduce(0, +) } }

        /// What neither a quota nor the end of a node explains.
        var unexpected: Set<String> { Set(counts.values.flatMap(\.keys)).subtracting(Self.expected) }

        var text: String { counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "; ") }
    }

    fileprivate final class Shared: Sendable {
        let isWriting = Atomic<Bool>(true)
        let tally = Mutex(Tally())

        func note(_ kind: String, _ outcome: String) { tally.withLock { $0[kind, outcome] += 1 } }

        /// Waits until so many more requests came to an end, of any kind.
        func awaitRequests(_ count: Int) async throws {
            let before = tally.withLock(\.total)
            try await awaitState("\(count) more requests") {
                tally.withLock(\.total)
            } until: {
                $0 >= before + count
            }
        }
    }

    /// Paths and bodies of requests to the container.
    fileprivate struct Place: Sendable {
        var container: String
        var client: TestClient

        func path(_ action: String, _ zone: Zone) -> String {
            "/database/1/\(container)/development/\(zone.database)/\(action)"
        }

        /// - Returns: nil for done, otherwise why not.
        func modify(_ kind: String, _ name: String, _ length: Int = 0, in zone: Zone, node: Int) async -> String? {
            let text = String(repeating: "x", count: length)
            let fields =
                kind == "forceDelete" ? "" : #", "recordType": "Note", "fields": {"text": {"value": "\#(text)"}}"#
            let body = #"""
                {"zoneID": {"zoneName": "\#(zone.name)"}, "atomic": false, "operations": [{"operationType": "\#(kind)",
                "record": {"recordName": "\#(name)"\#(fields)}}]}
                """#
            guard let answer = try? await client.post(path("records/modify", zone), body, node: node) else {
                return "connection"
            }
            if let code = answer.json["serverErrorCode"]?.string { return code }
            guard answer.status == 200, let record = answer.json["records"]?.array?.first else {
                return "HTTP \(answer.status)"
            }
            return record["serverErrorCode"]?.string
        }

        /// The length of a record's text; -1 where there is no such record.
        func length(of name: String, in zone: Zone, node: Int) async throws -> Int {
            let body = #"{"zoneID": {"zoneName": "\#(zone.name)"}, "records": [{"recordName": "\#(name)"}]}"#
            let answer = try await client.post(path("records/lookup", zone), body, node: node)
            let record = try require(answer.json["records"]?.array?.first, "\(answer)")
            return record["fields"]?["text"]?["value"]?.string?.utf8.count ?? -1
        }

        /// Asks one node after the other until one answers.
        func usage(node: Int = 0, verify: Bool = false) async throws -> [Usage] {
            let path = "usage?container=\(container)&environment=development\(verify ? "&verify=true" : "")"
            var number = node
            let json = try await awaitState("a node tells the usage") {
                number += 1
                return try await client.admin("GET", path, node: (number - 1) % 3)
            }
            return try require(json["databases"]?.array, "\(json)").map { database in
                guard case .integer(let bytes)? = database["bytes"],
                    case .integer(let limit)? = database["limitBytes"]
                else { throw TestFailure("\(database)") }
                let recount = database["recount"]?["isEqual"].map { $0 == .bool(true) }
                return Usage(scope: database["scope"]?.string ?? "", bytes: bytes, limit: limit, isEqual: recount)
            }
        }
    }

    /// A container on three nodes with zones of one user on shards of their own, the public database, and small
    /// quotas for both.
    fileprivate struct Space {
        let cluster: ProcessCluster
        let place: Place
        private(set) var zones: [Zone] = []

        init(_ cluster: ProcessCluster, userBytes: Int, publicBytes: Int) async throws {
            self.cluster = cluster
            place = Place(container: cluster.container, client: cluster.client)
            let caller = try await cluster.client.get(
                "\(cluster.path("users/caller", database: "public"))?\(cluster.client.query)", node: 0)
            let owner = try require(caller.json["userRecordName"]?.string, "\(caller)")
            let database = DatabaseKey(
                container: cluster.container, environment: .development, scope: .private, owner: owner)
            // The cluster's shards take slots in turn.
            var shards: Set<Int> = []
            for number in 0..<200 where zones.count < 5 {
                let key = ZoneKey(database: database, name: "zone\(number)")
                if shards.insert(key.slot % 8).inserted { zones.append(Zone(name: key.name, isPublic: false)) }
            }
            for zone in zones { try await self.zone("create", zone.name) }
            zones.append(Zone(name: "_defaultZone", isPublic: true))
            try await setQuota(userBytes: userBytes, publicBytes: publicBytes)
        }

        func setQuota(userBytes: Int, publicBytes: Int) async throws {
            let limits = #"{"userBytes": \#(userBytes), "databaseBytes": \#(publicBytes), "databaseBytesPerUser": 0}"#
            _ = try await cluster.client.admin("PATCH", "limits?container=\(cluster.container)", limits)
        }

        func zone(_ kind: String, _ name: String) async throws {
            let body = #"{"operations": [{"operationType": "\#(kind)", "zone": {"zoneID": {"zoneName": "\#(name)"}}}]}"#
            let answer = try await cluster.client.post(cluster.path("zones/modify"), body, node: 0)
            try require(answer.status == 200, "\(answer)")
        }

        func count(_ action: String, _ body: String, in zone: Zone, node: Int) async throws -> Int {
            let answer = try await cluster.client.post(place.path(action, zone), body, node: node)
            let records = answer.json["records"] ?? answer.json["zones"]?.array?.first?["records"]
            return try require(records?.array, "\(answer)").count
        }

        func usage(of zone: Zone) async throws -> Usage {
            try require(try await place.usage().first { $0.scope == zone.database }, "no usage of \(zone)")
        }

        /// While nobody writes: no database is over its quota, and counting all records anew finds the same.
        func checkUsage(node: Int, isOver: Bool = false) async throws {
            let usages = try await place.usage(node: node, verify: true)
            #expect(usages.count == 2, "\(usages)")
            for usage in usages {
                #expect(usage.isEqual == true, "\(usage)")
                #expect((usage.bytes > usage.limit) == isOver, "\(usage)")
            }
        }
    }

    /// Writes records of its own into one zone, and knows which are there for certain.
    fileprivate struct Writer: Sendable {
        let number: Int
        let zone: Zone
        private var random: SplitMix64
        private var records: [(name: String, length: Int)] = []
        private var created = 0

        init(_ number: Int, zone: Zone) {
            self.number = number
            self.zone = zone
            random = SplitMix64(seed: UInt64(500 + number))
        }

        mutating func step(_ mode: Mode, _ place: Place, _ shared: Shared) async {
            let node = Int.random(in: 0..<3, using: &random)
            let draw = Int.random(in: mode == .growing ? 0..<40 : 0..<100, using: &random)
            let index = records.isEmpty ? nil : Int.random(in: records.indices, using: &random)
            switch (draw, index) {
            case (90..., let index?): await read(records[index], node, place, shared)
            case (60..<90, let index?): await change(index, "delete", to: nil, node, place, shared)
            case (40..<60, let index?) where records[index].length > 100:
                await change(index, "shrink", to: records[index].length / 2, node, place, shared)
            case (0..<8, let index?):
                await change(index, "grow", to: records[index].length + 90, node, place, shared)
            default: await create(node, place, shared)
            }
        }

        private mutating func create(_ node: Int, _ place: Place, _ shared: Shared) async {
            created += 1
            let (name, length) = ("w\(number)-\(created)", Int.random(in: 0..<1_200, using: &random))
            let outcome = await place.modify("create", name, length, in: zone, node: node)
            if outcome == nil { records.append((name, length)) }
            shared.note("grow", outcome ?? "done")
        }

        /// Sets a record's length, or deletes it. What nobody knows the end of is forgotten.
        private mutating func change(
            _ index: Int, _ kind: String, to length: Int?, _ node: Int, _ place: Place, _ shared: Shared
        ) async {
            let record = records.remove(at: index)
            let operation = length == nil ? "forceDelete" : "forceUpdate"
            let outcome = await place.modify(operation, record.name, length ?? 0, in: zone, node: node)
            if outcome == "QUOTA_EXCEEDED" { records.append(record) }
            if let length, outcome == nil { records.append((record.name, length)) }
            shared.note(kind, outcome ?? "done")
        }

        private func read(
            _ record: (name: String, length: Int), _ node: Int, _ place: Place, _ shared: Shared
        ) async {
            var outcome: String? = "connection"
            if let length = try? await place.length(of: record.name, in: zone, node: node) {
                outcome = length == record.length ? nil : "\(record) has \(length)"
            }
            shared.note("read", outcome ?? "done")
        }
    }
}
