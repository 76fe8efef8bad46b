import Cluster
import Directory
import Logging
import RaftCore
import RecordModel
import RecordStore
import Testing

@testable import Service

extension ClusterSuites {
    @Suite("Quota that shards give back")
    struct QuotaEscrowTests {
        private static let database = DatabaseKey(
            container: "iCloud.test", environment: .development, scope: .private, owner: "_ann")

        @Test("what a shard was granted and never told of, as its node ended, goes to a shard that lacks it")
        func untold() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            let service = RecordService(node: node, logger: Logger(label: "test"))
            let shards = Array(node.map.groups.dropFirst())
            let cap = QuotaAmounts(bytes: 1_000, records: 4)
            let grant = QuotaGrant(
                ledger: Self.database, shard: shards[0].rawValue, want: cap, need: cap, received: .zero, cap: cap,
                epoch: 1, time: service.now)
            let ledger = service.quotas.ledgerGroup(of: Self.database)
            let answer = try await service.quotas.submit(.grant(grant), to: ledger, by: service.deadline())
            #expect(answer == .granted(cumulative: cap, free: .zero))
            var need = QuotaNeed.blank
            need.need = QuotaAmounts(bytes: 100, records: 1)
            let isThere = try await service.quotas.allot(
                need, under: QuotaTerms(epoch: 1, isFinal: false, limit: cap), of: Self.database, to: shards[1],
                by: service.deadline())
            #expect(isThere)
            await cluster.stop()
        }

        @Test("of several shards it is enough that one gave something back, and a failure counts, in whatever order")
        func several() {
            let failure = RequestFailure(ServiceError(.tryAgainLater, "busy"))
            func sum(_ answers: Result<Bool, RequestFailure>...) -> Bool? {
                try? answers.reduce(.success(false)) { QuotaEscrow.either($0, $1) }.get()
            }
            #expect(sum(.success(true), .success(false)) == true && sum(.success(false), .success(true)) == true)
            #expect(sum(.success(false), .success(false)) == false && sum() == false)
            #expect(sum(.failure(failure), .success(true)) == nil && sum(.success(true), .failure(failure)) == nil)
        }
    }
}
