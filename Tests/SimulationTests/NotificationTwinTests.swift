import HistoryChecks
import Testing

@testable import Simulation

@Suite("The twin of notifications takes what is right, and nothing else")
struct NotificationTwinTests {
    typealias Change = WatchedHistory.Change
    typealias Notice = NotificationTwin.Notice
    typealias Subscription = NotificationTwin.Subscription

    private static let zone = WatchedHistory.Zone(owner: "ada", name: "notes")

    private var history = WatchedHistory()
    private var twin = NotificationTwin(user: "ada")

    private mutating func save(_ subscription: Subscription) {
        let called = history.nextPlace()
        twin.saved(subscription, called: called, returned: history.nextPlace(), isRepeated: false)
    }

    private mutating func delete(_ id: String) {
        let called = history.nextPlace()
        twin.deleted(id, called: called, returned: history.nextPlace())
    }

    private mutating func commit(_ name: String, sequence: UInt64, by user: String = "ada", from device: String? = nil)
    {
        let change = Change(name: name, event: .create, kind: "k0", value: "v-\(name)")
        let number = history.begin([change], in: Self.zone, by: user, from: device)
        history.end(number, versions: [Version(1, sequence)])
    }

    private func told(_ names: [String], by id: String = "s", of zone: WatchedHistory.Zone = zone) -> [Notice] {
        names.enumerated().map { number, name in
            Notice(
                sequence: Int64(number + 1), id: id, kind: .query, zone: zone, record: name, event: .create,
                value: "v-\(name)", changeID: "c-\(name)")
        }
    }

    private func faults(_ notices: [Notice], device: String? = nil, isOver: Bool = true) -> [String] {
        twin.faults(in: notices, history, device: device, isOver: isOver)
    }

    private static func query(_ id: String = "s", once: Bool = false) -> Subscription {
        Subscription(id: id, kind: .query, zone: "notes", events: [.create], firesOnce: once)
    }

    @Test("what was committed between the answer and the deletion is told of, in order and once")
    mutating func sequence() {
        commit("before", sequence: 1)
        save(Self.query())
        for (place, name) in ["a", "b", "c"].enumerated() { commit(name, sequence: UInt64(place + 2)) }
        #expect(faults(told(["a", "b", "c"])) == [])
        #expect(faults(told(["a", "b"]), isOver: false) == [])
        #expect(faults(told(["a", "b"])).count == 1, "lost at the end")
        #expect(faults(told(["a", "c"]), isOver: false).count == 1, "lost in the middle")
        #expect(faults(told(["b", "a", "c"])).count == 1, "out of order")
        #expect(faults(told(["a", "b", "b", "c"])).count == 1, "twice")
        #expect(faults(told(["before", "a", "b", "c"])).count == 1, "from before the answer")
        #expect(faults(told(["a", "b", "c"]) + told(["a"], by: "t")).count == 1, "of no subscription")
        let foreign = told(["a"], of: .init(owner: nil, name: "_defaultZone"))
        #expect(!faults(foreign).isEmpty, "of another database")
        var confused = told(["a", "b", "c"])
        confused[1].changeID = "c-a"
        #expect(faults(confused).count == 1, "two changes of one name")
    }

    @Test("what is on its way when a subscription is deleted may be dropped, and is not told of later")
    mutating func deletion() {
        save(Self.query())
        for (place, name) in ["a", "b", "c"].enumerated() { commit(name, sequence: UInt64(place + 1)) }
        delete("s")
        commit("after", sequence: 4)
        #expect(faults(told(["a", "b", "c"])) == [] && faults(told(["a"])) == [] && faults([]) == [])
        #expect(faults(told(["b"])).count == 1, "the first one is missing, not the last")
        #expect(faults(told(["a", "b", "c", "after"])).count == 1)
        save(Self.query())
        commit("d", sequence: 5)
        #expect(faults(told(["a", "d"])) == [])
        #expect(faults(told(["a", "d", "b"])).contains { $0.contains("made anew") })
    }

    @Test("what overlaps the request for a subscription may be told of")
    mutating func overlap() {
        let called = history.nextPlace()
        commit("a", sequence: 1)
        twin.saved(Self.query(), called: called, returned: history.nextPlace(), isRepeated: false)
        #expect(faults([]) == [] && faults(told(["a"])) == [])
    }

    @Test("one that fires once tells of the first change, and of no other")
    mutating func once() {
        save(Self.query(once: true))
        for (place, name) in ["a", "b"].enumerated() { commit(name, sequence: UInt64(place + 1)) }
        #expect(faults(told(["a"])) == [])
        #expect(faults(told(["a", "b"])).count == 1 && faults(told(["b"])).count == 1 && faults([]).count == 1)
    }

    @Test("one that fires once may have fired for a change of the device itself, which is not told of it")
    mutating func onceOnDevice() {
        save(Self.query(once: true))
        commit("a", sequence: 1, from: "phone")
        commit("b", sequence: 2)
        #expect(faults(told(["a"])) == [] && faults([], device: "phone") == [])
        #expect(faults([], device: "laptop").count == 1 && faults(told(["b"]), device: "phone").count == 1)
    }

    @Test("a device is not told of what its user changed from it, and of everybody else's changes")
    mutating func devices() {
        save(Self.query())
        commit("a", sequence: 1, from: "phone")
        commit("b", sequence: 2, by: "grace", from: "phone")
        #expect(faults(told(["a", "b"])) == [] && faults(told(["b"]), device: "phone") == [])
        #expect(faults(told(["a", "b"]), device: "phone").count == 1)
        #expect(faults([], device: "phone").count == 1)
        #expect(faults(told(["a", "b"]), device: "laptop") == [])
    }

    @Test("subscriptions to zones are told of once a request")
    mutating func zones() {
        save(Subscription(id: "z", kind: .zone, zone: "notes", type: nil))
        commit("a", sequence: 1)
        commit("b", sequence: 2)
        func told(_ count: Int) -> [Notice] {
            (0..<count).map { Notice(sequence: Int64($0 + 1), id: "z", kind: .zone, zone: Self.zone) }
        }
        #expect(faults(told(2)) == [])
        #expect(faults(told(1)).count == 1 && faults(told(3)).count == 1)
        var named = told(2)
        (named[0].changeID, named[1].changeID) = ("one", "two")
        #expect(faults(named) == [])
        named[1].changeID = "one"
        #expect(faults(named).count == 1, "two changes of one name")
    }
}
