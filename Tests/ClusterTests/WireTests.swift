import Authorization
import Directory
import KeyValueStore
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import Telemetry
import Testing
import Wire

@testable import Cluster

@Suite("What nodes say to each other comes back as it was said")
struct ClusterWireTests {
    private static let zone = ZoneKey(
        database: DatabaseKey(container: "c", environment: .production, scope: .private, owner: "_u"), name: "z")
    private static let store = StoreKey(container: "c", environment: .development, user: "_u")
    private static let rendering = ShardRead.Rendering(desiredKeys: ["a", "b"], numbersAsStrings: true)

    private static func shows(_ assets: ShardRead.AssetRendering) -> ShardRead.Rendering {
        ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false, assets: assets)
    }

    private static let samples: [ShardRead] = [
        .lookup(
            ShardRead.RecordLookup(
                zone: zone, schemaVersion: 1, caller: Caller(user: "_u"),
                items: [("x", rendering), ("y", ShardRead.Rendering(desiredKeys: nil, numbersAsStrings: false))])),
        .lookup(
            ShardRead.RecordLookup(
                zone: zone, schemaVersion: 1, caller: Caller(user: nil),
                items: [
                    ("x", ShardRead.Rendering(desiredKeys: [], numbersAsStrings: false)),
                    ("y", shows(.links(origin: "https://a", expires: 5))), ("z", shows(.checksums)),
                    ("z", shows(.receipts(zone: zone, user: "_v", expires: 6))),
                ])),
        .query(
            RecordQuery(
                zone: zone, schemaVersion: 7, caller: Caller(user: "_u"),
                query: Query(
                    recordType: "T", filters: [Filter(field: "f", comparator: .equals, value: .int64(-1))],
                    sorts: [Sort(field: "g", isAscending: false)]), limit: 20, cursor: [1, 2], explains: true),
            rendering),
        .databaseQuery(
            DatabaseQuery(
                database: zone.database, schemaVersion: 7, caller: Caller(user: "_u"),
                query: Query(
                    recordType: "T", filters: [Filter(field: nil, comparator: .containsAnyTokens, value: .string("w"))],
                    sorts: [Sort(field: "l", relativeLocation: Location(latitude: 1, longitude: -2))]), limit: 20,
                cursor: [1, 2]), rendering),
        .zoneChanges(
            ZoneChangesRequest(
                zone: zone, schemaVersion: 3, caller: Caller(user: "_u"), token: [4, 5], limit: 6, isReverse: true,
                recordTypes: []), rendering),
        .zoneChanges(
            ZoneChangesRequest(
                zone: zone, schemaVersion: 3, caller: Caller(user: "_u"), limit: 6, recordTypes: ["A", "B"]),
            rendering),
        .zoneChanges(
            ZoneChangesRequest(zone: zone, schemaVersion: 3, caller: Caller(user: "_u"), limit: 6), rendering),
        .databaseChanges(
            DatabaseChangesRequest(
                database: zone.database, schemaVersion: 3, caller: Caller(user: "_u"), incarnation: 1, after: 2,
                limit: 3)),
        .zones(zone.database, schemaVersion: 4), .zone(zone, schemaVersion: 5),
        .indexes(SchemaKey(container: "c", environment: .production), schemaVersion: 6),
        .keyValue(store, .get(keys: [])), .keyValue(store, .get(keys: ["a", "b"])), .keyValue(store, .list(after: nil)),
        .keyValue(store, .list(after: "k")), .keyValue(store, .changes(since: nil, limit: 5)),
        .keyValue(store, .changes(since: "token", limit: 5)),
        .keyValue(store, .list(after: "k"), numbersAsStrings: true), .countsAsset([1, 2]), .level,
    ]

    @Test("reads", arguments: samples.indices)
    func reads(number: Int) throws {
        let read = Self.samples[number]
        let back = try ShardRead(decoding: read.encoded())
        #expect("\(back)" == "\(read)")
    }

    @Test("answers to reads")
    func answers() throws {
        for answer in [
            ReadAnswer.found(ShardAnswer([])), .found(ShardAnswer([1], cursor: [])),
            .found(ShardAnswer([1], cursor: [2], hasMore: true)),
            .refused(ServiceError(.throttled, "r", retryAfterSeconds: 3)), .needsSchema(installed: 0),
            .needsSchema(installed: 9),
        ] {
            #expect(try ReadAnswer(decoding: answer.encoded()) == answer)
        }
    }

    @Test("requests between nodes, and replies")
    func nodeMessages() throws {
        let mark = SnapshotMark(
            position: LogPosition(index: LogIndex(5), term: Term(2)),
            configuration: Configuration(voters: [ReplicaID(1), ReplicaID(2)], learners: [ReplicaID(3)]))
        let chunk = SnapshotChunk(
            group: GroupID(4), snapshotID: 9, term: Term(3), leader: ReplicaID(1), mark: mark, offset: 10,
            totalBytes: 12,
            fileHash: [7], bytes: [1, 2])
        let asset = AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 9)
        let trace = try #require(TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        let origin = RequestOrigin(request: Array(1...16), place: trace)
        for request in [
            NodeRequest.propose(GroupID(3), command: [1, 2]), .propose(GroupID(0), command: []),
            .propose(GroupID(3), command: [1, 2], origin: origin), .inquire([4]),
            .read(GroupID(2), request: [3], ReadTerms(container: "c", milliseconds: 7, isAfterLog: true)),
            .read(GroupID(2), request: [3], ReadTerms(origin: RequestOrigin(request: Array(1...16)))),
            .read(GroupID(2), request: [3], ReadTerms(origin: RequestOrigin(place: origin.place))),
            .read(GroupID(2), request: [], ReadTerms()), .snapshot(chunk),
            .holdAsset(asset, GroupID(2), from: [NodeID(1)]),
            .holdAsset(asset, GroupID(2), from: [NodeID(1), NodeID(2)], after: UploadID(rawValue: .max)),
            .readAsset(asset, 3..<9), .followUpload(UploadID(rawValue: 7), GroupID(2)),
            .readUpload(UploadID(rawValue: 7), from: 0), .readUpload(UploadID(rawValue: .max), from: 262_144),
        ] {
            #expect("\(try NodeRequest(decoding: request.encoded()))" == "\(request)")
        }
        for reply in [
            NodeReply.done([]), .done([1]), .notLeader(hint: nil), .notLeader(hint: ReplicaID(3)), .overloaded,
            .diskFull,
            .superseded, .readEnded,
            .outcomeUnknown("o"), .failed("f"), .tooLarge(Oversize(.request, bytes: 9, bytesMax: 8)),
            .tooLarge(Oversize(.answer, bytes: 9, bytesMax: 8)), .whole(asset),
        ] {
            #expect("\(try NodeReply(decoding: reply.encoded()))" == "\(reply)")
        }
    }

    @Test("commands")
    func commands() throws {
        for command in [
            ShardCommand.keyValue(
                KeyValueCommand(store: Self.store, time: 1, writes: [.init(key: "k", value: .bool(true))])),
            .startIncarnation(1_700_000_000_000),
        ] {
            #expect("\(try ShardCommand(decoding: command.encoded()))" == "\(command)")
        }
        #expect("\(try GroupCommand(decoding: GroupCommand.machine([]).encoded()))" == "\(GroupCommand.machine([]))")
        #expect("\(try GroupCommand(decoding: GroupCommand.hashState.encoded()))" == "\(GroupCommand.hashState)")
    }

    @Test("a zone's slot is a fixed function of its key")
    func slots() {
        // Computed with another program: SHA-256 of the key's parts and a 0, joined by zero bytes, modulo 1024.
        #expect(Self.zone.slot == 465)
        #expect((0..<1024).contains(ZoneKey(database: Self.zone.database, name: "other").slot))
    }
}
