import Cluster
package import Directory
import KeyValueStore
import PeerTransport
import RecordModel
import RecordStore
import Synchronization
import Wire

/// What each container's environment used, day by day: 90 days, over restarts and lost nodes.
///
/// It is kept as preferences of a user that nobody is, so it is as durable as what users save, goes with its container,
/// and needs no state of its own. Every node adds up its own part of a day and writes it whole, once a minute, under a
/// key of its own: a write that comes twice changes nothing. A node that is killed loses two minutes.
package final class UsageHistory: Sendable {
    /// The days that are kept.
    package static let daysMax = 90
    /// The user record name under which it is kept. No account has it: theirs begin with `_` and 32 digits.
    static let user = "_usage"
    /// Of values, in bytes, and of keys: some room is left of what a store may hold. With many nodes there is less room
    /// than for all days.
    static let bytesMax = Limits.storeBytesMax * 3 / 4
    static let entriesMax = Limits.keysMax - 64
    /// Nodes' parts of days that are remembered; of others, what was written is read again.
    private static let writtenMax = 4_000
    private static let deadlineMilliseconds: UInt64 = 2_000

    /// Writes a part of the history.
    typealias Save = @Sendable (Preferences, [KeyValueCommand.Write], Deadline) async throws(RequestFailure) -> Void

    private let service: RecordService
    private let save: Save
    private let work: PeriodicTask
    private let hasBegun = Atomic(false)
    /// What this node wrote last of the days that it counts for, and knows to be done.
    private let written = Mutex<[DayCounts.Key: DayUsage]>([:])

    package convenience init(_ service: RecordService) {
        self.init(service) { preferences, writes, deadline throws(RequestFailure) in
            _ = try await preferences.set(writes, idempotencyKey: nil, device: nil, by: deadline)
        }
    }

    init(_ service: RecordService, save: @escaping Save) {
        self.service = service
        self.save = save
        work = PeriodicTask(platform: service.node.platform)
    }

    /// Begins to write what is counted.
    /// - Parameter pause: between two times, in milliseconds; 0: never.
    package func start(everyMilliseconds pause: UInt64) {
        guard pause > 0 else { return }
        hasBegun.store(true, ordering: .relaxed)
        work.start(everyMilliseconds: pause) { [weak self] in await self?.write() }
    }

    /// Ends that, after writing what waits.
    package func stop() async {
        // What the round under way took, and could not write, waits again once it has ended.
        await work.finish()
        guard hasBegun.load(ordering: .relaxed) else { return }
        service.requests.endMinute()
        await write(within: Self.deadlineMilliseconds)
    }

    /// One node's part of a day, as its key names it: the day's number in five digits, so that keys are in the order of
    /// the days, and the node's.
    private static func name(_ day: Int64, node: UInt64) -> String {
        let digits = String(max(day, 0))
        return String(repeating: "0", count: max(0, 5 - digits.count)) + digits + ".\(node)"
    }

    private static func day(ofName name: String) -> Int64? { name.split(separator: ".").first.flatMap { Int64($0) } }

    private func preferences(of key: SchemaKey) -> Preferences {
        Preferences(
            service, StoreKey(container: key.container, environment: key.environment, user: Self.user))
    }

    /// Writes what was counted and is not in the history yet. What cannot be written now waits for the next time.
    /// - Parameter milliseconds: when nothing more is begun.
    package func write(within milliseconds: UInt64 = 30_000) async {
        let end = service.node.deadline(milliseconds: milliseconds)
        // Requests for containers that there are not are counted, too.
        for (key, usage) in service.requests.takeDays() where service.directory.containers[key.schema.container] != nil
        {
            guard !Task.isCancelled, !end.isOver(at: service.node.platform.clock.now) else {
                service.requests.giveBack(usage, to: key)
                continue
            }
            do throws(RequestFailure) { try await write(usage, to: key) } catch {
                service.requests.giveBack(usage, to: key)
            }
        }
    }

    private func write(_ usage: DayUsage, to key: DayCounts.Key) async throws(RequestFailure) {
        let deadline = service.node.deadline(milliseconds: Self.deadlineMilliseconds)
        let preferences = preferences(of: key.schema)
        let name = Self.name(key.day, node: service.node.settings.nodeID.rawValue)
        var writes: [KeyValueCommand.Write] = []
        let before: DayUsage
        if let known = written.withLock({ $0[key] }) {
            before = known
        } else {
            // The first time that this process counts for the day, which is when a day goes, too.
            let entries = try await entries(of: preferences, by: deadline)
            before = entries.first { $0.name == name }?.usage ?? DayUsage()
            writes = Self.tooMany(entries.map { ($0.name, $0.bytes) }, today: DayUsage.day(of: service.now))
                .filter { $0 != name }.map { KeyValueCommand.Write(key: $0, value: nil) }
        }
        var sum = before
        sum.add(usage)
        sum.storage = try await storage(of: key, by: deadline) ?? sum.storage
        writes.append(KeyValueCommand.Write(key: name, value: .data(sum.encoded())))
        // A write whose outcome stays unknown may be done: the next one begins where this one does, not at its sum.
        note(before, of: key)
        try await save(preferences, writes, deadline)
        note(sum, of: key)
    }

    private func note(_ usage: DayUsage, of key: DayCounts.Key) {
        written.withLock { written in
            if written.count >= Self.writtenMax, written[key] == nil { written.removeAll() }
            written[key] = usage
        }
    }

    /// What the environment holds now; nil for a day that is over.
    private func storage(
        of key: DayCounts.Key, by deadline: Deadline
    ) async throws(RequestFailure) -> DayUsage.Storage? {
        let now = service.now
        guard DayUsage.day(of: now) == key.day else { return nil }
        let request = UsageRequest(
            container: key.schema.container, environment: key.schema.environment, detail: .sums)
        var storage = DayUsage.Storage(time: now, publicBytes: 0, privateBytes: 0, assetBytes: 0, records: 0)
        for database in try await ContainerUsage.page(request, in: service, by: deadline).databases {
            if database.key.scope == .public {
                storage.publicBytes += database.used.bytes
            } else {
                storage.privateBytes += database.used.bytes
            }
            storage.assetBytes += database.used.assets
            storage.records += database.used.records
        }
        service.alerts.note(storage, of: key.schema)
        return storage
    }

    /// The days of a container's environment, ascending; those on which there was nothing are missing.
    package func days(of key: SchemaKey) async throws(RequestFailure) -> [(day: Int64, usage: DayUsage)] {
        var days: [Int64: DayUsage] = [:]
        let first = DayUsage.day(of: service.now) - Int64(Self.daysMax) + 1
        for entry in try await entries(of: preferences(of: key), by: service.deadline()) {
            guard let day = Self.day(ofName: entry.name), day >= first else { continue }
            days[day, default: DayUsage()].add(entry.usage)
        }
        return days.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private func entries(
        of preferences: Preferences, by deadline: Deadline
    ) async throws(RequestFailure) -> [(name: String, bytes: Int, usage: DayUsage)] {
        var entries: [(name: String, bytes: Int, usage: DayUsage)] = []
        var after: String?
        repeat {
            let json = try? JSONParser.parse(try await preferences.list(after: after, by: deadline))
            for entry in json?["values"]?.array ?? [] {
                guard let name = entry["key"]?.string, let text = entry["value"]?["value"]?.string,
                    let bytes = Base64.decode(text), let usage = try? DayUsage(decoding: bytes)
                else { continue }
                entries.append((name, bytes.count, usage))
            }
            after = json?["after"]?.string
        } while after != nil
        return entries
    }

    /// The parts of days that go: older ones than `daysMax` days, and of the others the oldest, where there are too
    /// many or they have too many bytes.
    /// - Parameter entries: by name.
    static func tooMany(_ entries: [(name: String, bytes: Int)], today: Int64) -> [String] {
        var (bytes, count) = (0, 0)
        var old: [String] = []
        for (name, size) in entries.sorted(by: { $0.name > $1.name }) {
            (bytes, count) = (bytes + size, count + 1)
            guard let day = day(ofName: name), day > today - Int64(daysMax), bytes <= bytesMax, count <= entriesMax
            else {
                old.append(name)
                continue
            }
        }
        return old
    }
}

/// When a public database is full, if it goes on to grow as it did.
package struct StorageForecast: Hashable, Sendable {
    /// A day; below 0 where it becomes less.
    package var bytesPerDay: Int64
    /// Until the limit; nil where there is none, or it is not reached that way within ten years.
    package var daysUntilFull: Int64?

    /// The days that it looks back.
    private static let daysMax = 30
    private static let daysUntilFullMax: Int64 = 3_650

    /// - Parameters:
    ///   - days: ascending.
    ///   - limit: of the public database; `ContainerLimit.unlimited` for none.
    /// - Returns: nil where fewer than two looks are at least a day apart.
    package init?(_ days: [(day: Int64, usage: DayUsage)], limit: Int64) {
        let looks = days.suffix(Self.daysMax).compactMap(\.usage.storage)
        guard let first = looks.first, let last = looks.last, last.time - first.time >= DayUsage.milliseconds else {
            return nil
        }
        let perDay =
            Double(last.publicBytes - first.publicBytes) * Double(DayUsage.milliseconds)
            / Double(last.time - first.time)
        bytesPerDay = Int64(perDay.rounded())
        guard limit != ContainerLimit.unlimited else { return }
        let left = limit - last.publicBytes
        if left <= 0 {
            daysUntilFull = 0
        } else if perDay > 0, Double(left) / perDay <= Double(Self.daysUntilFullMax) {
            daysUntilFull = Int64(Double(left) / perDay)
        }
    }
}
