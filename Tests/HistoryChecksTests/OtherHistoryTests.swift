import HistoryChecks
import RaftCore
import Testing

@Suite("Histories of a record alone and of a key-value store")
struct OtherHistoryTests {
    private typealias Record = History<RecordRegister.Operation, RecordRegister.Outcome>
    private typealias Store = History<KeyValueModel.Operation, KeyValueModel.Outcome>

    private func inTurn(_ calls: [(RecordRegister.Operation, RecordRegister.Outcome?)]) -> Record {
        var history = Record()
        for (operation, outcome) in calls {
            let id = history.begin(operation, client: 1)
            if let outcome { history.end(id, outcome) }
        }
        return history
    }

    private func set(_ value: String) -> RecordRegister.Operation {
        .write(RecordWrite(.forceReplace, "a", fields: ["text": value]))
    }

    private func copy(_ value: String, _ sequence: UInt64) -> RecordCopy {
        RecordCopy(["text": value], Version(1, sequence))
    }

    @Test("other records may take tags in between, and none may go back")
    func tagsGrow() {
        let first: [(RecordRegister.Operation, RecordRegister.Outcome?)] = [
            (set("1"), .write(.saved(Version(1, 4)))), (.fetch("a"), .found(copy("1", 4))),
        ]
        #expect(
            RecordRegister().verdict(on: inTurn(first + [(set("2"), .write(.saved(Version(1, 9))))])).isLinearizable)
        #expect(
            !RecordRegister().verdict(on: inTurn(first + [(set("2"), .write(.saved(Version(1, 3))))])).isLinearizable)
        #expect(!RecordRegister().verdict(on: inTurn(first + [(.fetch("a"), .found(nil))])).isLinearizable)
    }

    @Test("the tag of a save without an answer is the one that is seen first, for good")
    func unknownTag() {
        let first: [(RecordRegister.Operation, RecordRegister.Outcome?)] = [
            (set("1"), .write(.saved(Version(1, 4)))), (set("2"), nil), (.fetch("a"), .found(copy("2", 6))),
        ]
        let update = { (sequence: UInt64) -> RecordRegister.Operation in
            .write(RecordWrite(.update, "a", fields: ["text": "3"], version: Version(1, sequence)))
        }
        #expect(
            RecordRegister().verdict(on: inTurn(first + [(update(6), .write(.saved(Version(1, 7))))])).isLinearizable)
        #expect(
            RecordRegister().verdict(on: inTurn(first + [(update(5), .write(.conflict(copy("2", 6))))])).isLinearizable)
        #expect(
            !RecordRegister().verdict(on: inTurn(first + [(update(5), .write(.saved(Version(1, 7))))])).isLinearizable)
        #expect(!RecordRegister().verdict(on: inTurn(first + [(.fetch("a"), .found(copy("2", 7)))])).isLinearizable)
    }

    @Test("random small histories of a record are judged as trying every order judges them", arguments: 0..<8)
    func recordAgainstTwin(part: Int) {
        var accepted = 0
        for seed in 0..<150 {
            var generator = SplitMix64(seed: UInt64(part * 1_000 + seed))
            let history = randomRecord(&generator)
            let expected = NaiveCheck(model: RecordRegister()).isLinearizable(history)
            accepted += expected ? 1 : 0
            #expect(RecordRegister().verdict(on: history).isLinearizable == expected, "part \(part) seed \(seed)")
        }
        #expect(accepted > 1 && accepted < 145, "\(accepted)")
    }

    private func randomRecord(_ generator: inout SplitMix64) -> Record {
        var history = Record()
        var open: [(Record.CallID, RecordRegister.Operation)] = []
        var sequence: UInt64 = 0
        while history.count < 6 || !open.isEmpty {
            if history.count < 6, open.count < 3, Bool.random(using: &generator) {
                let kind = RecordWrite.Kind.allCases.randomElement(using: &generator) ?? .create
                let operation: RecordRegister.Operation =
                    Bool.random(using: &generator)
                    ? .fetch("a")
                    : .write(
                        RecordWrite(
                            kind, "a", fields: ["text": "\(history.count % 3)"],
                            version: Version(1, UInt64.random(in: 1...4, using: &generator))))
                open.append((history.begin(operation, client: open.count), operation))
            } else if let index = open.indices.randomElement(using: &generator) {
                let (id, operation) = open.remove(at: index)
                sequence += 1
                let shown = copy("\(Int.random(in: 0..<3, using: &generator))", max(1, sequence - 1))
                switch (operation, Int.random(in: 0..<5, using: &generator)) {
                case (_, 0): break
                case (.fetch, 1...2): history.end(id, .found(nil))
                case (.fetch, _): history.end(id, .found(shown))
                case (.write(let write), let luck):
                    let isDeletion = [.delete, .forceDelete].contains(write.kind)
                    if luck == 1 { history.end(id, .write(.notFound)) }
                    if luck == 2 { history.end(id, .write(write.kind == .create ? .exists(shown) : .conflict(nil))) }
                    if luck > 2 { history.end(id, .write(isDeletion ? .deleted : .saved(Version(1, sequence)))) }
                }
            }
        }
        return history
    }

    @Test("a batch of a store happens as a whole, each changed key under a number of its own")
    func store() {
        var history = Store()
        func call(_ operation: KeyValueModel.Operation, _ outcome: KeyValueModel.Outcome?) {
            let id = history.begin(operation, client: 1)
            if let outcome { history.end(id, outcome) }
        }
        call(
            .write([.init("a", "1"), .init("b", "2"), .init("c", nil)]), .applied([Version(1, 1), Version(1, 2), nil]))
        call(.write([.init("a", "3", expecting: .version(Version(1, 2)))]), .conflict(["a"]))
        call(.write([.init("b", nil, expecting: .version(Version(1, 2)))]), .applied([Version(1, 3)]))
        call(.write([.init("d", "lost")]), nil)
        call(.read(["a", "b"]), .found(["a": Versioned("1", Version(1, 1))]))
        call(.write([.init("b", "4", expecting: .absent)]), .applied([Version(1, 5)]))
        #expect(KeyValueModel().verdict(on: history).isLinearizable)
        var view = history
        let id = view.begin(.view, client: 1)
        let kept = ["a": Versioned("1", Version(1, 1)), "b": Versioned("4", Version(1, 5))]
        view.end(id, .found(kept))
        #expect(!KeyValueModel().verdict(on: view).isLinearizable, "the number 4 is the lost write's")
        call(.view, .found(kept.merging(["d": Versioned("lost", Version(1, 4))]) { $1 }))
        #expect(KeyValueModel().verdict(on: history).isLinearizable)
    }

    @Test("after a restore a store has its keys as they were, and what comes is of another life")
    func restoredStore() {
        func history(_ next: Version) -> Store {
            var history = Store()
            for (operation, outcome) in [
                (.write([.init("a", "1")]), .applied([Version(1, 1)])), (.restore(incarnation: 9), .restored),
                (.view, .found(["a": Versioned("1", Version(1, 1))])), (.write([.init("b", "2")]), .applied([next])),
            ] as [(KeyValueModel.Operation, KeyValueModel.Outcome)] {
                let id = history.begin(operation, client: 1)
                history.end(id, outcome)
            }
            return history
        }
        #expect(KeyValueModel().verdict(on: history(Version(9, 2))).isLinearizable)
        #expect(!KeyValueModel().verdict(on: history(Version(1, 2))).isLinearizable)
    }

    @Test("what a batch is told that its store holds is what it holds: a value that was replaced counts no more")
    func usage() {
        func history(_ bytes: Int) -> Store {
            var history = Store()
            for (sequence, value) in ["1", "22"].enumerated() {
                let id = history.begin(.write([.init("a", value)]), client: 1)
                let usage = KeyValueModel.Usage(keys: 1, bytes: sequence == 0 ? 1 : bytes)
                history.end(id, .applied([Version(1, UInt64(sequence) + 1)], usage))
            }
            return history
        }
        #expect(KeyValueModel().verdict(on: history(2)).isLinearizable)
        #expect(!KeyValueModel().verdict(on: history(3)).isLinearizable)
    }

    @Test("calls that were withdrawn count for nothing")
    func withdrawn() {
        var history = Record()
        let id = history.begin(set("1"), client: 1)
        history.withdraw(id)
        let look = history.begin(.fetch("a"), client: 1)
        history.end(look, .found(copy("1", 1)))
        #expect(!RecordRegister().verdict(on: history).isLinearizable)
        #expect(history.calls.count == 1)
        #expect(history.unknownCount == 0)
    }

    @Test("a feed's copy follows pages and refuses what goes back")
    func feed() throws {
        typealias Entry = FeedCopy<String>.Entry
        var copy = FeedCopy<String>()
        try copy.take([Entry("a", Version(1, 1), "1"), Entry("b", Version(1, 3), "2")])
        try copy.take([Entry("a", Version(1, 4), nil), Entry("b", Version(1, 5), "3")])
        #expect(copy.records == ["b": Versioned("3", Version(1, 5))])
        #expect(throws: FeedCopy<String>.Fault.self) { try copy.take([Entry("c", Version(1, 5), "4")]) }
        copy.restart()
        try copy.take([Entry("c", Version(1, 2), "4")])
        #expect(copy.records == ["c": Versioned("4", Version(1, 2))])
    }

    @Test("two contents under one change tag are complained about, with both witnesses")
    func sightings() {
        var sightings = Sightings<String>()
        #expect(sightings.see("zone/a", Version(1, 1), "x", by: "node 1") == nil)
        #expect(sightings.see("zone/a", Version(1, 1), "x", by: "node 2") == nil)
        #expect(sightings.see("zone/b", Version(1, 2), nil, by: "node 2") == nil)
        let complaint = sightings.see("zone/a", Version(1, 1), "y", by: "node 3")
        #expect(complaint == "zone/a at 1.1 is y for node 3 and was x for node 1")
        #expect(sightings.see("zone/b", Version(1, 2), "z", by: "node 1") != nil)
        #expect(sightings.count == 2)
    }
}
