import HistoryChecks
import Testing

@Suite("Histories of a zone")
struct ZoneHistoryTests {
    private typealias Calls = History<ZoneModel.Operation, ZoneModel.Outcome>

    private func verdict(_ history: Calls, _ state: ZoneModel.State = .made) -> HistoryVerdict {
        ZoneModel(state).verdict(on: history)
    }

    /// One call after the other.
    private func inTurn(_ calls: [(ZoneModel.Operation, ZoneModel.Outcome?)]) -> Calls {
        var history = Calls()
        for (operation, outcome) in calls {
            let id = history.begin(operation, client: 1)
            if let outcome { history.end(id, outcome) }
        }
        return history
    }

    private func save(_ name: String, _ value: String) -> ZoneModel.Operation {
        .modify([RecordWrite(.forceReplace, name, fields: ["text": value])])
    }

    private func copy(_ value: String, _ sequence: UInt64) -> RecordCopy {
        RecordCopy(["text": value], Version(1, sequence))
    }

    @Test("saves, fetches and a view in turn are linearizable")
    func inOrder() {
        let history = inTurn([
            (save("a", "1"), .items([.saved(Version(1, 1))])), (.lookup(["a", "b"]), .records([copy("1", 1), nil])),
            (save("b", "2"), .items([.saved(Version(1, 2))])), (.view, .view(["a": copy("1", 1), "b": copy("2", 2)])),
            (.query(field: "text", equals: "2"), .view(["b": copy("2", 2)])),
        ])
        #expect(verdict(history).isLinearizable)
    }

    @Test("after a restore everything is as before under tags of another life, and tags of the old one fit nothing")
    func restored() {
        func history(after copy: RecordCopy) -> Calls {
            inTurn([
                (save("a", "1"), .items([.saved(Version(1, 1))])), (.restore(incarnation: 9), .restored),
                (.lookup(["a"]), .records([copy])),
                (
                    .modify([RecordWrite(.update, "a", fields: ["text": "2"], version: Version(1, 1))]),
                    .items([.conflict(copy)])
                ),
                (save("b", "3"), .items([.saved(Version(9, 2))])),
            ])
        }
        #expect(verdict(history(after: RecordCopy(["text": "1"], Version(9, 1)))).isLinearizable)
        #expect(!verdict(history(after: copy("1", 1))).isLinearizable)
    }

    @Test("a read that shows what was there before an acknowledged save is not")
    func staleRead() {
        let history = inTurn([
            (save("a", "1"), .items([.saved(Version(1, 1))])), (save("a", "2"), .items([.saved(Version(1, 2))])),
            (.lookup(["a"]), .records([copy("1", 1)])),
        ])
        #expect(!verdict(history).isLinearizable)
    }

    @Test("an acknowledged save that is lost shows in the next change tag")
    func lostWrite() {
        let history = inTurn([
            (save("a", "1"), .items([.saved(Version(1, 1))])), (save("b", "2"), .items([.saved(Version(1, 1))])),
        ])
        #expect(!verdict(history).isLinearizable)
    }

    @Test("a save that was applied twice shows in the next change tag")
    func appliedTwice() {
        let history = inTurn([
            (save("a", "1"), .items([.saved(Version(1, 1))])), (save("b", "2"), .items([.saved(Version(1, 3))])),
        ])
        #expect(!verdict(history).isLinearizable)
    }

    @Test("a save without an answer may take effect late, once, or never, and not twice")
    func unknownOutcome() {
        let late: [(ZoneModel.Operation, ZoneModel.Outcome?)] = [
            (save("a", "x"), nil), (.lookup(["a"]), .records([nil])),
            (save("b", "1"), .items([.saved(Version(1, 1))])),
        ]
        #expect(verdict(inTurn(late)).isLinearizable)
        let seen = late + [(.lookup(["a"]), .records([copy("x", 2)]))]
        #expect(verdict(inTurn(seen)).isLinearizable)
        let gap = late + [(save("b", "2"), .items([.saved(Version(1, 3))]))]
        #expect(verdict(inTurn(gap)).isLinearizable)
        let gone = seen + [(.lookup(["a"]), .records([nil]))]
        #expect(!verdict(inTurn(gone)).isLinearizable)
        let twice = seen + [(save("b", "2"), .items([.saved(Version(1, 4))]))]
        #expect(!verdict(inTurn(twice)).isLinearizable)
    }

    @Test("of two updates with the same tag one must clash")
    func lostUpdate() {
        let update = { (value: String) -> ZoneModel.Operation in
            .modify([RecordWrite(.update, "a", fields: ["text": value], version: Version(1, 1))])
        }
        var history = inTurn([(save("a", "1"), .items([.saved(Version(1, 1))]))])
        let first = history.begin(update("2"), client: 1)
        let second = history.begin(update("3"), client: 2)
        var clash = history
        history.end(first, .items([.saved(Version(1, 2))]))
        history.end(second, .items([.saved(Version(1, 3))]))
        #expect(!verdict(history).isLinearizable)
        clash.end(first, .items([.conflict(copy("3", 2))]))
        clash.end(second, .items([.saved(Version(1, 2))]))
        #expect(verdict(clash).isLinearizable)
    }

    @Test("a view that shows half of an atomic batch is not linearizable, the whole or nothing is")
    func tornBatch() {
        func history(_ view: [String: RecordCopy]) -> Calls {
            var history = Calls()
            let batch = [
                RecordWrite(.create, "a", fields: ["text": "1"]), RecordWrite(.create, "b", fields: ["text": "2"]),
            ]
            let id = history.begin(.modify(batch, isAtomic: true), client: 1)
            let look = history.begin(.view, client: 2)
            history.end(look, .view(view))
            history.end(id, .items([.saved(Version(1, 1)), .saved(Version(1, 2))]))
            return history
        }
        #expect(verdict(history([:])).isLinearizable)
        #expect(verdict(history(["a": copy("1", 1), "b": copy("2", 2)])).isLinearizable)
        #expect(!verdict(history(["a": copy("1", 1)])).isLinearizable)
    }

    @Test("a failed atomic batch changes nothing and says which change failed")
    func failedBatch() {
        let batch = ZoneModel.Operation.modify(
            [RecordWrite(.create, "a"), RecordWrite(.create, "b", fields: ["text": "2"])], isAtomic: true)
        let before: [(ZoneModel.Operation, ZoneModel.Outcome?)] = [(save("a", "1"), .items([.saved(Version(1, 1))]))]
        let failed = before + [(batch, .batchFailed([.exists(copy("1", 1)), .notDone]))]
        #expect(verdict(inTurn(failed + [(.view, .view(["a": copy("1", 1)]))])).isLinearizable)
        #expect(verdict(inTurn(before + [(batch, .batchFailed([.exists(nil), .notDone]))])).isLinearizable)
        #expect(!verdict(inTurn(before + [(batch, .batchFailed([.notDone, .exists(nil)]))])).isLinearizable)
        #expect(
            !verdict(inTurn(failed + [(.view, .view(["a": copy("1", 1), "b": copy("2", 2)]))])).isLinearizable)
    }

    @Test("a zone that was deleted has no records, and its next life the next number")
    func lives() {
        let history = inTurn([
            (.lookup(["a"]), .zoneNotFound), (.createZone, .zone(incarnation: 1)),
            (save("a", "1"), .items([.saved(Version(1, 1))])), (.createZone, .zone(incarnation: 1)),
            (.deleteZone, .zoneDeleted), (save("a", "1"), .zoneNotFound), (.createZone, .zone(incarnation: nil)),
            (.view, .view([:])), (save("a", "2"), .items([.saved(Version(2, 1))])),
        ])
        #expect(verdict(history, .unwritten()).isLinearizable)
        #expect(!verdict(inTurn([(.createZone, .zone(incarnation: 2))]), .unwritten()).isLinearizable)
        let first = inTurn([(save("a", "1"), .items([.saved(Version(1, 1))]))])
        #expect(verdict(first, .unwritten(isDefault: true)).isLinearizable)
    }

    @Test("the report names the answer that cannot be, and leaves out reads that do not matter")
    func report() {
        var calls: [(ZoneModel.Operation, ZoneModel.Outcome?)] = []
        for number in 1...50 {
            calls.append((save("a", "\(number)"), .items([.saved(Version(1, UInt64(number)))])))
            calls.append((.lookup(["a"]), .records([copy("\(number)", UInt64(number))])))
        }
        calls.append((.lookup(["a"]), .records([copy("7", 7)])))
        calls.append((save("a", "51"), .items([.saved(Version(1, 51))])))
        let text = "\(verdict(inTurn(calls)))"
        #expect(text.hasPrefix("NOT LINEARIZABLE"))
        #expect(text.contains("#100 client 1"), "\(text)")
        #expect(text.contains("found") == false)
        #expect(text.contains("(51 of 102 calls matter)"), "\(text)")
        #expect(text.split(separator: "\n").count < 40)
    }

    @Test("a search that gives up counts as a failure")
    func cap() {
        var history = Calls()
        for client in 0..<8 { _ = history.begin(save("a", "\(client)"), client: client) }
        let id = history.begin(.view, client: 9)
        history.end(id, .view(["a": copy("none of them", 8)]))
        let verdict = ZoneModel(.made).verdict(on: history, stepsMax: 100)
        #expect(!verdict.isLinearizable)
        #expect("\(verdict)".hasPrefix("UNDECIDED"))
    }

    @Test(
        "small histories of a correct and of a lying zone are judged as trying every order judges them",
        arguments: 0..<12)
    func againstTwin(part: Int) {
        var rejected = 0
        for seed in 0..<60 {
            var twin = ZoneTwin(seed: UInt64(part * 1_000 + seed), names: 2, clients: 4, lostPercent: 15)
            while twin.history.count < 7 { twin.step() }
            let model = ZoneModel(.made)
            #expect(model.verdict(on: twin.history).isLinearizable)
            let lying = lie(twin.history, seed: seed)
            let expected = NaiveCheck(model: model).isLinearizable(lying)
            if !expected { rejected += 1 }
            #expect(model.verdict(on: lying).isLinearizable == expected, "part \(part) seed \(seed)")
        }
        #expect(rejected > 5)
    }

    /// The same calls with answers that belong to others of the same kind, or with numbers that are off by one.
    private func lie(_ history: Calls, seed: Int) -> Calls {
        let calls = history.calls
        let answered = calls.filter { $0.returned != nil }
        guard !answered.isEmpty else { return history }
        let liar = answered[seed % answered.count]
        var events = calls.map { (place: $0.called, call: $0, isAnswer: false) }
        events += answered.map { (place: $0.returned ?? 0, call: $0, isAnswer: true) }
        var lying = Calls()
        var ids: [Int: Calls.CallID] = [:]
        for event in events.sorted(by: { $0.place < $1.place }) {
            if let id = ids[event.call.number], let outcome = event.call.outcome {
                lying.end(id, event.call.number == liar.number ? outcome.lie : outcome)
            } else {
                ids[event.call.number] = lying.begin(event.call.operation, client: event.call.client)
            }
        }
        return lying
    }

    @Test("2,000 calls of a correct zone are judged in few steps, and one lie among them is found")
    func long() {
        var twin = ZoneTwin(seed: 7, names: 12, clients: 10, lostPercent: 1)
        while twin.history.count < 2_000 { twin.step() }
        guard case .linearizable(let calls, let steps) = verdict(twin.history) else {
            Issue.record("\(verdict(twin.history))")
            return
        }
        #expect(calls == 2_000)
        #expect(twin.history.unknownCount > 20)
        #expect(steps < 20 * calls, "\(steps)")
        let answered = twin.history.calls.filter { $0.returned != nil }
        let look = answered.indices.dropFirst(1_000).first { index in
            if case .records(let records) = answered[index].outcome { records.contains { $0 != nil } } else { false }
        }
        let verdict = verdict(lie(twin.history, seed: look ?? 0))
        guard case .violated(let report) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(report.contains("#\(answered[look ?? 0].number) "), "\(report)")
    }
}

extension ZoneModel.Outcome {
    /// Something else.
    fileprivate var lie: Self {
        switch self {
        case .items(let items): .items(items.map(\.lie))
        case .batchFailed(let items): .items(items.map { _ in .saved(Version(1, 9)) })
        case .records(let records): .records(records.map { $0 == nil ? nil : RecordCopy(["a": "v1"], Version(1, 1)) })
        case .view(let records): .view(records.isEmpty ? ["r0": RecordCopy(["a": "v1"], Version(1, 1))] : [:])
        case .zone, .zoneDeleted, .zoneNotFound, .restored: .zoneNotFound
        }
    }
}

extension WriteOutcome {
    fileprivate var lie: WriteOutcome {
        switch self {
        case .saved(let version): .saved(Version(1, version.sequence + 1))
        case .deleted: .notFound
        case .exists, .conflict: .deleted
        case .notFound, .notDone: .conflict(nil)
        }
    }
}
