/// One record, looked at alone: what its zone's other records do to the change tags is left open, so a tag need only be
/// greater than the ones before.
///
/// For zones with too many calls to be checked as a whole; `ZoneModel` finds more.
package struct RecordRegister: HistoryModel {
    /// What a client asks of the record.
    package enum Operation: Hashable, Sendable, CustomStringConvertible {
        case write(RecordWrite)
        case fetch(String)

        package var description: String {
            switch self {
            case .write(let write): "\(write)"
            case .fetch(let name): "fetch \(name)"
            }
        }
    }

    /// What it is told.
    package enum Outcome: Hashable, Sendable, CustomStringConvertible {
        case write(WriteOutcome)
        /// Nil: there is no such record.
        case found(RecordCopy?)

        package var description: String {
            switch self {
            case .write(let outcome): "\(outcome)"
            case .found(let record): record.map { "found \($0)" } ?? "no record"
            }
        }
    }

    /// What the record is.
    package struct State: Hashable, Sendable, CustomStringConvertible {
        /// Nil: there is none.
        package var content: [String: String]?
        /// Nil where an unknown outcome made it what it is, until somebody sees it.
        package var version: Version?
        /// The greatest version that is known to be used up.
        package var floor: Version

        package var description: String {
            guard let content else { return "no record, after \(floor)" }
            guard let version else { return "\(content) of an unknown version above \(floor)" }
            return "\(RecordCopy(content, version))"
        }
    }

    package let initial: State

    /// A record as it is when the history begins; nil for none.
    package init(_ record: RecordCopy? = nil) {
        initial = State(content: record?.content, version: record?.version, floor: record?.version ?? Version(0, 0))
    }

    package func changesNothing(_ operation: Operation, outcome: Outcome?) -> Bool {
        switch (operation, outcome) {
        case (.fetch, _): true
        case (.write, .write(let outcome)): outcome.isFailure
        case (.write, _): false
        }
    }

    package func hints(of calls: [History<Operation, Outcome>.Call]) -> [UInt64?] {
        var sights = WriteSights()
        for call in calls {
            switch call.outcome {
            case .write(let outcome): sights.see(outcome)
            case .found(let record): sights.see(record)
            case nil: break
            }
        }
        return calls.map { call in
            switch (call.operation, call.outcome) {
            case (_, .write(.saved(let version))): version.place(isChange: true)
            case (_, .write(let other)): other.version?.place(isChange: false)
            case (_, .found(let record)): record?.version.place(isChange: false)
            case (.write(let write), nil): sights.first(of: write)?.place(isChange: true)
            case (.fetch, nil): nil
            }
        }
    }

    package func mayCome(_ operation: Operation, outcome: Outcome, after state: State) -> Bool {
        switch outcome {
        case .write(.saved(let version)): version > state.floor
        case .write(let other): other.version.map { $0 >= state.floor } ?? true
        case .found(let record): record.map { $0.version >= state.floor } ?? true
        }
    }

    package func states(after operation: Operation, outcome: Outcome?, from state: State) -> [State] {
        switch (operation, outcome) {
        case (.fetch, nil): [state]
        case (.fetch, .found(let record)): sees(record, state)
        case (.write(let write), nil): unknown(write, state)
        case (.write(let write), .write(let outcome)): states(after: write, outcome, state)
        case (.fetch, .write), (.write, .found): []
        }
    }

    /// The state in which somebody is shown this.
    private func sees(_ record: RecordCopy?, _ state: State) -> [State] {
        guard let record else { return state.content == nil ? [state] : [] }
        guard record.content == state.content else { return [] }
        if let version = state.version { return version == record.version ? [state] : [] }
        guard record.version > state.floor else { return [] }
        return [State(content: record.content, version: record.version, floor: record.version)]
    }

    /// Whether the record may have the version that a change expects: both where it is not known.
    private func isExpected(_ write: RecordWrite, _ state: State) -> [Bool] {
        guard state.content != nil else { return [false] }
        if let version = state.version { return [version == write.version] }
        return write.version.map { $0 > state.floor } ?? false ? [true, false] : [false]
    }

    private func unknown(_ write: RecordWrite, _ state: State) -> [State] {
        isExpected(write, state).map { isExpected in
            let floor = isExpected ? max(state.floor, write.version ?? state.floor) : state.floor
            return switch write.effect(on: state.content, isExpected: isExpected) {
            case .save(let content): State(content: content, version: nil, floor: floor)
            case .delete: State(content: nil, version: nil, floor: floor)
            case .nothing, .exists, .conflict, .notFound: state
            }
        }
    }

    private func states(after write: RecordWrite, _ outcome: WriteOutcome, _ state: State) -> [State] {
        isExpected(write, state).flatMap { isExpected -> [State] in
            let floor = isExpected ? max(state.floor, write.version ?? state.floor) : state.floor
            switch (write.effect(on: state.content, isExpected: isExpected), outcome) {
            case (.save(let content), .saved(let version)) where version > floor:
                return [State(content: content, version: version, floor: version)]
            case (.delete, .deleted): return [State(content: nil, version: nil, floor: floor)]
            case (.nothing, .deleted), (.notFound, .notFound): return [state]
            case (.exists, .exists(let record)), (.conflict, .conflict(let record)):
                guard let record else { return [state] }
                return record.version == write.version && write.kind != .create ? [] : sees(record, state)
            default: return []
            }
        }
    }
}
