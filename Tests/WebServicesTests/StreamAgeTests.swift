import Admission
import Authorization
import Cluster
import HTTPTypes
import Hummingbird
import KeyValueStore
import RaftCore
import RecordModel
import Synchronization
import TestSupport
import Testing

@testable import Service
@testable import WebServices

@Suite("How long a stream goes on", .serialized)
struct StreamAgeTests {
    /// A feed that has three pages, each with more to come, and then fails.
    private final class BusyFeed: WatchedFeed {
        let service: RecordService
        let store: StoreKey
        let (group, name, event, action) = (GroupID(rawValue: 1), "preferences", "changes", "kv/watch")
        private let pages = Atomic<Int>(0)

        init(_ service: RecordService, _ store: StoreKey) {
            self.service = service
            self.store = store
        }

        func changes(
            since token: String?, limit: Int, by deadline: Deadline
        ) async throws(RequestFailure) -> ShardAnswer {
            let number = pages.add(1, ordering: .relaxed).newValue
            if number > 3 { throw RequestFailure(.internalError, "no more pages") }
            var answer = ShardAnswer(Array("{}".utf8), cursor: Array("t\(number)".utf8), hasMore: true)
            answer.changes = 1
            return answer
        }
    }

    /// Keeps what is written.
    private struct Writer: ResponseBodyWriter {
        final class Text: Sendable {
            let all = Mutex("")
        }
        let text = Text()

        mutating func write(_ buffer: ByteBuffer) async throws { text.all.withLock { $0 += String(buffer: buffer) } }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test(
        "one that always has more to tell ends after its time, too",
        arguments: [(0, 1), (3_600, 3)] as [(UInt64, Int)])
    func busy(secondsMax: UInt64, pages: Int) async throws {
        let world = try await SignInWorld()
        let service = world.node.recordService
        let target = Target(container: SignInWorld.container, environment: .development, needsUser: true)
        let credentials = Credentials(
            apiToken: world.apiToken.secret, webAuthToken: try await world.session(of: "ada"))
        let session = try await service.accounts.session(of: credentials, service.signer)
        let admitted = try Admission.admit(
            credentials, to: target, in: service.directory, session: session, now: service.now)
        let store = StoreKey(
            container: target.container, environment: .development, user: try #require(admitted.caller.user))
        var stream = PreferenceStream(
            watch: PreferenceWatch(
                BusyFeed(service, store), credentials: credentials, target: target,
                requester: Requester(admitted, requestID: "r", address: nil), limit: 10),
            bodies: BodyBudget(bytesMax: 1_000), holder: ByteHolder(container: nil, address: .v4(1)), uuid: "r")
        stream.secondsMax = secondsMax
        let writer = Writer()
        var any: any ResponseBodyWriter = writer
        let reply = try await stream.events(since: nil)
        try await reply.stream?(&any)
        let text = writer.text.all.withLock { $0 }
        #expect(text.split(separator: "event: changes").count - 1 == pages, "\(text)")
        #expect(text.contains(secondsMax == 0 ? "TRY_AGAIN_LATER" : "INTERNAL_ERROR"), "\(text)")
        try await world.node.stop()
    }
}
