import Foundation
import RaftCore
import Testing

@Suite("The worked example: a replicated counter")
struct ExampleTests {
    @Test("Three replicas count, a fourth takes the place of one, and a read sees everything")
    func counter() throws {
        var group = CounterGroup(voters: 3)
        try group.run(milliseconds: 4000)
        let leader = try #require(group.leader)
        try group.replicas[leader].add(40, now: group.now)
        try group.replicas[leader].add(2, now: group.now)
        group.replicas[leader].read(1, now: group.now)
        try group.run(milliseconds: 300)
        #expect(group.replicas.map(\.value) == [42, 42, 42])
        #expect(group.replicas[leader].answers[1] == 42)

        group.join()
        let old = group.replicas[leader].raft.configuration
        let learner = ReplicaID(4)
        try group.replicas[leader].change(
            to: Configuration(voters: old.voters, learners: [learner]), now: group.now)
        try group.run(milliseconds: 300)
        let leaderID = group.replicas[leader].raft.id
        let stays = old.voters.filter { $0 != leaderID }
        try group.replicas[leader].change(to: Configuration(voters: stays + [learner]), now: group.now)
        try group.run(milliseconds: 4000)
        let next = try #require(group.leader)
        #expect(next != leader)
        try group.replicas[next].add(1, now: group.now)
        try group.run(milliseconds: 300)
        #expect(group.replicas[3].value == 43)
    }

    @Test("The article shows the code that runs here", arguments: ["CounterReplica.swift", "CounterGroup.swift"])
    func article(file: String) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let code = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        let root = folder.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let article = try String(
            contentsOf: root.appending(path: "Sources/RaftCore/RaftCore.docc/ReplicatedCounter.md"), encoding: .utf8)
        #expect(article.contains("```swift\n\(code)```"), "copy \(file) into the article")
    }

    @Test("Bytes that are no message are refused with what was wrong")
    func malformed() throws {
        let message = Message(
            from: ReplicaID(1), to: ReplicaID(2), term: Term(3), body: .heartbeatRequest(commit: LogIndex(4), round: 5))
        #expect(try Message(serialized: message.serialized()) == message)
        #expect(throws: SerializationError.self) { try Message(serialized: [0xff, 0xff]) }
        let mark = SnapshotMark(
            position: LogPosition(index: LogIndex(4), term: Term(2)),
            configuration: Configuration(
                voters: [ReplicaID(1), ReplicaID(4)], outgoing: [ReplicaID(2)], learners: [ReplicaID(2), ReplicaID(3)]))
        #expect(try SnapshotMark(serialized: mark.serialized()) == mark)
        let entry = Entry(index: LogIndex(1), term: Term(1), payload: .configuration(mark.configuration))
        #expect(try Entry(serialized: entry.serialized()) == entry)
        let state = HardState(term: Term(9), vote: ReplicaID(3))
        #expect(try HardState(serialized: state.serialized()) == state)
    }
}
