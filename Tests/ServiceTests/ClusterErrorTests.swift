import Cluster
import RecordModel
import Testing

@testable import Service

@Suite("What clients are told of what the cluster did not do")
struct ClusterErrorTests {
    @Test("what is too large is the client's to make smaller, in the words by which the SDK knows it")
    func tooLarge() {
        let request = RequestFailure(ClusterError.tooLarge(Oversize(.request, bytes: 70, bytesMax: 60)))
        #expect(request.error.code == .badRequest && request.details == .requestTooLarge)
        #expect(request.error.reason.contains("nothing was done") && request.error.reason.contains("at most 60"))
        #expect(request.error.reason.contains("send less in one request"))
        let answer = RequestFailure(ClusterError.tooLarge(Oversize(.answer, bytes: 70, bytesMax: 60)))
        #expect(answer.error.code == .badRequest && answer.error.reason.contains("too large for one answer"))
    }
}
