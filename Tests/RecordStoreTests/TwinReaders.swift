import GRDB
import RecordModel
import RecordStore
import Testing

/// Readers of notifications, told naively, and random commands for them.
struct TwinReaders {
    private var random: Random
    private var readers: [String: LogReader] = [:]
    /// Of the owner's log; nil where it has none.
    private var life: UInt64?
    /// Below it no further life begins.
    private var leastLife: UInt64 = 0
    private static let owner = Fixture.annsData
    private static let namesMax = 130

    init(_ seed: UInt64) { random = Random(seed) }

    private static func name(_ number: Int) -> String { "r\(number)" }

    /// The next command: mostly a move from where the reader is.
    mutating func next(at time: Int64) -> LogReaderCommand {
        if Int.random(in: 0..<200, using: &random) == 0 { return .forget(subscriber: Self.owner, time: time) }
        let name = Self.name(Int.random(in: 0..<Self.namesMax, using: &random))
        let known = readers[name]?.version ?? 0
        let isStale = Int.random(in: 0..<6, using: &random) == 0
        let isForGood = Int.random(in: 0..<20, using: &random) == 0
        let length = Int.random(in: 0..<40, using: &random) == 0 ? LogReader.bytesMax + 1 : 3
        return .move(
            subscriber: Self.owner, home: 1, time: time, name: name, from: isStale ? known + 1 : known,
            to: LogReader(
                version: UInt64.random(in: 0...9, using: &random),
                expires: isForGood ? nil : time + Int64.random(in: 1...60_000, using: &random),
                body: [UInt8](repeating: UInt8.random(in: 0...9, using: &random), count: length)))
    }

    /// - Parameter floor: below it no incarnation and no life begins.
    mutating func apply(_ command: LogReaderCommand, floor: UInt64) -> Bool {
        switch command {
        case .forget:
            if let life { leastLife = life + 1 }
            (readers, life) = ([:], nil)
            return true
        case .move(_, _, _, let name, let version, var reader):
            life = life ?? max(floor, leastLife)
            guard readers[name]?.version ?? 0 == version, reader.body.count <= LogReader.bytesMax else { return false }
            reader.version = version + 1
            if readers[name] == nil, readers.count >= LogReader.countMax {
                // One that never expires goes last.
                let first = readers.min {
                    ($0.value.expires ?? .max, $0.key) < ($1.value.expires ?? .max, $1.key)
                }
                if let first { readers[first.key] = nil }
            }
            readers[name] = reader
            return true
        }
    }

    /// Maintenance at a time of the shard.
    mutating func maintain(at time: Int64) { readers = readers.filter { $0.value.expires ?? .max > time } }

    func expectSame(_ shard: Fixture, _ step: Int) throws {
        #expect(try shard.count("SELECT count(*) FROM log_reader") == readers.count, "step \(step)")
        for number in 0..<Self.namesMax {
            let name = Self.name(number)
            let found = try shard.queue.read { try LogReader.find(name, of: Self.owner, in: $0) }
            #expect(found == readers[name], "step \(step): \(name)")
        }
    }
}
