import Testing

@testable import CloudKit

@Suite("How operations are run")
struct OperationConfigurationTests {
    @Test("An operation's own configuration begins as its group's, and is its own from then on")
    func own() {
        let group = CKOperationGroup()
        group.defaultConfiguration.timeoutIntervalForRequest = 7
        let operation = CKQueryOperation()
        #expect(operation.patience == nil)
        operation.group = group
        #expect(operation.patience == .seconds(7))
        operation.configuration.timeoutIntervalForRequest = 3
        #expect(operation.patience == .seconds(3) && group.defaultConfiguration.timeoutIntervalForRequest == 7)
        let set = CKOperation.Configuration()
        operation.configuration = set
        set.timeoutIntervalForRequest = 1
        #expect(operation.configuration.timeoutIntervalForRequest == 60)
        operation.configuration = nil
        #expect(operation.patience == .seconds(7))
    }

    @Test("A time that is none is none", arguments: [Double.nan, -1, 0])
    func wrongTimes(time: Double) {
        let configuration = CKOperation.Configuration()
        configuration.timeoutIntervalForRequest = time
        #expect(configuration.chosenPatience == .zero)
        configuration.timeoutIntervalForRequest = .infinity
        #expect(configuration.chosenPatience == .seconds(31_536_000))
    }
}
