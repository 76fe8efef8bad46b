import Cluster
import KeyValueStore
import NIOPosix
import RaftCore
import RecordModel
import Synchronization
import Testing
import Wire

@testable import Service

@Suite("Who waits for which store")
struct WatchRegistryTests {
    private static let group = GroupID(1)
    private var room = WatchRegistry(watchesMax: 8, watchesPerUserMax: 3)

    private static func store(_ user: String, container: String = "c") -> StoreKey {
        StoreKey(container: container, environment: .development, user: user)
    }

    private mutating func waiting(_ user: String, until end: UInt64 = 1_000) throws -> WatchID {
        let id = try room.enter(Self.store(user), group: Self.group)
        room.begin(id)
        #expect(room.wait(id, until: end) == nil)
        return id
    }

    @Test("a change wakes those who wait for that store, in the order in which they came, and nobody else")
    mutating func change() throws {
        let first = try waiting("a")
        let other = try waiting("b")
        let second = try waiting("a")
        #expect(room.changed([Self.store("a")]) == [first, second])
        #expect(room.changed([Self.store("a")]) == [], "they look now")
        #expect(room.changed([Self.store("b")]) == [other])
    }

    @Test("a watch that waits twice is given up, and the room goes on")
    mutating func twice() throws {
        let id = try waiting("a")
        let other = try waiting("b")
        #expect(room.wait(id, until: 1_000) == .closing)
        #expect(room.count == 1 && room.changed([Self.store("a"), Self.store("b")]) == [other])
        #expect(room.wait(id, until: 1_000) == .closing, "it has ended")
    }

    @Test("a change during a look ends the next wait at once, and once")
    mutating func changeWhileLooking() throws {
        let id = try room.enter(Self.store("a"), group: Self.group)
        room.begin(id)
        #expect(room.changed([Self.store("a")]) == [])
        #expect(room.wait(id, until: 1_000) == .changed)
        room.begin(id)
        #expect(room.wait(id, until: 1_000) == nil)
    }

    @Test("a change before the look begins is what the look finds")
    mutating func changeBeforeLook() throws {
        let id = try room.enter(Self.store("a"), group: Self.group)
        #expect(room.changed([Self.store("a")]) == [])
        room.begin(id)
        #expect(room.wait(id, until: 1_000) == nil)
    }

    @Test("a change that comes with news of the directory is not forgotten for it")
    mutating func bothAtOnce() throws {
        let id = try room.enter(Self.store("a"), group: Self.group)
        room.begin(id)
        _ = room.changed([Self.store("a")])
        #expect(room.recheck() == [])
        #expect(room.wait(id, until: 1_000) == .recheck)
        #expect(room.wait(id, until: 1_000) == .changed)
        room.begin(id)
        #expect(room.wait(id, until: 1_000) == nil)
        #expect(room.recheck() == [id])
    }

    @Test("a wait ends at its time, not before")
    mutating func time() throws {
        let late = try waiting("a", until: 20)
        let early = try waiting("b", until: 10)
        #expect(room.ticked(9) == [])
        #expect(room.ticked(10) == [early])
        #expect(room.ticked(30) == [late])
        #expect(room.ticked(30) == [])
    }

    @Test("what concerns a whole group wakes its watches, and no other group's")
    mutating func groups() throws {
        let here = try waiting("a")
        let there = try room.enter(Self.store("z"), group: GroupID(2))
        #expect(room.wait(there, until: 1_000) == nil)
        #expect(room.groups == [Self.group, GroupID(2)])
        #expect(room.everyStoreChanged(in: Self.group) == [here])
        room.leave(there)
        #expect(room.groups == [Self.group])
    }

    @Test("while the leader of a group tells what changes, what is applied here wakes nobody, and the end of that all")
    mutating func followed() throws {
        let a = try waiting("a")
        let b = try waiting("b")
        let there = try room.enter(Self.store("a"), group: GroupID(2))
        #expect(room.wait(there, until: 1_000) == nil)
        #expect(room.heard([], in: Self.group) == [a, b], "what came before is not known")
        for id in [a, b] { #expect(room.wait(id, until: 1_000) == nil) }
        #expect(room.applied([Self.store("a")], in: Self.group) == [])
        #expect(room.heard([StoreJournal.hash(of: Self.store("b"))], in: Self.group) == [b])
        #expect(room.wait(b, until: 1_000) == nil)
        #expect(room.heard(nil, in: Self.group) == [a, b])
        for id in [a, b] { #expect(room.wait(id, until: 1_000) == nil) }
        #expect(room.unfollow(Self.group) == [a, b])
        #expect(room.unfollow(Self.group) == [])
        for id in [a, b] { #expect(room.wait(id, until: 1_000) == nil) }
        #expect(room.applied([Self.store("a")], in: Self.group) == [a, there])
    }

    @Test("the limits of a user and of a node hold exactly, and room is made by leaving")
    mutating func limits() throws {
        let ids = try ["a", "a", "a", "b", "c"].map { try room.enter(Self.store($0), group: Self.group) }
        #expect(throws: WatchRefusal.tooManyOfUser(3)) { try room.enter(Self.store("a"), group: Self.group) }
        let last = try room.enter(Self.store("d"), group: Self.group)
        #expect(throws: WatchRefusal.tooManyOfContainer(6)) { try room.enter(Self.store("e"), group: Self.group) }
        for user in ["a", "b"] { _ = try room.enter(Self.store(user, container: "other"), group: Self.group) }
        #expect(throws: WatchRefusal.tooManyOnNode(8)) {
            try room.enter(Self.store("c", container: "other"), group: Self.group)
        }
        let own = try room.enter(Self.store("a"), group: Self.group, isOfNode: true)
        for id in [own, last, last, ids[0]] { room.leave(id) }
        #expect(room.count == 6)
        _ = try room.enter(Self.store("a"), group: Self.group)
        #expect(room.changed([Self.store("d")]) == [])
    }

    @Test("a node that stops wakes everybody, and nobody waits or comes any more")
    mutating func closing() throws {
        let id = try waiting("a")
        let looking = try room.enter(Self.store("b"), group: Self.group)
        #expect(room.close() == [id])
        #expect(room.wait(looking, until: 1_000) == .closing)
        #expect(throws: WatchRefusal.closing) { try room.enter(Self.store("c"), group: Self.group) }
    }

    @Test("whatever the order of events, no change falls between a look and a wait")
    func random() throws {
        var random = SplitMix64(seed: 7)
        for _ in 0..<200 {
            var room = WatchRegistry(watchesMax: 10, watchesPerUserMax: 10)
            let id = try room.enter(Self.store("a"), group: Self.group)
            // What the store holds, and what the last look found of it.
            var version = 0
            var found = 0
            var isWaiting = false
            for step in 0..<200 {
                switch random.next() % 6 {
                case 0, 1:
                    version += 1
                    if room.changed([Self.store("a")]) == [id] { isWaiting = false }
                case 2: if room.recheck() == [id] { isWaiting = false }
                case 3: if room.ticked(UInt64(step)) == [id] { isWaiting = false }
                default:
                    guard !isWaiting else { break }
                    // A look reads at some moment after it began.
                    room.begin(id)
                    if random.next() % 2 == 0 {
                        version += 1
                        _ = room.changed([Self.store("a")])
                    }
                    found = version
                    if random.next() % 2 == 0 {
                        version += 1
                        _ = room.changed([Self.store("a")])
                    }
                    isWaiting = room.wait(id, until: UInt64(step) + random.next() % 20) == nil
                }
                #expect(!isWaiting || found == version, "it sleeps over version \(version), having seen \(found)")
            }
        }
    }
}

@Suite("Which stores changed, for other nodes")
struct StoreJournalTests {
    private static func store(_ user: String) -> StoreKey {
        StoreKey(container: "c", environment: .production, user: user)
    }

    @Test("a mark is followed by what was noted after it")
    func follow() {
        var journal = StoreJournal(journal: 7)
        let begin = journal.news(since: nil)
        #expect(begin.changed == nil)
        #expect(journal.news(since: begin.mark).changed == [])
        journal.note([Self.store("a"), Self.store("b")])
        let news = journal.news(since: begin.mark)
        #expect(news.changed == ["a", "b"].map { StoreJournal.hash(of: Self.store($0)) })
        #expect(journal.news(since: news.mark).changed == [])
    }

    @Test("too old a mark, another journal's and one of the future say that anything may have changed")
    func lost() {
        var journal = StoreJournal(journal: 7, capacity: 4)
        let mark = journal.news(since: nil).mark
        for _ in 0..<4 { journal.note([Self.store("a")]) }
        #expect(journal.news(since: mark).changed?.count == 4)
        journal.note([Self.store("b")])
        #expect(journal.news(since: mark).changed == nil)
        #expect(journal.news(since: .init(journal: 8, count: 5)).changed == nil)
        #expect(journal.news(since: .init(journal: 7, count: 6)).changed == nil)
    }

    @Test("after everything may have changed, earlier marks say so and later ones go on")
    func everything() {
        for before in 0..<6 {
            var journal = StoreJournal(journal: 7, capacity: 4)
            for _ in 0..<before { journal.note([Self.store("a")]) }
            let mark = journal.news(since: nil).mark
            journal.noteEverything()
            let news = journal.news(since: mark)
            #expect(news.changed == nil)
            journal.note([Self.store("b")])
            #expect(journal.news(since: news.mark).changed == [StoreJournal.hash(of: Self.store("b"))])
        }
    }

    @Test("news and questions come back from their bytes")
    func wire() throws {
        for changed in [nil, [], [1, .max]] as [[UInt64]?] {
            let news = StoreJournal.News(mark: .init(journal: 3, count: 9), changed: changed)
            #expect(try StoreJournal.News(decoding: news.encoded()) == news)
        }
        for mark in [nil, StoreJournal.Mark(journal: 3, count: 9), StoreJournal.Mark(journal: 3, count: 0)] {
            let question = PeerExchange.Question.stores(since: mark, waitMilliseconds: 7)
            #expect(try PeerExchange.Question(decoding: question.encoded()) == question)
        }
    }
}

@Suite("Waiting for a journal")
struct StoreJournalsTests {
    /// What each question was answered, by its name.
    private final class Answers: Sendable {
        private let told = Mutex<[String: StoreJournal.News]>([:])

        var names: [String] { told.withLock { $0.keys.sorted() } }

        subscript(name: String) -> StoreJournal.News? {
            get { told.withLock { $0[name] } }
        }

        func hearing(_ name: String) -> StoreJournals.Answer { { news in self.told.withLock { $0[name] = news } } }
    }

    private static let (here, there) = (GroupID(1), GroupID(2))
    private static let store = StoreKey(container: "c", environment: .production, user: "u")

    @Test("a question is answered once something comes into its journal, or when its time is over")
    func wait() throws {
        var journals = StoreJournals(number: 7)
        let answers = Answers()
        func run(_ due: [@Sendable () -> Void]) -> [String] {
            for answer in due { answer() }
            return answers.names
        }
        #expect(run(journals.ask(Self.here, since: nil, until: 10, now: 0, answers.hearing("begin"))) == ["begin"])
        let mark = try #require(answers["begin"]?.mark)
        #expect(run(journals.ask(Self.here, since: mark, until: 10, now: 10, answers.hearing("late"))).contains("late"))
        #expect(answers["late"]?.changed == [])
        for (name, group) in [("here", Self.here), ("there", Self.there)] {
            #expect(!run(journals.ask(group, since: mark, until: 10, now: 0, answers.hearing(name))).contains(name))
        }
        #expect(run(journals.note(in: Self.here) { $0.note([Self.store]) }) == ["begin", "here", "late"])
        #expect(answers["here"]?.changed == [StoreJournal.hash(of: Self.store)])
        #expect(
            run(journals.ask(Self.here, since: mark, until: 10, now: 0, answers.hearing("known"))).contains("known"))
        #expect(!run(journals.ticked(9)).contains("there"))
        #expect(run(journals.ticked(10)).contains("there"))
        #expect(answers["there"]?.changed == [])
    }
}

@Suite("Waiting on a node")
struct WatchHubTests {
    private static let platform = SystemPlatform(eventLoop: MultiThreadedEventLoopGroup.singleton.next())

    private static let store = StoreKey(container: "c", environment: .development, user: "u")

    @Test("10,000 wait at once and are woken, each once")
    func many() async throws {
        let hub = WatchHub(platform: Self.platform, watchesMax: 20_000, watchesPerUserMax: 10_000)
        let tickets = try (0..<10_000).map { _ in try hub.enter(Self.store, group: GroupID(1)) }
        let woken = await withTaskGroup(of: WatchWake.self) { tasks in
            for ticket in tickets { tasks.addTask { await hub.wait(ticket, until: .max) } }
            // Whoever does not wait yet finds out when it would.
            hub.hear(.stores([Self.store], in: GroupID(1)))
            return await tasks.reduce(into: [WatchWake: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(woken == [.changed: 10_000])
        withExtendedLifetime(tickets) {}
    }

    @Test("a ticket that nobody holds any more is a watch no more")
    func ticket() throws {
        let hub = WatchHub(platform: Self.platform, watchesMax: 1, watchesPerUserMax: 1)
        for _ in 0..<3 {
            let ticket = try hub.enter(Self.store, group: GroupID(1))
            #expect(hub.counts.watches == 1)
            #expect(throws: RequestFailure.self) { try hub.enter(Self.store, group: GroupID(1)) }
            withExtendedLifetime(ticket) {}
        }
        #expect(hub.counts.watches == 0)
    }

    @Test("a task that is cancelled waits no longer")
    func cancelled() async throws {
        let hub = WatchHub(platform: Self.platform, watchesMax: 1, watchesPerUserMax: 1)
        let ticket = try hub.enter(Self.store, group: GroupID(1))
        let task = Task { await hub.wait(ticket, until: .max) }
        task.cancel()
        #expect(await task.value == .closing)
    }

    @Test("refusals name their limit")
    func refusal() throws {
        let hub = WatchHub(platform: Self.platform, watchesMax: 2, watchesPerUserMax: 1)
        let ticket = try hub.enter(Self.store, group: GroupID(1))
        let failure = #expect(throws: RequestFailure.self) { _ = try hub.enter(Self.store, group: GroupID(1)) }
        #expect(failure?.error.code == .tryAgainLater)
        #expect(failure?.details == .limit("watchesPerUser", actual: 2, max: 1))
        withExtendedLifetime(ticket) {}
    }
}
