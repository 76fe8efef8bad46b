/// One zone with all its records, change by change: each changed record takes the next number of the zone's sequence,
/// so that a change that was lost, doubled or cut in two shows in every later change tag.
///
/// Holds for zones in which only the recorded calls change anything: no cascades, no restores. What a feed or a query
/// of a single page answers is a look at the whole zone, too.
package struct ZoneModel: HistoryModel {
    /// What a client asks of the zone.
    package enum Operation: Hashable, Sendable {
        /// One request. `isAtomic` counts in custom zones.
        case modify([RecordWrite], isAtomic: Bool = false)
        case lookup([String])
        /// All records, as who follows the feed has them when there is nothing more to come: called when the feed's
        /// last page is asked for.
        case view
        /// The records whose field has this value.
        case query(field: String, equals: String)
        case createZone
        case deleteZone
        /// The cluster is as it was here, from a backup, and begins another life.
        case restore(incarnation: UInt64)
    }

    /// What it is told.
    package enum Outcome: Hashable, Sendable {
        /// One for each change, in order; each stands alone.
        case items([WriteOutcome])
        /// Nothing was written: what failed says why, the others `notDone`.
        case batchFailed([WriteOutcome])
        /// One for each name; nil where there is no record.
        case records([RecordCopy?])
        /// By name, for `view` and `query`.
        case view([String: RecordCopy])
        /// The zone is there now. Its life's number, where the answer tells it.
        case zone(incarnation: UInt64?)
        case zoneDeleted
        case zoneNotFound
        case restored
    }

    /// What the zone is.
    package struct State: Hashable, Sendable {
        /// Whether it is there.
        package var isLive: Bool
        /// The number of its life, or of its last one.
        package var incarnation: UInt64
        /// The number of its last change.
        package var sequence: UInt64
        /// By name.
        package var records: [String: RecordCopy]
        /// A zone that is there without being made, and gets its first life with its first change: the default zone.
        package var isDefault: Bool

        /// A zone in which nothing was ever written: a custom one that is to be made, or a default one.
        package static func unwritten(isDefault: Bool = false) -> State {
            State(isLive: isDefault, incarnation: 0, sequence: 0, records: [:], isDefault: isDefault)
        }

        /// A zone in its first life, in which nothing was written.
        package static let made = State(isLive: true, incarnation: 1, sequence: 0, records: [:], isDefault: false)

        /// A zone as it is.
        package init(
            isLive: Bool, incarnation: UInt64, sequence: UInt64, records: [String: RecordCopy], isDefault: Bool
        ) {
            self.isLive = isLive
            self.incarnation = incarnation
            self.sequence = sequence
            self.records = records
            self.isDefault = isDefault
        }

        /// The numbers say nearly everything; the records are compared where they agree.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(isLive)
            hasher.combine(incarnation)
            hasher.combine(sequence)
            hasher.combine(records.count)
        }
    }

    package let initial: State

    /// A zone as it is when the history begins.
    package init(_ initial: State) { self.initial = initial }

    package func changesNothing(_ operation: Operation, outcome: Outcome?) -> Bool {
        switch (operation, outcome) {
        case (.lookup, _), (.view, _), (.query, _), (_, .zoneNotFound), (_, .batchFailed): true
        case (_, .items(let items)): items.allSatisfy(\.isFailure)
        case (.modify, _), (.createZone, _), (.deleteZone, _), (.restore, _): false
        }
    }

    package func states(after operation: Operation, outcome: Outcome?, from state: State) -> [State] {
        if case .createZone = operation { return created(outcome, state) }
        if case .restore(let incarnation) = operation { return [state.restored(as: incarnation)] }
        guard state.isLive else { return outcome == nil || outcome == .zoneNotFound ? [state] : [] }
        switch operation {
        case .createZone, .restore: return []
        case .deleteZone: return outcome == nil || outcome == .zoneDeleted ? [state.deleted] : []
        case .modify(let writes, let isAtomic):
            let (answer, next) = state.after(writes, isAtomic: isAtomic && !state.isDefault)
            return outcome.map { answer.isShown(by: $0) } ?? true ? [next] : []
        case .lookup(let names):
            return outcome == nil || outcome == .records(names.map { state.records[$0] }) ? [state] : []
        case .view:
            return outcome == nil || outcome == .view(state.records) ? [state] : []
        case .query(let field, let value):
            let found = state.records.filter { $0.value.content[field] == value }
            return outcome == nil || outcome == .view(found) ? [state] : []
        }
    }

    private func created(_ outcome: Outcome?, _ state: State) -> [State] {
        let next = state.isLive ? state : state.created
        switch outcome {
        case nil, .zone(nil): return [next]
        case .zone(let incarnation?): return incarnation == next.incarnation ? [next] : []
        default: return []
        }
    }
}

extension ZoneModel.State {
    fileprivate var created: Self {
        Self(isLive: true, incarnation: incarnation + 1, sequence: 0, records: [:], isDefault: false)
    }

    fileprivate var deleted: Self {
        Self(isLive: false, incarnation: incarnation, sequence: sequence, records: [:], isDefault: isDefault)
    }

    /// What is there has tags of another life, a default zone also before its first change; what is not keeps the
    /// number of its last one.
    fileprivate func restored(as incarnation: UInt64) -> Self {
        guard isLive else { return self }
        var next = self
        next.incarnation = incarnation
        for name in records.keys { next.records[name]?.version.incarnation = incarnation }
        return next
    }

    /// What a request is answered, and the zone after it.
    fileprivate func after(_ writes: [RecordWrite], isAtomic: Bool) -> (ZoneModel.Outcome, Self) {
        var next = self
        let items = writes.map { next.apply($0) }
        guard isAtomic, items.contains(where: \.isFailure) else { return (.items(items), next) }
        return (.batchFailed(items.map { $0.isFailure ? $0 : .notDone }), self)
    }

    private mutating func apply(_ write: RecordWrite) -> WriteOutcome {
        let record = records[write.name]
        switch write.effect(on: record) {
        case .save(let content):
            let version = nextVersion()
            records[write.name] = RecordCopy(content, version)
            return .saved(version)
        case .delete:
            _ = nextVersion()
            records[write.name] = nil
            return .deleted
        case .nothing: return .deleted
        case .exists: return .exists(record)
        case .conflict: return .conflict(record)
        case .notFound: return .notFound
        }
    }

    private mutating func nextVersion() -> Version {
        if incarnation == 0 { incarnation = 1 }
        sequence += 1
        return Version(incarnation, sequence)
    }
}

extension WriteOutcome {
    var isFailure: Bool {
        switch self {
        case .saved, .deleted: false
        case .exists, .conflict, .notFound, .notDone: true
        }
    }

    /// Whether an answer may be this item: it may leave out the record that clashed.
    func isShown(by answer: WriteOutcome) -> Bool {
        switch answer {
        case .exists(nil): if case .exists = self { true } else { false }
        case .conflict(nil): if case .conflict = self { true } else { false }
        default: self == answer
        }
    }
}

extension ZoneModel.Outcome {
    fileprivate func isShown(by answer: Self) -> Bool {
        switch (self, answer) {
        case (.items(let items), .items(let answers)), (.batchFailed(let items), .batchFailed(let answers)):
            items.count == answers.count && zip(items, answers).allSatisfy { $0.isShown(by: $1) }
        default: self == answer
        }
    }
}
