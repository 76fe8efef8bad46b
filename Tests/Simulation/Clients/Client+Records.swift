import HistoryChecks
import RecordModel
import RecordStore
import Service

// What a client does with records.
extension Client {
    static let names = ["r0", "r1", "r2", "r3", "r4"]
    static let kinds = ["k0", "k1", "k2"]

    func save() async {
        if world.chance(25) { return await save(in: world.random(0...(recorder.zones.count - 1)), isKeyless: true) }
        await modify(write: 1, isAtomic: false)
    }

    func save(in zone: Int, isKeyless: Bool = false) async {
        guard isKeyless else {
            return await modify(zone, [newRecordWrite(world.pick(Self.names), in: zone)], isAtomic: false)
        }
        // Its own record, and only as it knows it: what is done twice contradicts itself then.
        let name = Self.names[number % Self.names.count]
        let fields: [String: String?] = [Place.valueField: newValue()]
        let write = known[place(name, in: zone)].map { RecordWrite(.update, name, fields: fields, version: $0) }
        await modify(
            zone, [write ?? RecordWrite(.create, name, fields: fields)], isAtomic: false, isKeyless: true)
    }

    func saveBatch() async { await modify(write: world.random(2...3), isAtomic: world.chance(70)) }

    private func modify(write count: Int, isAtomic: Bool) async {
        let zone = world.random(0...(recorder.zones.count - 1))
        let names = Self.names.shuffled(using: &world.generator).prefix(count)
        await modify(zone, names.map { newRecordWrite($0, in: zone) }, isAtomic: isAtomic)
    }

    func delete() async {
        let zone = world.random(0...(recorder.zones.count - 1))
        let name = world.pick(Self.names)
        let version = known[place(name, in: zone)]
        let write =
            version != nil && world.chance(60)
            ? RecordWrite(.delete, name, version: version) : RecordWrite(.forceDelete, name)
        await modify(zone, [write], isAtomic: false)
    }

    func newRecordWrite(_ name: String, in zone: Int) -> RecordWrite {
        var fields: [String: String?] = [Place.valueField: newValue()]
        if world.chance(70) { fields[Place.kindField] = .some(world.chance(15) ? nil : world.pick(Self.kinds)) }
        if let version = known[place(name, in: zone)], world.chance(60) {
            return RecordWrite(world.chance(70) ? .update : .replace, name, fields: fields, version: version)
        }
        let kinds: [RecordWrite.Kind] = [.create, .create, .forceUpdate, .forceUpdate, .forceReplace]
        return RecordWrite(world.pick(kinds), name, fields: fields)
    }

    func place(_ name: String, in zone: Int) -> String { "\(zone)/\(name)" }

    /// - Parameter receipts: of the files that the writes name.
    func modify(
        _ zone: Int, _ writes: [RecordWrite], isAtomic: Bool, receipts: [FileBook.Receipt] = [], isKeyless: Bool = false
    ) async {
        let body = writes.body(zone: recorder.zones[zone].key.name, isAtomic: isAtomic, receipts: receipts)
        let identity = !isKeyless && world.chance(85) ? Visit.Identity(key: newKey(), body: body) : nil
        let call = recorder.begin(zone: zone, .modify(writes, isAtomic: isAtomic), by: number)
        let modify: PastRequest.Body<RecordModification.Result> = { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
            }
        }
        let answer = await ask(repeats: identity != nil, modify)
        // A file may be gone by the time that its request comes again.
        if identity != nil, receipts.isEmpty {
            remember("a change of records", answer, modify) { [files = recorder.files] in
                (try? ZoneModel.Outcome($0, files, showsRecords: false)).map { "\($0)" }
            }
        }
        if !receipts.isEmpty, case .answered(let result, let isFirst) = answer {
            if result.lacksFile {
                if isFirst { recorder.withdraw(zone: zone, call) }
                return wereTooLate(receipts)
            }
            if result.savesAll { for receipt in receipts { checkHolders(of: receipt.checksum, min: 1) } }
        }
        let outcome = settle(zone, call, answer) { [files = recorder.files] result, isFirst throws(UnexpectedAnswer) in
            try ZoneModel.Outcome(result, files, showsRecords: isFirst)
        }
        guard let outcome else { return }
        remember(writes, outcome, in: zone)
    }

    /// Ends the call in the history as its answer has it.
    private func settle<Value>(
        _ zone: Int, _ call: Recorder.Call<ZoneModel.Operation, ZoneModel.Outcome>, _ answer: Asked<Value>,
        _ translate: (Value, _ isFirst: Bool) throws(UnexpectedAnswer) -> ZoneModel.Outcome
    ) -> ZoneModel.Outcome? {
        switch answer {
        case .failed(let failure) where failure.error.code == .zoneNotFound:
            recorder.end(zone: zone, call, .zoneNotFound)
            return .zoneNotFound
        case .failed(let failure):
            recorder.violated("client \(number) was refused: \(failure.error)")
            return nil
        case .nothing(mayHaveBeenDone: true): return nil
        case .nothing(mayHaveBeenDone: false):
            recorder.withdraw(zone: zone, call)
            return nil
        case .answered(let outcome, let isFirst):
            do {
                let outcome = try translate(outcome, isFirst)
                recorder.end(zone: zone, call, outcome)
                return outcome
            } catch {
                recorder.violated("client \(number) was answered \(error)")
                return nil
            }
        }
    }

    private func remember(_ writes: [RecordWrite], _ outcome: ZoneModel.Outcome, in zone: Int) {
        let items: [WriteOutcome]
        switch outcome {
        case .items(let outcomes), .batchFailed(let outcomes): items = outcomes
        default: return
        }
        for (write, item) in zip(writes, items) {
            switch item {
            case .saved(let version): known[place(write.name, in: zone)] = version
            case .deleted, .notFound: known[place(write.name, in: zone)] = nil
            case .exists(let record), .conflict(let record):
                guard let record else { continue }
                known[place(write.name, in: zone)] = record.version
                recorder.see([write.name: record], in: zone, by: "a clash of client \(number)")
            case .notDone: break
            }
        }
    }

    // MARK: Zones

    /// Makes or deletes the zone that comes and goes.
    func changeZone() async {
        let zone = recorder.zones.count - 1
        await change(zone, isCreation: world.chance(60))
    }

    func makeZone(_ zone: Int) async { await change(zone, isCreation: true) }

    private func change(_ zone: Int, isCreation: Bool) async {
        let type = isCreation ? "create" : "delete"
        let text =
            #"{"operations":[{"operationType":"\#(type)","zone":{"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"}}}]}"#
        let identity = Visit.Identity(key: newKey(), body: Array(text.utf8))
        let call = recorder.begin(zone: zone, isCreation ? .createZone : .deleteZone, by: number)
        let modify: PastRequest.Body<ZoneState?> = { visit throws(RequestFailure) in
            try await visit.database(identity) { request throws(RequestFailure) in
                let form = try ZonesModifyRequest(sent: identity.body)
                return try await Zones(request).modify(form.operations[0], number: 0)
            }
        }
        let answer = await ask(repeats: true, modify)
        remember("a change of a zone", answer, modify) { $0.map { "\($0.incarnation)" } ?? "deleted" }
        _ = settle(zone, call, answer) { state, _ throws(UnexpectedAnswer) in
            state.map { .zone(incarnation: $0.incarnation) } ?? .zoneDeleted
        }
    }
}
