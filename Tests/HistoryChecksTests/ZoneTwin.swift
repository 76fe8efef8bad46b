import HistoryChecks
import RaftCore

/// A zone of a service as one would write it without thinking: clients' requests wait, take effect at some moment, and
/// are answered at some later moment, or never.
struct ZoneTwin {
    struct Waiting {
        var id: History<ZoneModel.Operation, ZoneModel.Outcome>.CallID
        var client: Int
        var operation: ZoneModel.Operation
        var outcome: ZoneModel.Outcome?
    }

    var history = History<ZoneModel.Operation, ZoneModel.Outcome>()
    private(set) var waiting: [Waiting] = []
    private var rows: [String: (fields: [String: String], sequence: UInt64)] = [:]
    private var sequence: UInt64 = 0
    private var generator: SplitMix64
    private var values = 0
    private let names: [String]
    private let clients: Int
    /// Of a hundred answers, how many never come.
    private let lostPercent: Int

    init(seed: UInt64, names: Int, clients: Int, lostPercent: Int) {
        generator = SplitMix64(seed: seed)
        self.names = (0..<names).map { "r\($0)" }
        self.clients = clients
        self.lostPercent = lostPercent
    }

    /// One of: a client asks, a request takes effect, an answer comes.
    mutating func step() {
        let idle = (0..<clients).filter { client in !waiting.contains { $0.client == client } }
        let choice = roll(3)
        if choice == 0, let client = idle.randomElement(using: &generator) {
            let operation = randomOperation()
            let id = history.begin(operation, client: client, at: Int64(history.count))
            waiting.append(Waiting(id: id, client: client, operation: operation))
        } else if choice == 1,
            let index = waiting.indices.filter({ waiting[$0].outcome == nil }).randomElement(using: &generator)
        {
            waiting[index].outcome = perform(waiting[index].operation)
        } else if let index = waiting.indices.filter({ waiting[$0].outcome != nil }).randomElement(using: &generator) {
            answer(index)
        } else if roll(100) < lostPercent, let index = waiting.indices.randomElement(using: &generator) {
            // It never took effect, and nobody will know.
            waiting.remove(at: index)
        }
    }

    private mutating func answer(_ index: Int) {
        let call = waiting.remove(at: index)
        guard roll(100) >= lostPercent, let outcome = call.outcome else { return }
        history.end(call.id, outcome, at: Int64(history.count))
    }

    private mutating func roll(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    private mutating func randomOperation() -> ZoneModel.Operation {
        switch roll(10) {
        case 0: return .view
        case 1...4: return .lookup([names[roll(names.count)]])
        case 5: return .modify([randomWrite(names[0]), randomWrite(names[names.count - 1])], isAtomic: roll(2) == 0)
        default: return .modify([randomWrite(names[roll(names.count)])])
        }
    }

    private mutating func randomWrite(_ name: String) -> RecordWrite {
        values += 1
        let fields: [String: String?] = [roll(2) == 0 ? "a" : "b": "v\(values)"]
        // Now and then an older tag, so that writes clash.
        let version = rows[name].map { Version(1, roll(4) == 0 ? max($0.sequence, 2) - 1 : $0.sequence) }
        switch roll(7) {
        case 0: return RecordWrite(.create, name, fields: fields)
        case 1: return RecordWrite(.forceUpdate, name, fields: fields)
        case 2: return RecordWrite(.forceReplace, name, fields: fields)
        case 3: return RecordWrite(.forceDelete, name)
        case 4: return RecordWrite(.delete, name, version: version ?? Version(1, 1))
        case 5: return RecordWrite(.replace, name, fields: fields, version: version ?? Version(1, 1))
        default: return RecordWrite(.update, name, fields: fields, version: version ?? Version(1, 1))
        }
    }

    private mutating func perform(_ operation: ZoneModel.Operation) -> ZoneModel.Outcome {
        switch operation {
        case .lookup(let names): return .records(names.map(copy))
        case .view: return .view(view)
        case .query(let field, let value): return .view(view.filter { $0.value.content[field] == value })
        case .createZone, .deleteZone, .restore: preconditionFailure("the twin's zone is there for good")
        case .modify(let writes, let isAtomic):
            let kept = (rows, sequence)
            let items = writes.map { write($0) }
            let failed = items.map { if case .saved = $0 { false } else { $0 != .deleted } }
            guard isAtomic, failed.contains(true) else { return .items(items) }
            (rows, sequence) = kept
            return .batchFailed(zip(items, failed).map { $1 ? $0 : .notDone })
        }
    }

    private func copy(_ name: String) -> RecordCopy? {
        rows[name].map { RecordCopy($0.fields, Version(1, $0.sequence)) }
    }

    private var view: [String: RecordCopy] { rows.mapValues { RecordCopy($0.fields, Version(1, $0.sequence)) } }

    private mutating func write(_ write: RecordWrite) -> WriteOutcome {
        let row = rows[write.name]
        let needsTag = [.update, .replace, .delete].contains(write.kind)
        if needsTag, row == nil { return .notFound }
        if let row, needsTag, Version(1, row.sequence) != write.version { return .conflict(copy(write.name)) }
        if write.kind == .create, row != nil { return .exists(copy(write.name)) }
        if [.delete, .forceDelete].contains(write.kind) {
            if rows.removeValue(forKey: write.name) != nil { sequence += 1 }
            return .deleted
        }
        sequence += 1
        var fields = [.update, .forceUpdate].contains(write.kind) ? row?.fields ?? [:] : [:]
        for (name, value) in write.fields { fields[name] = value }
        rows[write.name] = (fields, sequence)
        return .saved(Version(1, sequence))
    }
}
