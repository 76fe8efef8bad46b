import Cluster
import RecordModel
import Testing
import Wire

@testable import Service

@Suite("What clients are told of what the cluster did not do")
struct ClusterErrorTests {
    @Test("what is too large is the client's to make smaller, in the words by which earlier SDKs know it")
    func tooLarge() {
        let request = RequestFailure(ClusterError.tooLarge(Oversize(.request, bytes: 70, bytesMax: 60)))
        #expect(request.error.code == .badRequest && request.details == .requestTooLarge)
        #expect(request.error.reason.contains("nothing was done") && request.error.reason.contains("at most 60"))
        #expect(request.error.reason.contains("send less in one request") && request.error.detail == .tooLarge)
        let answer = RequestFailure(ClusterError.tooLarge(Oversize(.answer, bytes: 70, bytesMax: 60)))
        #expect(answer.error.code == .badRequest && answer.error.reason.contains("too large for one answer"))
        #expect(answer.error.detail == .tooLongAnswer)
    }

    @Test(
        "an error's detail is carried between nodes; one of a later build is passed over",
        arguments: ErrorDetail.allCases)
    func details(detail: ErrorDetail) throws {
        let error = ServiceError(.badRequest, "r", detail: detail)
        #expect(try ServiceError(decoding: error.encoded()) == error)
        let plain = ServiceError(.badRequest, "r")
        var writer = WireWriter()
        plain.encode(to: &writer)
        #expect(writer.bytes == plain.encoded())
        writer.field(4, "ofLaterBuilds")
        #expect(try ServiceError(decoding: writer.bytes) == plain)
    }

    @Test("where nothing was done, an error says so to programs")
    func nothingDone() {
        let failure = RequestFailure(ClusterError.unavailable("no leader"))
        #expect(failure.error.detail == .nothingDone && failure.error.reason == "nothing was done: no leader")
        #expect(RequestFailure(ClusterError.outcomeUnknown("lost")).error.detail == nil)
    }
}
