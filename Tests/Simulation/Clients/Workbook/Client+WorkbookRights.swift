import Authorization
import RecordModel
import Service

// What may be written of public records that somebody made.
extension Client {
    /// Deletes a public record that others refer to: with it goes what its deleter may delete, and nothing else.
    func deleteBesideOthers() async {
        let place = 3
        guard let book = workbook else { return }
        let (deleter, other) = (book.people[0], book.people[2])
        let names = Array(book.zones[place].names.shuffled(using: &world.generator).prefix(3))
        func save(_ name: String, refersTo target: String? = nil) -> Workbook.Operation {
            var operation = Workbook.Operation(kind: .forceReplace, name: name, type: book.type)
            operation.fields = [(Workbook.rank, .int64(book.rank(of: name)))]
            if let target {
                operation.fields.append((Workbook.owner, .reference(.init(recordName: target, action: .deleteSelf))))
            }
            return operation
        }
        let steps: [(Workbook.Person, [Workbook.Operation])] = [
            (.administrator, names.map { .init(kind: .forceDelete, name: $0) }),
            (other, [save(names[1], refersTo: names[0])]),
            (deleter, [save(names[0]), save(names[2], refersTo: names[0])]),
            (deleter, [.init(kind: .forceDelete, name: names[0])]),
        ]
        for (person, operations) in steps {
            guard await settle(place, triesMax: 3), await make(operations, by: person, in: place) != nil else { return }
        }
        if let zone = workbook?.zones[place], zone.entries[names[0]] == nil, zone.entries[names[1]] != nil {
            world.met(.sparedByCascade)
        }
        if await settle(place, triesMax: 3) { await lookUpEntries(place) }
    }

    private func newProfileOperation(_ name: String, _ book: Workbook) -> Workbook.Operation {
        var operation = Workbook.Operation(
            kind: world.pick([.create, .update, .replace, .forceUpdate, .forceUpdate, .forceReplace, .forceDelete]),
            name: name)
        if operation.kind.checksTag { operation.tag = book.profiles[name] ?? Workbook.unknownTag }
        if operation.kind.isDelete { return operation }
        operation.type = RecordType.usersName
        if world.chance(50) {
            operation.fields = [(RecordType.rolesField, .list(.int64, [.int64(Int64(world.random(0...2)))]))]
        }
        return operation
    }

    /// Writes a user's own record, which nobody else but the administrator may, and of which clients set no roles.
    func writeProfile() async {
        guard let book = workbook else { return }
        let users = book.people.filter { $0 != .administrator && $0.caller.user != nil }
        let user = world.pick(users)
        let person = world.chance(60) ? user : world.pick(book.people)
        let operation = newProfileOperation(user.caller.stampName, book)
        let zone = book.zones[3]
        let identity = Visit.Identity(key: newKey(), body: book.body([operation], in: zone, isAtomic: false))
        let answer = await ask(as: person, of: zone.key.database, identity) { visit, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: identity.body))
        }
        let what = "\(operation) by \(person.caller.stampName)"
        switch answer {
        case .nothing: leaveWorkbook()
        case .failed(let failure): complainOfWorkbook("\(what) is refused: \(failure.error)")
        case .answered(let result, _):
            recorder.answered()
            let (name, expected) = (operation.name, book.refusal(ofProfile: operation, by: person))
            if person == user, book.profiles[name] == nil { workbook?.profiles[name] = Workbook.unknownTag }
            switch (result.items.first?.outcome, expected) {
            case (.deleted, nil) where operation.kind.isDelete: break
            case (.saved(let record, _), nil) where record.name == name && record.fields.all.isEmpty:
                workbook?.profiles[name] = record.changeTag
            case (.failed(let error, _), let code?) where error.code == code: world.met(.refusedProfile)
            default:
                complainOfWorkbook("\(what) is answered \(result.items), and must be \(expected?.rawValue ?? "done")")
            }
        }
    }
}

extension Workbook {
    /// Of a user's record that a node made, as its user named it for the first time.
    fileprivate static let unknownTag = ChangeTag(incarnation: 1, sequence: 0)

    /// What refuses a change of a user's own record; nil where it is done.
    fileprivate func refusal(ofProfile operation: Operation, by person: Person) -> ErrorCode? {
        let isOwn = person.caller.user == operation.name
        let tag = profiles[operation.name] ?? (isOwn ? Self.unknownTag : nil)
        switch operation.kind {
        case .create: return isOwn ? .exists : .accessDenied
        case .delete, .forceDelete: return tag == nil ? nil : .accessDenied
        case .update, .replace: if tag == nil { return .notFound }
        case .forceUpdate, .forceReplace: break
        }
        guard isOwn || tag != nil && person == .administrator else { return .accessDenied }
        if operation.kind.checksTag, operation.tag != tag || tag == Self.unknownTag { return .conflict }
        return operation.fields.isEmpty ? nil : .accessDenied
    }
}
