import Authorization
import RecordModel

// What comes of changes.
extension Workbook {
    struct Operation: Sendable {
        var kind: RecordOperation.Kind
        var name: String
        /// Left out in some updates.
        var type: String?
        var tag: ChangeTag?
        var fields: [(name: String, value: FieldValue?)] = []
    }

    /// What is to come of one operation.
    enum Expected: Sendable {
        /// - Parameters:
        ///   - entry: the record, but for its tag and times.
        ///   - shown: the fields that the answer tells.
        ///   - sent: those that came with the request.
        case saved(
            Entry, isNew: Bool, isReadable: Bool, shown: [String: FieldValue], sent: [String: FieldValue])
        case deleted
        /// - Parameter isLate: whether the shard refused it, which it remembers.
        case failed(ErrorCode, server: Entry? = nil, isLate: Bool = true)

        var isFailure: Bool { if case .failed = self { true } else { false } }
    }

    /// What is to come of a request.
    struct Judged: Sendable {
        var items: [Expected]
        var isAtomicFailure = false
        /// Whether the shard has to do with it.
        var isSent = true
        /// The zone afterwards, with records that were saved without their tags and times.
        var zone: Zone
    }

    /// What is to come of operations one after the other.
    func judge(_ operations: [Operation], by person: Person, in place: Int, isAtomic: Bool) -> Judged {
        let before = zones[place]
        let isAtomic = isAtomic && before.isCustom
        let early = operations.map { refusal(of: $0, by: person, in: before) }
        let refused = early.count { $0 != nil }
        if refused == operations.count || isAtomic && refused > 0 {
            let items = early.map { $0 ?? .failed(.atomicError, isLate: false) }
            return Judged(items: items, isAtomicFailure: isAtomic, isSent: false, zone: before)
        }
        var judged = Judged(items: [], zone: before)
        for (operation, refusal) in zip(operations, early) {
            judged.items.append(refusal ?? perform(operation, by: person, in: &judged.zone))
        }
        goOn(by: person, in: &judged.zone)
        guard isAtomic, judged.items.contains(where: \.isFailure) else { return judged }
        let items = judged.items.map { $0.isFailure ? $0 : .failed(.atomicError) }
        return Judged(items: items, isAtomicFailure: true, zone: before)
    }

    /// Why a node refuses an operation before a shard sees it.
    private func refusal(of operation: Operation, by person: Person, in zone: Zone) -> Expected? {
        let live = zone.entries[operation.name]
        if operation.type == nil, !operation.kind.isDelete, !operation.fields.isEmpty {
            guard let live else { return .failed(.notFound, isLate: false) }
            if !mayRead(person, live, in: zone) { return .failed(.badRequest, isLate: false) }
        }
        if zone.isPublic, operation.fields.contains(where: { $0.name == Self.secret && $0.value != nil }) {
            return .failed(.badRequest, isLate: false)
        }
        let isTyped = operation.type != nil || !operation.fields.isEmpty
        let most = permissions(person, in: zone, isCreator: true)
        let isDenied =
            switch operation.kind {
            case .create: !most.contains(.create)
            case .forceUpdate, .forceReplace: most.isDisjoint(with: [.create, .write])
            case .update, .replace: isTyped && !most.contains(.write)
            case .delete, .forceDelete: false
            }
        return isDenied ? .failed(.accessDenied, isLate: false) : nil
    }

    private func perform(_ operation: Operation, by person: Person, in zone: inout Zone) -> Expected {
        guard let live = zone.entries[operation.name] else {
            switch operation.kind {
            case .create, .forceUpdate, .forceReplace: return create(operation, by: person, in: &zone)
            case .update, .replace, .delete: return .failed(.notFound)
            case .forceDelete: return .deleted
            }
        }
        let readable = mayRead(person, live, in: zone) ? live : nil
        if operation.kind == .create { return .failed(.exists, server: readable) }
        guard permissions(person, live, in: zone).contains(.write) else { return .failed(.accessDenied) }
        if operation.kind.checksTag, operation.tag != live.tag { return .failed(.conflict, server: readable) }
        if operation.kind.isDelete { return delete(live, by: person, in: &zone) }
        if let type = operation.type, type != self.type { return .failed(.badRequest) }
        if lacksTarget(operation, in: zone) { return .failed(.validatingReferenceError) }
        let keepsFields = operation.kind == .update || operation.kind == .forceUpdate
        var entry = live
        entry.fields = merged(operation, onto: keepsFields ? live.fields : [:])
        entry.modified.user = person.caller.stampName
        let (sent, isReadable) = (merged(operation, onto: [:]), readable != nil)
        let shown = isReadable ? entry.fields : sent
        keep(live, isDeletion: false, by: person, in: &zone)
        save(entry, in: &zone)
        return .saved(entry, isNew: false, isReadable: isReadable, shown: shown, sent: sent)
    }

    private func create(_ operation: Operation, by person: Person, in zone: inout Zone) -> Expected {
        let most = permissions(person, in: zone, isCreator: true)
        guard most.contains(.create) else { return .failed(.accessDenied) }
        if lacksTarget(operation, in: zone) { return .failed(.validatingReferenceError) }
        let stamp = Stamp(timestamp: 0, user: person.caller.stampName)
        let entry = Entry(
            name: operation.name, fields: merged(operation, onto: [:]), tag: .blank, created: stamp, modified: stamp)
        save(entry, in: &zone)
        return .saved(
            entry, isNew: true, isReadable: mayRead(person, entry, in: zone), shown: entry.fields, sent: entry.fields)
    }

    private func merged(_ operation: Operation, onto stored: [String: FieldValue]) -> [String: FieldValue] {
        var fields = stored
        for field in operation.fields { fields[field.name] = field.value }
        return fields
    }

    private func save(_ entry: Entry, in zone: inout Zone) {
        zone.sequence += 1
        zone.hasNews = true
        zone.entries[entry.name] = entry
        zone.entries[entry.name]?.tag = ChangeTag(incarnation: zone.incarnation, sequence: zone.sequence)
        zone.tombstones[entry.name] = nil
    }

    private func keep(_ entry: Entry, isDeletion: Bool, by person: Person, in zone: inout Zone) {
        let earlier = Earlier(entry: entry, isDeletion: isDeletion, replacedBy: person.caller.stampName)
        let all = [earlier] + (zone.earlier[entry.name] ?? [])
        zone.earlier[entry.name] = Array(all.prefix(versionsKept))
    }

    // MARK: References

    /// Whether a record that the operation's values rely on is not there.
    private func lacksTarget(_ operation: Operation, in zone: Zone) -> Bool {
        operation.fields.flatMap { $0.value?.references ?? [] }.contains { reference in
            reference.action == .validate && reference.recordName != operation.name
                && zone.entries[reference.recordName] == nil
        }
    }

    private static func refers(_ entry: Entry, to name: String, _ action: Reference.Action) -> Bool {
        entry.fields.values.contains { value in
            value.references.contains { $0.recordName == name && $0.action == action }
        }
    }

    private func sources(of name: String, by person: Person, in zone: Zone) -> [String] {
        zone.entries.values.filter { entry in
            Self.refers(entry, to: name, .deleteSelf) && permissions(person, entry, in: zone).contains(.write)
        }.map(\.name).sorted()
    }

    /// Whether another record than these relies on this one.
    private func isHeld(_ name: String, outside members: Set<String>, in zone: Zone) -> Bool {
        zone.entries.values.contains {
            $0.name != name && !members.contains($0.name) && Self.refers($0, to: name, .validate)
        }
    }

    /// A record's name and all that go with it.
    private func cascade(from name: String, by person: Person, in zone: Zone) -> Set<String> {
        var members: Set = [name]
        var waiting = [name]
        while let next = waiting.popLast() {
            for source in sources(of: next, by: person, in: zone) where members.insert(source).inserted {
                waiting.append(source)
            }
        }
        return members
    }

    private func delete(_ entry: Entry, by person: Person, in zone: inout Zone) -> Expected {
        let members = cascade(from: entry.name, by: person, in: zone)
        let held = zone.isCustom ? members : [entry.name]
        if held.contains(where: { isHeld($0, outside: members, in: zone) }) {
            return .failed(.validatingReferenceError)
        }
        bury(entry.name, by: person, in: &zone)
        if zone.isCustom {
            let (others, first) = (members.subtracting([entry.name]).sorted(), zone.sequence + 1)
            for name in others { bury(name, by: person, in: &zone) }
            for name in others { zone.tombstones[name] = first...zone.sequence }
        } else {
            let sources = zone.entries.values.filter { Self.refers($0, to: entry.name, .deleteSelf) }
            zone.jobs.append((entry.name, Set(sources.map(\.name))))
        }
        return .deleted
    }

    private func bury(_ name: String, by person: Person, in zone: inout Zone) {
        guard let entry = zone.entries.removeValue(forKey: name) else { return }
        keep(entry, isDeletion: true, by: person, in: &zone)
        zone.sequence += 1
        zone.hasNews = true
        zone.tombstones[name] = zone.sequence...zone.sequence
    }

    /// What jobs take away later, in a zone that is not atomic: what refers to a deleted record since before.
    private func goOn(by person: Person, in zone: inout Zone) {
        while !zone.jobs.isEmpty {
            let job = zone.jobs.removeFirst()
            let sources = sources(of: job.target, by: person, in: zone).filter(job.sources.contains)
            let isAnyHeld = sources.contains { isHeld($0, outside: [], in: zone) }
            let along = sources.reduce(into: Set<String>()) { along, source in
                along.formUnion(cascade(from: source, by: person, in: zone))
            }
            for source in sources {
                if isAnyHeld, isHeld(source, outside: along, in: zone) {
                    zone.spared.insert(source)
                    continue
                }
                let next = zone.entries.values.filter { Self.refers($0, to: source, .deleteSelf) }
                bury(source, by: person, in: &zone)
                zone.doomed.insert(source)
                zone.jobs.append((source, Set(next.map(\.name))))
            }
        }
    }

    /// Whether nothing relies any more on a record that was to be spared: a job that comes after that takes it away.
    func isInDoubt(_ zone: Zone) -> Bool {
        zone.spared.contains { zone.entries[$0] != nil && !isHeld($0, outside: zone.spared, in: zone) }
    }
}
