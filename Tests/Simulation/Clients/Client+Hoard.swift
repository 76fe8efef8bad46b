import Admission
import Authorization
import Cluster
import Directory
import RaftCore
import RecordModel
import Service

/// What clients store up to their quotas, each in a database of its own. One client alone uses a database, so it knows
/// how much is in there.
struct Hoard {
    static let container = "iCloud.hoard"
    /// Records of one user at most, ever.
    static let limitMax: Int64 = 16
    /// Most likely not all on one shard.
    static let zones = ["hoard0", "hoard1", "hoard2"]

    let user: String
    let database: DatabaseKey
    /// By zone and name.
    var stored: Set<String> = []
    var isMade = false

    init(client: Int, serial: Int) {
        user = "_hoarder\(client)x\(serial)"
        database = DatabaseKey(container: Self.container, environment: .development, scope: .private, owner: user)
    }
}

/// The limits that were set, one after the other.
struct HoardLimits {
    private var values: [(value: Int64, begun: UInt64, done: UInt64?)] = [(Hoard.limitMax, 0, 0)]

    mutating func begin(_ value: Int64, at time: UInt64) -> Int {
        values.append((value, time, nil))
        return values.count - 1
    }

    mutating func end(_ number: Int, at time: UInt64) { values[number].done = time }

    /// The lowest that can have been in force at any moment between these.
    func least(from begin: UInt64, to end: UInt64) -> Int64 { possible(from: begin, to: end).min() ?? 0 }

    /// The highest that can have been in force at any moment between these.
    func most(from begin: UInt64, to end: UInt64) -> Int64 { possible(from: begin, to: end).max() ?? Hoard.limitMax }

    private func possible(from begin: UInt64, to end: UInt64) -> [Int64] {
        let last = values.lastIndex { ($0.done ?? .max) <= begin } ?? 0
        // Of two at the same time either may be the last, and what was never acknowledged may be done at any time.
        return values.filter { $0.begun <= end && ($0.done ?? .max) >= values[last].begun }.map(\.value)
    }
}

extension Client {
    func useHoard() async {
        guard hoard.isMade else { return await makeHoard() }
        for _ in 0..<world.random(3...8) {
            switch world.random(0...9) {
            case 0: await changeHoardLimit()
            case 1..<4: await modifyHoard(isDeletion: true)
            default: await modifyHoard(isDeletion: false)
            }
            if !hoard.isMade || isEnding { return }
        }
    }

    private func request<Value: Sendable>(
        _ identity: Visit.Identity,
        _ work: @escaping @Sendable (Visit, DatabaseRequest) async throws(RequestFailure) -> Value
    ) async -> Asked<Value> {
        let (database, user) = (hoard.database, hoard.user)
        return await ask(repeats: true) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            return try await visit.enterAsAdministrator(of: Hoard.container) { directory throws(RequestFailure) in
                let requester = Requester(Admitted(caller: Caller(user: user)), requestID: "", address: nil)
                var request = DatabaseRequest(
                    visit.service, key: database, requester: requester, in: directory, deadline: visit.deadline)
                request.identity = try RequestIdentity(identity.key, body: identity.body, in: visit.service)
                return try await work(visit, request)
            }
        }
    }

    private func leaveHoard() {
        hoardSerial += 1
        hoard = Hoard(client: number, serial: hoardSerial)
    }

    private func makeHoard() async {
        for zone in Hoard.zones {
            let text = #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"\#(zone)"}}}]}"#
            let answer = await request(Visit.Identity(key: newKey(), body: Array(text.utf8))) {
                visit, request throws(RequestFailure) in
                let form = try ZonesModifyRequest(sent: Array(text.utf8))
                return try await Zones(request).modify(form.operations[0], number: 0) != nil
            }
            guard case .answered = answer else { return leaveHoard() }
        }
        hoard.isMade = true
    }

    private func modifyHoard(isDeletion: Bool) async {
        let names = (0..<12).map { "h\($0)" }.shuffled(using: &world.generator).prefix(world.random(1...5))
        await modifyHoard(isDeletion: isDeletion, zone: world.pick(Hoard.zones), names: Array(names))
    }

    private func bodyOfHoard(isDeletion: Bool, zone: String, names: [String]) -> [UInt8] {
        let operations = names.map { name in
            isDeletion
                ? #"{"operationType":"forceDelete","record":{"recordName":"\#(name)"}}"#
                : #"{"operationType":"forceReplace","record":{"recordName":"\#(name)","recordType":"Thing","fields":{"value":{"value":"\#(newValue())"}}}}"#
        }.joined(separator: ",")
        return Array(
            #"{"operations":[\#(operations)],"zoneID":{"zoneName":"\#(zone)"},"atomic":\#(world.chance(50))}"#.utf8)
    }

    func modifyHoard(isDeletion: Bool, zone: String, names: [String]) async {
        let body = bodyOfHoard(isDeletion: isDeletion, zone: zone, names: names)
        let begin = world.now
        let before = hoard.stored.count
        let new = names.count { !hoard.stored.contains("\(zone)/\($0)") }
        let answer = await request(Visit.Identity(key: newKey(), body: body)) { visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        let result: RecordModification.Result
        switch answer {
        case .answered(let value, _): result = value
        case .failed(let failure) where failure.error.code == .quotaExceeded:
            _ = filled(by: new, over: before, since: begin)
            return
        case .failed(let failure):
            recorder.violated("client \(number) was refused in its hoard: \(failure.error)")
            return leaveHoard()
        case .nothing: return leaveHoard()
        }
        for item in result.items {
            switch item.outcome {
            case .saved: hoard.stored.insert("\(zone)/\(item.recordName)")
            case .deleted: hoard.stored.remove("\(zone)/\(item.recordName)")
            case .failed(let error, _) where error.code == .quotaExceeded:
                guard filled(by: new, over: before, since: begin) else { return }
            case .failed(let error, _) where error.code == .atomicError: break
            case .failed(let error, _):
                recorder.violated("client \(number) was refused in its hoard: \(error)")
                return leaveHoard()
            }
        }
        let most = recorder.hoardLimits.most(from: begin, to: world.now)
        guard hoard.stored.count > before else { return }
        if hoard.stored.count > most {
            recorder.violated(
                "client \(number): the usage of \(hoard.user) is \(hoard.stored.count) records, and its quota \(most)")
            leaveHoard()
        }
    }

    /// A save was refused as over the quota.
    /// - Parameters:
    ///   - new: records that it was to add.
    ///   - stored: records that were there.
    /// - Returns: whether that may be.
    private func filled(by new: Int, over stored: Int, since begin: UInt64) -> Bool {
        world.met(.filledQuota)
        let least = recorder.hoardLimits.least(from: begin, to: world.now)
        guard stored + new <= least else { return true }
        recorder.violated(
            "client \(number): \(new) records beside \(stored) of \(hoard.user) are over its quota of \(least)")
        leaveHoard()
        return false
    }

    private func changeHoardLimit() async {
        let value = Int64(world.random(6...Int(Hoard.limitMax)))
        let change = recorder.hoardLimits.begin(value, at: world.now)
        let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.settle(.setLimits(container: Hoard.container, [LimitChange(.userRecords, value)]))
        }
        if case .answered(.done, _) = answer { recorder.hoardLimits.end(change, at: world.now) }
    }
}
