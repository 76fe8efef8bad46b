extension ZoneModel {
    package func hints(of calls: [History<Operation, Outcome>.Call]) -> [UInt64?] {
        var sights = WriteSights()
        for call in calls {
            switch call.outcome {
            case .items(let items), .batchFailed(let items): for item in items { sights.see(item) }
            case .records(let records): for record in records { sights.see(record) }
            case .view(let records): for record in records.values { sights.see(record) }
            case .zone, .zoneDeleted, .zoneNotFound, .restored, nil: break
            }
        }
        return calls.map { call in
            if let outcome = call.outcome { return hint(of: outcome) }
            guard case .modify(let writes, _) = call.operation else { return nil }
            return writes.compactMap { sights.first(of: $0) }.min()?.place(isChange: true)
        }
    }

    /// By the greatest change tag that the answer shows.
    private func hint(of outcome: Outcome) -> UInt64? {
        switch outcome {
        case .items(let items):
            let isChange = items.contains { if case .saved = $0 { true } else { false } }
            return items.compactMap(\.version).max()?.place(isChange: isChange)
        case .batchFailed(let items): return items.compactMap(\.version).max()?.place(isChange: false)
        case .records(let records): return records.compactMap { $0?.version }.max()?.place(isChange: false)
        case .view(let records): return records.values.map(\.version).max()?.place(isChange: false)
        case .zone, .zoneDeleted, .zoneNotFound, .restored: return nil
        }
    }

    package func mayCome(_ operation: Operation, outcome: Outcome, after state: State) -> Bool {
        let now = Version(state.incarnation, state.sequence)
        func mayShow(_ record: RecordCopy?, named name: String) -> Bool {
            guard let record else { return true }
            return record.version > now || state.records[name] == record
        }
        switch (operation, outcome) {
        case (.modify(let writes, _), .items(let items)), (.modify(let writes, _), .batchFailed(let items)):
            return zip(writes, items).allSatisfy { write, item in
                switch item {
                case .saved(let version): version > now
                case .exists(let record), .conflict(let record): mayShow(record, named: write.name)
                case .deleted, .notFound, .notDone: true
                }
            }
        case (.lookup(let names), .records(let records)):
            return zip(names, records).allSatisfy { mayShow($1, named: $0) }
        case (_, .view(let records)): return records.allSatisfy { mayShow($1, named: $0) }
        default: return true
        }
    }
}

/// At which change tag each content was first seen: where a write without an answer took effect, if the values that
/// clients write are their own.
struct WriteSights {
    private var first: [[String: String]: Version] = [:]

    mutating func see(_ record: RecordCopy?) {
        guard let record else { return }
        // A change of some fields is known by each of them.
        for (field, value) in record.content {
            first[[field: value]] = min(first[[field: value]] ?? record.version, record.version)
        }
    }

    mutating func see(_ outcome: WriteOutcome) {
        if case .exists(let record) = outcome { see(record) }
        if case .conflict(let record) = outcome { see(record) }
    }

    func first(of write: RecordWrite) -> Version? {
        write.fields.compactMap { field, value in value.flatMap { first[[field: $0]] } }.max()
    }
}

extension Version {
    /// A number that grows with versions; sights of a version come after the change that made it.
    func place(isChange: Bool) -> UInt64 { (incarnation << 40 | sequence) &* 2 + (isChange ? 0 : 1) }
}
